"""Rules that hold for the tensors of every operator: types, scales, zero points, free dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node, Tensor
from vitrify.targets.ethos_u.cores import SMALL, U85, core, kinds
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import features, weights

REPORT = "Vela 5.2.0, --supported-ops-report"
QUANTIZE = "vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite"
_SCALED = (DType.INT8, DType.UINT8, DType.INT16)
_SCALE = 2.0 ** 32
_RESOURCES = frozenset({"ASSIGN_VARIABLE", "READ_VARIABLE"})


def _values(node: Node) -> list[Tensor]:
    return [*features(node), *node.outputs]


@rule("ethos-u.unsupported-operator", says="the operator is in the compiler's table for the core",
      why="the NPU has no such operator, and the compiler makes it of no others", source=REPORT)
def unsupported(node: Node, variant: Variant) -> Iterator[Breach]:
    """An operator that is in no table stays on the CPU."""
    if node.op.kind not in core(variant.core).operators and _border(node) is None:
        yield Breach(f"the NPU has no {node.op.kind}", {"operator": node.op.kind})


@rule("ethos-u.float-border", says="no float values enter or leave the integers",
      why="the NPU computes with integers only", source=REPORT,
      help="keep the values integers; at the ends of a model convert in the application", fix="integer-ends")
def border(node: Node, variant: Variant) -> Iterator[Breach]:
    """Float values that enter or leave an integer model."""
    outside = _border(node)
    if outside is not None:
        way = "enters" if node.op.kind == "QUANTIZE" else "leaves"
        yield Breach(f"'{outside.name}' {way} as {outside.dtype.label}; the NPU takes integers",
                     {"tensor": outside.name, "type": outside.dtype.label}, "int8 or int16")


def _border(node: Node) -> Tensor | None:
    """The float values that a node turns into integers, or integers into them; constants are no border."""
    x, y = (node.input(0), node.output) if node.op.kind in ("QUANTIZE", "DEQUANTIZE") else (None, None)
    if x is None or y is None or x.dtype.is_float == y.dtype.is_float:
        return None
    return None if x.data is not None else x if x.dtype.is_float else y


@rule("ethos-u.float-tensor", says="every value is an integer", why="the NPU computes with integers only",
      source=REPORT, help=f"quantize the whole model: {QUANTIZE}")
def floats(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values that are float."""
    for tensor in _known(node, variant):
        if _border(node) is None and tensor.dtype.is_float:
            yield Breach(f"tensor '{tensor.name}' is {tensor.dtype.label}; the NPU takes integers",
                         {"tensor": tensor.name, "type": tensor.dtype.label}, "int8 or int16")


@rule("ethos-u.tensor-type", says="values are int8, uint8, int16, int32 or int64, on the U85 bool as well",
      why="the NPU has no arithmetic for other types", source=REPORT)
