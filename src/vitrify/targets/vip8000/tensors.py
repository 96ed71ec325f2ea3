"""Rules on types and forms, as the delegate asks them of each node before it takes it."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node, Tensor
from vitrify.ops import BatchMatMul, ResizeNearestNeighbor, StridedSlice
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import feature, features, ints, shown, weights
from vitrify.targets.vip8000.operators import MAP, VERSIONS, taken

_EIGHT = (DType.INT8, DType.UINT8)
_HYBRID = ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "CONV_3D"]
_SCALED = ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPLIT", "SPLIT_V", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE",
           "BATCH_TO_SPACE_ND"]
_NO_TYPE = "the delegate refuses the type before the driver sees it"
_HALF = ("github.com/tensorflow/tensorflow issue 53056: NNAPI on the i.MX 8M Plus; the later delegate passes the flag "
         "on to the driver, whose answer is not public")
_PACK = ("github.com/VeriSilicon/tflite-vx-delegate issue 62: int8 is switched off in the delegate's own table; a "
         "later state (commit 00a7fc9) refuses it of one axis only")


@rule("vip8000.wide-type", says="no value has 64 bits, and no result is int16", why=_NO_TYPE, source=MAP,
      versions=VERSIONS, help="quantize with int8 activations")
def wide(node: Node, variant: Variant) -> Iterator[Breach]:
    """64-bit values, and 16-bit results."""
    if not taken(node):
        return
    for tensor in (*[t for t in node.inputs if t is not None], *node.outputs):
        if tensor.dtype is DType.INT64 or (tensor.dtype is DType.INT16 and tensor in node.outputs):
            yield Breach(f"tensor '{tensor.name}' is {tensor.dtype.label}",
                         {"tensor": tensor.name, "type": tensor.dtype.label}, "int8")


@rule("vip8000.rank", says="tensors have at most 6 axes", why="the driver holds no more", source=MAP, versions=VERSIONS)
def rank(node: Node, variant: Variant) -> Iterator[Breach]:
    """Too many axes."""
    limit = variant.limits["rank"]
    for tensor in (t for t in node.inputs if t is not None and taken(node)):
        if len(tensor.shape) > limit:
            yield Breach(f"'{tensor.name}' has {len(tensor.shape)} axes, the limit is {limit}",
                         {"tensor": tensor.name, "rank": len(tensor.shape), "limit": limit}, f"{limit} axes")


@rule("vip8000.dynamic-shape", says="no dimension but the first is free", why="the graph is compiled for static shapes",
      source=MAP, versions=VERSIONS, fix="static-shapes",
      help="fix the shape: vitrify convert MODEL --shape INPUT=1,H,W,C -o OUT.tflite")
def dynamic(node: Node, variant: Variant) -> Iterator[Breach]:
    """Free dimensions behind the batch."""
    for tensor in (*[t for t in node.inputs if t is not None], *node.outputs) if taken(node) else ():
        free = [i for i, extent in enumerate(tensor.shape_signature or tensor.shape) if extent < 0 and i > 0]
        if free:
            yield Breach(f"dimension {free[0]} of tensor '{tensor.name}' is free; only the batch may be",
                         {"tensor": tensor.name, "axis": free[0]}, "a fixed extent")


@rule("vip8000.missing-scale", operators=_SCALED, says="8-bit values carry a scale", why=_NO_TYPE, source=MAP,
      versions=VERSIONS)
def scales(node: Node, variant: Variant) -> Iterator[Breach]:
    """8-bit values without quantization parameters."""
    for tensor in features(node):
        if tensor.dtype in _EIGHT and tensor.quantization is None:
            yield Breach(f"tensor '{tensor.name}' ({tensor.dtype.label}) has no scale", {"tensor": tensor.name})


@rule("vip8000.hybrid-weights", operators=_HYBRID, says="weights have the type of the values", source=MAP,
      versions=VERSIONS, why="a dynamic-range file, float values with 8-bit weights, is refused",
      help="quantize the whole model: vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite")
def hybrid(node: Node, variant: Variant) -> Iterator[Breach]:
    """Weights of another type than the values."""
    x, weight = feature(node), node.optional(1) if node.op.kind == "CONV_3D" else weights(node)
    if x is not None and weight is not None and x.dtype is not weight.dtype:
        yield Breach(f"its values are {x.dtype.label}, the weights '{weight.name}' {weight.dtype.label}",
                     {"type": x.dtype.label, "weights": weight.dtype.label}, f"{x.dtype.label} weights")


@rule("vip8000.grouped-batch", operators=["CONV_2D"], says="a grouped convolution is of one sample",
      why="the driver's grouped form has no batch", source=MAP, versions=VERSIONS, fix="batches")
def grouped(node: Node, variant: Variant) -> Iterator[Breach]:
    """Several samples of a grouped convolution."""
    x, weight = feature(node), weights(node)
    if x is not None and weight is not None and len(x.shape) == len(weight.shape) == 4 and x.shape[0] != 1 and \
            x.shape[3] != weight.shape[3]:
        yield Breach(f"a grouped convolution of {x.shape[0]} samples, the limit is 1",
                     {"batch": x.shape[0], "limit": 1}, "1")


@rule("vip8000.softmax-size", operators=["SOFTMAX"], says="height and width are at most 65535",
      why="the registers hold no more", source=MAP, versions=VERSIONS)
def softmax(node: Node, variant: Variant) -> Iterator[Breach]:
    """Extents beyond the registers."""
    x, limit = feature(node), variant.limits["softmax_extent"]
    for extent in () if x is None else x.shape[1:3]:
        if extent > limit:
            yield Breach(f"an extent of {extent} is beyond {limit}", {"extent": extent, "limit": limit}, f"{limit}")


@rule("vip8000.slice-form", operators=["STRIDED_SLICE"], says="a slice has neither new axes nor an ellipsis",
      why="the driver's slice has no such masks", source=MAP, versions=VERSIONS)
def slices(node: Node, variant: Variant) -> Iterator[Breach]:
    """Masks that the driver does not have."""
    op = node.op
    assert isinstance(op, StridedSlice)
    for name, mask in (("new_axis_mask", op.new_axis_mask), ("ellipsis_mask", op.ellipsis_mask)):
        if mask:
            yield Breach(f"its {name} is {mask}, the limit is 0", {"mask": mask, "limit": 0}, "0")


@rule("vip8000.slice-batch", operators=["SLICE"], says="samples are not sliced, and begin and size are constant",
      why="the driver slices within a sample", source=MAP, versions=VERSIONS)
def samples(node: Node, variant: Variant) -> Iterator[Breach]:
    """Slices of samples, or of a computed place."""
    x = feature(node)
    computed = [t.name for t in node.inputs[1:3] if t is not None and t.data is None]
    if computed:
        yield Breach(f"'{computed[0]}' is computed at run time", {"tensor": computed[0]}, "a constant")
    if x is not None and len(x.shape) > 3 and node.output.shape and x.shape[0] != node.output.shape[0]:
        yield Breach(f"it takes {node.output.shape[0]} of {x.shape[0]} samples",
                     {"batch": node.output.shape[0], "limit": x.shape[0]}, f"{x.shape[0]}")


@rule("vip8000.resize-variable", operators=["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"],
      says="the size of a resize is constant", why="the graph is compiled for static shapes", source=MAP,
      versions=VERSIONS)
def resize(node: Node, variant: Variant) -> Iterator[Breach]:
    """Sizes that are computed."""
    if ints(node.optional(1)) is None:
        yield Breach("its size is computed at run time", {}, "a constant")


@rule("vip8000.half-pixel", operators=["RESIZE_NEAREST_NEIGHBOR"], source=_HALF, confidence="inferred",
      says="pixels are not centred when the nearest is taken", fix="half-pixels",
      why="the attribute was refused on the board and the graph cut there; a whole-number factor gives the same values "
      "without it", versions="seen with NNAPI; the delegate of later BSPs is not described")
def half_pixel(node: Node, variant: Variant) -> Iterator[Breach]:
    """Nearest neighbours with centred pixels."""
    op, x = node.op, feature(node)
    assert isinstance(op, ResizeNearestNeighbor)
    if op.half_pixel_centers and x is not None:
        yield Breach(f"it takes {shown(x.shape[1:3])} to {shown(node.output.shape[1:3])} with half_pixel_centers",
                     {"half_pixel_centers": 1, "limit": 0}, "half_pixel_centers false")


@rule("vip8000.no-pack", operators=["PACK"], says="PACK is of float values", source=_PACK, confidence="observed",
      why="int8 is switched off for it, and the graph is cut there; RESHAPE and CONCATENATION do the same",
      versions=VERSIONS, fix="packs")
def pack(node: Node, variant: Variant) -> Iterator[Breach]:
    """Packed integers."""
    x = feature(node)
    if x is not None and not x.dtype.is_float:
        yield Breach(f"PACK of {x.dtype.label} is not taken", {"type": x.dtype.label}, "RESHAPE and CONCATENATION")


@rule("vip8000.matmul-type", operators=["BATCH_MATMUL"], says="a product of two values is not int8, nor is its result "
      "int32", why=_NO_TYPE, source=MAP, versions=VERSIONS)
def matmul(node: Node, variant: Variant) -> Iterator[Breach]:
    """Products of int8 values."""
    for tensor in features(node):
        if tensor.dtype is DType.INT8:
            yield Breach(f"'{tensor.name}' is int8", {"tensor": tensor.name, "type": "int8"}, "uint8 or float")
            break
    if node.output.dtype is DType.INT32:
        yield Breach("its result is int32", {"type": "int32"}, "uint8")


@rule("vip8000.matmul-adjoint", operators=["BATCH_MATMUL"], says="one input is transposed at most",
      why="the driver has no such form", source=MAP, versions=VERSIONS)
def adjoint(node: Node, variant: Variant) -> Iterator[Breach]:
    """Both inputs transposed."""
    op = node.op
    assert isinstance(op, BatchMatMul)
    if op.adj_x and op.adj_y:
        yield Breach("adj_x and adj_y are both set", {"transposed": 2, "limit": 1}, "one of them")


@rule("vip8000.select-type", operators=["SELECT", "SELECT_V2"], says="8-bit values and flags are not selected",
      why=_NO_TYPE, source=MAP, versions=VERSIONS)
def select(node: Node, variant: Variant) -> Iterator[Breach]:
    """Selected 8-bit values."""
    for tensor in (t for t in (*node.inputs[1:], *node.outputs) if t is not None):
        if tensor.dtype in (*_EIGHT, DType.BOOL):
            yield Breach(f"'{tensor.name}' is {tensor.dtype.label}",
                         {"tensor": tensor.name, "type": tensor.dtype.label}, "float32 or int32")
            return


@rule("vip8000.arg-type", operators=["ARG_MAX", "ARG_MIN"], says="the place of an int8 value is not given as int32",
      why=_NO_TYPE, source=MAP, versions=VERSIONS)
def arg(node: Node, variant: Variant) -> Iterator[Breach]:
    """The form that quantized models have."""
    x = feature(node)
    if x is not None and x.dtype is DType.INT8 and node.output.dtype is DType.INT32:
        yield Breach("its input is int8 and its output int32", {"type": "int8"}, "uint8 values")


@rule("vip8000.quantize-type", operators=["QUANTIZE"], says="neither int16 nor int32 is turned into 8 bits",
      why=_NO_TYPE, source=MAP, versions=VERSIONS)
def requantize(node: Node, variant: Variant) -> Iterator[Breach]:
    """From 16 or 32 bits to 8."""
    x: Tensor | None = feature(node)
    if x is not None and x.dtype in (DType.INT16, DType.INT32) and node.output.dtype in _EIGHT:
        yield Breach(f"it turns {x.dtype.label} into {node.output.dtype.label}", {"type": x.dtype.label}, "int8")


@rule("vip8000.block-form", operators=["BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"], says="there are four axes and two of "
      "them are blocked", why="the driver has no other form", source=MAP, versions=VERSIONS)
def blocks(node: Node, variant: Variant) -> Iterator[Breach]:
    """Other forms than of images."""
    x, block = feature(node), node.optional(1)
    found = 0 if block is None or not block.shape else block.shape[0]
    if x is not None and (len(x.shape) != 4 or found != 2):
        yield Breach(f"{found} of {len(x.shape)} axes are blocked", {"rank": len(x.shape), "limit": 4}, "2 of 4 axes")
