"""Rules that hold for the tensors of every operator: types, scales, free dimensions, computed parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.ir import DType, Node, Tensor
from vitrify.targets.neutron.operators import held, taken
from vitrify.targets.rules import Breach, Variant
from vitrify.targets.rules.roles import features, parameters, weights

QUANTIZE = "vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite"
CONVERTER = "eiq.nxp.com training materials, NeutronConverter: its input is a quantized TFLite file"
_WIDE = "developer.ridgerun.com NXP_i.MX95_Technical_Guide, eIQ_Neutron_NPU_overview: 8- or 16-bit activations"
_SCALED = (DType.INT8, DType.UINT8, DType.INT16)
_JOINED = ("CONCATENATION",)
_COMPARED = ("MAXIMUM", "MINIMUM")
_REDUCED = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
_MOVED = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "PAD", "PADV2", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE",
          "STRIDED_SLICE", "SPLIT")
_PARAMETERS = ("PAD", "PADV2", "MIRROR_PAD", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "RESHAPE", "MEAN", "SUM",
               "REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPLIT")


def _values(node: Node) -> list[Tensor]:
    return [*features(node), *node.outputs]


def _border(node: Node) -> Tensor | None:
    """The float values that a node turns into integers, or integers into them; constants are no border."""
    if node.op.kind not in ("QUANTIZE", "DEQUANTIZE") or node.optional(0) is None or not node.outputs:
        return None
    x, y = node.input(0), node.output
    if x.dtype.is_float == y.dtype.is_float or x.data is not None:
        return None
    return x if x.dtype.is_float else y


@held("neutron.float-border", says="no float values enter or leave the integers", old="inferred",
      operators=["QUANTIZE", "DEQUANTIZE"], why="the NPU computes with integers; QUANTIZE and DEQUANTIZE are taken as "
      "part of an operator between them only", fix="integer-ends",
      help="keep the values integers; at the ends of a model convert in the application")
def border(node: Node, variant: Variant) -> Iterator[Breach]:
    """Float values that enter or leave an integer model."""
    outside = _border(node)
    if outside is not None:
        way = "enters" if node.op.kind == "QUANTIZE" else "leaves"
        yield Breach(f"'{outside.name}' {way} as {outside.dtype.label}; the NPU takes integers",
                     {"tensor": outside.name, "type": outside.dtype.label}, "int8")


@held("neutron.float-tensor", says="every value is an integer", old="documented", s="documented", source=CONVERTER,
      why="the converter leaves an operator with float values in the file as it is",
      help=f"quantize the whole model: {QUANTIZE}")
def floats(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values that are float."""
    if not taken(node, variant.core) or _border(node) is not None:
        return
    for tensor in _values(node):
        if tensor.dtype.is_float:
            yield Breach(f"tensor '{tensor.name}' is {tensor.dtype.label}; the NPU takes integers",
                         {"tensor": tensor.name, "type": tensor.dtype.label}, "int8")


@held("neutron.data-type", says="values are int8 or uint8", s=None, old="documented",
      why="the NPU multiplies 8-bit values with 8-bit weights")
