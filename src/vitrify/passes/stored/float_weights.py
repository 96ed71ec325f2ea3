"""Weights that are stored as integers while the operators that read them compute in float."""

from __future__ import annotations

from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import is_dense

_STORED = (DType.INT8, DType.UINT8)


class FloatWeights(Pass):
    """Give float operators float weights, as a dynamic-range file had them before.

    Such a file's kernels quantize activations as they run; with float weights a full-integer quantization can follow.

    Before:  %y: float32 = CONV_2D(%x: float32, w: int8 with scales)
    After:   %y: float32 = CONV_2D(%x: float32, w * scale)
    """

    name = "float-weights"
    exactness = Exactness.APPROXIMATE

    def run(self, graph: Graph) -> int:
        """Returns how many operators got float weights."""
        made: dict[int, Tensor] = {}
        changed = 0
        for node in graph:
            reads = enumerate(node.inputs) if _computes_in_float(node) else ()
            places = [i for i, t in reads if t is not None and _is_stored(t)]
            for place in places:
                stored = node.input(place)
                if id(stored) not in made:
                    made[id(stored)] = self._widened(stored)
                graph.set_input(node, place, made[id(stored)])
            if places:
                self.touch(str(node.origin) if node.origin.sources else "")
                changed += 1
        return changed

    def _widened(self, stored: Tensor) -> Tensor:
        assert stored.quantization is not None
        assert stored.data is not None
        values = stored.quantization.dequantize(stored.data)
        return Tensor(stored.name, DType.FLOAT32, stored.shape, data=values, origin=stored.origin.by(self.name))


def _is_stored(tensor: Tensor) -> bool:
    return tensor.dtype in _STORED and tensor.quantization is not None and is_dense(tensor)


def _computes_in_float(node: Node) -> bool:
    return any(t.dtype is DType.FLOAT32 for t in node.outputs) and any(
        t is not None and not t.is_constant and t.dtype is DType.FLOAT32 for t in node.inputs)