def types(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values of another type."""
    allowed = core(variant.core).types
    for tensor in _known(node, variant):
        if not tensor.dtype.is_float and tensor.dtype not in allowed:
            yield Breach(f"tensor '{tensor.name}' is {tensor.dtype.label}",
                         {"tensor": tensor.name, "type": tensor.dtype.label}, "int8")


def _known(node: Node, variant: Variant) -> list[Tensor]:
    """The values of an operator that the NPU has; nothing more is asked of one that it has not."""
    if node.op.kind not in core(variant.core).operators or node.op.kind in _RESOURCES:
        return []
    return _values(node)


@rule("ethos-u.element-width", cores=SMALL, says="values have 8 or 16 bits, of some operators 32",
      why="only sums, products, reductions to indices and movements are done on wide values", source=REPORT)
def wide(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values of 32 or 64 bits where the operator has no such form."""
    for tensor in _known(node, variant):
        bits = tensor.dtype.bits
        able = core(variant.core).wide.get(bits)
        if not tensor.dtype.is_float and able is not None and node.op.kind not in able:
            yield Breach(f"tensor '{tensor.name}' is {tensor.dtype.label}; {node.op.kind} takes 8 or 16 bits",
                         {"tensor": tensor.name, "bits": bits, "limit": 16}, "int8 or int16")


@rule("ethos-u.dynamic-shape", says="no dimension but the first is free",
      why="the file's shape signature holds -1 there, even if the shape itself is static", source=REPORT,
      help="fix the shape: vitrify convert MODEL --shape INPUT=1,H,W,C -o OUT.tflite", fix="static-shapes")
def dynamic(node: Node, variant: Variant) -> Iterator[Breach]:
    """Free dimensions behind the batch."""
    for tensor in (*[t for t in node.inputs if t is not None], *node.outputs):
        free = [i for i, extent in enumerate(tensor.shape_signature or tensor.shape) if extent < 0 and i > 0]
        if free:
            yield Breach(f"dimension {free[0]} of tensor '{tensor.name}' is free; only the batch may be",
                         {"tensor": tensor.name, "axis": free[0]}, "a fixed extent")


@rule("ethos-u.missing-scale", says="values and weights of 8 and 16 bits carry a scale and a zero point",
      why="without them the compiler does not know what the integers stand for; wider ones it takes as they are",
      source=REPORT,
      help=f"quantize the float model again: {QUANTIZE}")
def scales(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values without quantization parameters."""
    kind = node.op.kind
    if kind in kinds("without_scales") or kind not in core(variant.core).operators or kind in _RESOURCES:
        return
    weight = weights(node)
    for tensor in (*_values(node), *([weight] if weight is not None else [])):
        if tensor.quantization is None and tensor.dtype in _SCALED:
            yield Breach(f"tensor '{tensor.name}' ({tensor.dtype.label}) has no scale", {"tensor": tensor.name})


@rule("ethos-u.per-axis-quantization", says="only weights have one scale per channel",
      why="the NPU rescales a whole feature map by one factor, except behind weights", source=REPORT,
      help="quantize it with one scale per tensor")
def per_axis(node: Node, variant: Variant) -> Iterator[Breach]:
    """More than one scale where the operator has no weights."""
    if node.op.kind in kinds("weighted") or node.op.kind not in core(variant.core).operators:
        return
    for tensor in (*[t for t in node.inputs if t is not None], *node.outputs):
        if tensor.quantization is not None and len(tensor.quantization.scale) > 1:
            yield Breach(f"tensor '{tensor.name}' has {len(tensor.quantization.scale)} scales; "
                         f"{node.op.kind} takes one", {"tensor": tensor.name, "scales": len(tensor.quantization.scale),
                                                       "limit": 1}, "one scale")


@rule("ethos-u.zero-point", says="zero points fit the type: none below 0 for unsigned values, 0 for 32 bits",
      why="the registers that hold them have no other range", source=REPORT)
def zero_points(node: Node, variant: Variant) -> Iterator[Breach]:
    """Zero points outside the range of the type."""
    if node.op.kind in kinds("any_zero_point") or node.op.kind not in core(variant.core).operators:
        return
    for tensor in _values(node):
        if tensor.quantization is None or tensor.dtype.is_float:
            continue
        low, high = _bounds(tensor.dtype, variant)
        for zero in map(int, tensor.quantization.zero_point):
            if not low <= zero <= high:
                yield Breach(f"tensor '{tensor.name}' ({tensor.dtype.label}) has zero point {zero}, outside "
                             f"{low}..{high}", {"tensor": tensor.name, "zero_point": zero, "low": low, "high": high},
                             f"{min(max(zero, low), high)}")
                break


def _bounds(dtype: DType, variant: Variant) -> tuple[int, int]:
    if variant.core == U85:
        return {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}.get(dtype, (0, 0))
    if dtype.bits == 32:
        return 0, 0
    return (0 if dtype in (DType.UINT8, DType.BOOL) else -(1 << 63)), (1 << 63) - 1


@rule("ethos-u.large-scale", says="scales are below 2^32", why="a scale is held as 31 bits and a shift to the right",
      source="Vela 5.2.0: a MobileOne whose scales grow from layer to layer", confidence="observed")
def large(node: Node, variant: Variant) -> Iterator[Breach]:
    """Scales that a multiplier with a right shift cannot hold."""
    if node.op.kind in kinds("without_scales") or node.op.kind not in core(variant.core).operators:
        return
    for tensor in (*[t for t in node.inputs if t is not None], *node.outputs):
        if tensor.quantization is None or tensor.dtype.is_float:
            continue
        found = float(tensor.quantization.scale.max(initial=0.0))
        if found >= _SCALE:
            yield Breach(f"tensor '{tensor.name}' has scale {found:g}, the limit is {_SCALE:g}",
                         {"tensor": tensor.name, "scale": found, "limit": _SCALE}, "a normalized model")
