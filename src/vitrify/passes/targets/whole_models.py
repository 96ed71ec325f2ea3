"""What is mended once for a whole model: free dimensions, shapes computed at run time, float inputs and outputs."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Graph, Model
from vitrify.passes.base import Runner
from vitrify.passes.cleanup.dead_code import DeadCode
from vitrify.passes.cleanup.folding import FoldConstants
from vitrify.passes.quantized.boundary import StepsAtBoundary
from vitrify.passes.reshaping.reshapes import StaticReshape
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import FLOAT, UNSUPPORTED

_STATED = "tensors"


@fix("static-shapes", mends=("ethos-u.dynamic-shape", "neutron.dynamic-shape", "vip8000.dynamic-shape"), whole=True,
     says="clears shape signatures that call a dimension free whose extent is known",
     wins="the compiler leaves everything with such a dimension to the CPU, although the shapes are static")
def static_shapes(model: Model) -> int:
    """Forget -1 behind the batch where the shape says what it is."""
    changed = 0
    for graph in model.graphs:
        for tensor in graph.tensors():
            if -1 in tensor.shape_signature[1:] and all(extent > 0 for extent in tensor.shape):
                tensor.shape_signature = ()
                changed += 1
    return changed


@fix("constant-shapes", mends=(*UNSUPPORTED, "ethos-u.element-width", "ethos-u.missing-scale",
                               "ethos-u.parameter-variable", "neutron.data-type"), whole=True,
     says="computes shapes, and what follows from them, now", wins="SHAPE, STRIDED_SLICE and PACK of shapes vanish")
def constant_shapes(model: Model) -> int:
    """SHAPE is known where shapes are static."""
    if not any(graph.count(ops.Shape) for graph in model.graphs) or any(
            -1 in t.shape_signature[1:] for graph in model.graphs for t in graph.tensors()):
        return 0
    for graph in model.graphs:
        for node in graph.nodes_of(ops.Shape):
            source = node.input(0)
            if source.shape_signature and all(extent > 0 for extent in source.shape):
                source.shape_signature = ()
    runner = Runner(model)
    found = runner.run((FoldConstants, StaticReshape), rounds=4)
    return found + runner.apply(DeadCode()) if found else 0


@fix("integer-ends", mends=(*FLOAT, *UNSUPPORTED), whole=True,
     says="takes integers in and gives integers out; who runs the model scales them, as the file says",
     wins="a QUANTIZE and a DEQUANTIZE on the CPU, and four times the bytes that cross")
def integer_ends(model: Model) -> int:
    """QUANTIZE at inputs and DEQUANTIZE at outputs go."""
    _forget(model)
    return StepsAtBoundary().run(model.main) if _is_integer(model.main) else 0


def _is_integer(graph: Graph) -> bool:
    """True when floats are at the ends only."""
    inner = [node for node in graph if node.op.kind not in ("QUANTIZE", "DEQUANTIZE")]
    return bool(inner) and not any(t.dtype.is_float for node in inner for t in (*node.inputs, *node.outputs)
                                   if t is not None)


def _forget(model: Model) -> None:
    """Tensors that only the file listed: it is another file now."""
    model.extras.pop(_STATED, None)
