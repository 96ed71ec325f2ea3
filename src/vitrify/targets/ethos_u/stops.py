"""Nodes on which the compiler does not fall back to the CPU but stops, and the whole model with it."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node
from vitrify.targets.ethos_u.cores import SMALL, U85
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import feature, ints, parameters, weights

_WHY = "the compiler takes the operator at first, cannot make it afterwards, and ends with an error or dies"
_SEEN = "Vela 5.2.0, compiling a model of this node alone"
_CODE = "ethos-u.stops-compiler"
_EXTENT = 65536


@rule(_CODE, operators=["HARD_SWISH"], says="HARD_SWISH is of int8 or uint8 values", why=_WHY, source=_SEEN,
      confidence="observed", fix="hard-swish")
def hard_swish(node: Node, variant: Variant) -> Iterator[Breach]:
    """The 16-bit form."""
    x = feature(node)
    if x is not None and x.dtype is DType.INT16:
        yield Breach("HARD_SWISH of int16 stops the compiler, and the whole model with it", {"type": "int16"}, "int8")


@rule(_CODE, operators=["UNIDIRECTIONAL_SEQUENCE_LSTM"], says="an LSTM is of integers", why=_WHY, source=_SEEN,
      confidence="observed", help="quantize the model, which writes such cells out: "
      "vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite")
def float_lstm(node: Node, variant: Variant) -> Iterator[Breach]:
    """The float form."""
    x = feature(node)
    if x is not None and x.dtype.is_float:
        yield Breach(f"an LSTM of {x.dtype.label} stops the compiler, and the whole model with it",
                     {"type": x.dtype.label}, "int8")


@rule(_CODE, operators=["TILE"], says="how often is constant", why=_WHY, source=_SEEN, confidence="observed")
def computed(node: Node, variant: Variant) -> Iterator[Breach]:
    """A number of repeats that is computed."""
    for tensor in parameters(node):
        if ints(tensor) is None:
            yield Breach(f"its parameter '{tensor.name}' is computed; that stops the compiler, and the whole model "
                         "with it", {"tensor": tensor.name}, "a constant")


@rule(_CODE, operators=["FULLY_CONNECTED"], says="a layer has at most 65536 inputs", why=_WHY, source=_SEEN,
      confidence="observed")
def inputs(node: Node, variant: Variant) -> Iterator[Breach]:
    """Rows that are too long."""
    weight = weights(node)
    if weight is not None and weight.data is not None and weight.shape[-1:] > (_EXTENT,):
        yield Breach(f"its {weight.shape[-1]} inputs stop the compiler, and the whole model with it",
                     {"inputs": weight.shape[-1], "limit": _EXTENT}, f"{_EXTENT}")


@rule(_CODE, operators=["ARG_MAX"], says="ARG_MAX is of 8-bit values", why=_WHY, source=_SEEN, confidence="observed")
def arg_max(node: Node, variant: Variant) -> Iterator[Breach]:
    """The 16-bit form."""
    x = feature(node)
    if x is not None and x.dtype is DType.INT16:
        yield Breach("ARG_MAX of int16 stops the compiler, and the whole model with it", {"type": "int16"}, "int8")


@rule(_CODE, operators=["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"], cores=SMALL,
      says="a resize of more than a pixel is of one sample",
      why=_WHY, source=_SEEN, confidence="observed", fix="batches")
def batch(node: Node, variant: Variant) -> Iterator[Breach]:
    """Several samples."""
    x = feature(node)
    if x is not None and len(x.shape) == 4 and x.shape[0] > 1 and x.shape[1:3] not in ((1, 1), node.output.shape[1:3]):
        yield Breach(f"a resize of {x.shape[0]} samples stops the compiler, and the whole model with it",
                     {"batch": x.shape[0], "limit": 1}, "1")


@rule(_CODE, operators=["QUANTIZE"], cores=[U85], says="QUANTIZE narrows 16-bit values at most", why=_WHY, source=_SEEN,
      confidence="observed")
def narrowing(node: Node, variant: Variant) -> Iterator[Breach]:
    """From 32 bits to fewer."""
    x = feature(node)
    if x is not None and x.dtype is DType.INT32 and node.output.dtype is not DType.INT32:
        yield Breach(f"a QUANTIZE from int32 to {node.output.dtype.label} stops the compiler, and the whole model with "
                     "it", {"type": "int32"}, "int16")
