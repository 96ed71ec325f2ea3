"""Which version of an operator the runtime needs for an element type.

A version is the lowest that carries what a node needs. LiteRT's own tools write higher ones for some nodes whose kernel
is the same (TILE and DEPTH_TO_SPACE in int8, ABS in int32, new axes of STRIDED_SLICE, depthwise weights of 4 bits); its
reference kernels, and delegates that look at versions, do not know those. What an older runtime would compute wrongly
without a word keeps its version: STRIDED_SLICE with ``offset``.
Source: LiteRT tflite/tools/versioning/op_version.cc; the versions that LiteRT 2.3's resolvers take, asked one by one.
"""

from __future__ import annotations

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node

INT8 = {DType.INT8: 2}
INT8_INT16 = {DType.INT8: 2, DType.INT16: 3}


def types_of(node: Node) -> tuple[DType | None, ...]:
    """Return the element types of the inputs, None where one is left out."""
    return tuple(None if tensor is None else tensor.dtype for tensor in node.inputs)


def is_all(node: Node, dtype: DType) -> bool:
    """Return whether inputs 0 and 1 and the output have one element type."""
    return types_of(node)[:2] == (dtype, dtype) and node.output.dtype is dtype


def is_hybrid(node: Node) -> bool:
    """Return whether the node is float with int8 weights in input 1."""
    return types_of(node)[:2] == (DType.FLOAT32, DType.INT8) and node.output.dtype is DType.FLOAT32


def has_axis(node: Node, index: int) -> bool:
    """Return whether input ``index`` is quantized per axis."""
    quantization = node.input(index).quantization
    return quantization is not None and quantization.is_per_axis


def broadcasts_beyond_4d(node: Node) -> bool:
    """Return whether two inputs of different shapes have more than 4 axes."""
    a, b = node.input(0), node.input(1)
    return a.shape != b.shape and max(len(a.shape), len(b.shape)) > 4