def narrow(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values of other types on Neutron-C."""
    yield from _typed(node, variant, (DType.INT8, DType.UINT8))


@held("neutron.data-type", says="values are int8, uint8 or int16", c=None, s="documented", source=_WIDE,
      why="the NPU multiplies 8- or 16-bit values with 8-bit weights")
def wide(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values of other types on Neutron-S."""
    yield from _typed(node, variant, _SCALED)


def _typed(node: Node, variant: Variant, allowed: tuple[DType, ...]) -> Iterator[Breach]:
    if not taken(node, variant.core):
        return
    names = ", ".join(dtype.label for dtype in allowed)
    for tensor in _values(node):
        if not tensor.dtype.is_float and tensor.dtype not in allowed:
            yield Breach(f"tensor '{tensor.name}' is {tensor.dtype.label}; the NPU takes {names}",
                         {"tensor": tensor.name, "type": tensor.dtype.label}, "int8")


@held("neutron.sixteen-bit", says="it is known for the operator that it takes int16", c=None, s="unknown",
      source=_WIDE, why="16-bit activations are documented for Neutron-S, but not for which operators")
def sixteen(node: Node, variant: Variant) -> Iterator[Breach]:
    """16-bit values: which operators take them is not public."""
    if taken(node, variant.core) and any(tensor.dtype is DType.INT16 for tensor in _values(node)):
        yield Breach("no public source says whether it is taken with int16 values", {"type": "int16"},
                     "int8")


@held("neutron.missing-scale", says="values carry a scale and a zero point", old="documented",
      why="without them the converter does not know what the integers stand for",
      help=f"quantize the float model again: {QUANTIZE}")
def scales(node: Node, variant: Variant) -> Iterator[Breach]:
    """Values without quantization parameters."""
    if not taken(node, variant.core):
        return
    weight = weights(node)
    for tensor in (*_values(node), *([] if weight is None else [weight])):
        if tensor.quantization is None and tensor.dtype in _SCALED:
            yield Breach(f"tensor '{tensor.name}' ({tensor.dtype.label}) has no scale", {"tensor": tensor.name})


@held("neutron.per-axis-quantization", says="only weights have one scale per channel", old="documented",
      why="values are rescaled by one factor", help="quantize it with one scale per tensor")
def per_axis(node: Node, variant: Variant) -> Iterator[Breach]:
    """More than one scale of a value."""
    if not taken(node, variant.core):
        return
    for tensor in _values(node):
        if tensor.quantization is not None and tensor.quantization.scale.size > 1:
            count = int(tensor.quantization.scale.size)
            yield Breach(f"tensor '{tensor.name}' has {count} scales; {node.op.kind} takes one",
                         {"tensor": tensor.name, "scales": count, "limit": 1}, "one scale")


@held("neutron.dynamic-shape", says="no dimension but the first is free", old="documented",
      why="the converter plans tiles and memory for static shapes", fix="static-shapes",
      help="fix the shape: vitrify convert MODEL --shape INPUT=1,H,W,C -o OUT.tflite")
def dynamic(node: Node, variant: Variant) -> Iterator[Breach]:
    """Free dimensions behind the batch."""
    if not taken(node, variant.core):
        return
    for tensor in (*[t for t in node.inputs if t is not None], *node.outputs):
        free = [i for i, extent in enumerate(tensor.shape_signature or tensor.shape) if extent < 0 and i > 0]
        if free:
            yield Breach(f"dimension {free[0]} of tensor '{tensor.name}' is free; only the batch may be",
                         {"tensor": tensor.name, "axis": free[0]}, "a fixed extent")


@held("neutron.parameter-variable", operators=_PARAMETERS, old="documented",
      says="shapes, axes, paddings, slices and permutations are constant",
      why="tiles and addresses are fixed when the model is converted")
def constant(node: Node, variant: Variant) -> Iterator[Breach]:
    """Parameters that are computed."""
    if not taken(node, variant.core):
        return
    for tensor in parameters(node):
        if tensor.data is None:
            yield Breach(f"its parameter '{tensor.name}' is computed at run time", {"tensor": tensor.name},
                         "a constant")


_EQUAL = "the values are moved or compared as they are stored"


def _unequal(node: Node, variant: Variant) -> Iterator[Breach]:
    """Inputs on another scale than the output."""
    wanted = node.output.quantization if node.outputs else None
    if wanted is None or not taken(node, variant.core):
        return
    for tensor in features(node):
        found = tensor.quantization
        if found is not None and found.scale.size and wanted.scale.size and not (
                np.array_equal(found.scale, wanted.scale) and np.array_equal(found.zero_point, wanted.zero_point)):
            yield Breach(f"'{tensor.name}' has {found}, the output {wanted}",
                         {"tensor": tensor.name, "scale": float(found.scale[0]), "limit": float(wanted.scale[0])},
                         str(wanted))


for _kinds, _fix in ((_JOINED, "joined-scales"), (_COMPARED, "equal-scales"), (_REDUCED, "rescaled-results"),
                     (_MOVED, "rescaled-moves")):
    held("neutron.unequal-scales", operators=_kinds, says="inputs and output share scale and zero point", why=_EQUAL,
         old="inferred", fix=_fix)(_unequal)

