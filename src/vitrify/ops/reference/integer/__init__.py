"""What LiteRT's reference kernels compute on quantized tensors, in numpy, to the bit: a family per file.

A kernel is registered for its operators with ``@integer_kernel``; ``evaluate_integer`` runs a node. What differs
between LiteRT's own kernels is told in docs/integer_arithmetic.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.ir.graph import Array, Node, Tensor
from vitrify.ops.reference.integer import (  # noqa: F401  (each registers its kernels)
    activation,
    arithmetic,
    conversion,
    lstm,
    matmul,
    moves,
    pooling,
    reductions,
    resize,
    softmax,
    tables,
)
from vitrify.ops.reference.integer.registry import INTEGERS, Call, integer_kernel, kernel_of, operators

__all__ = ["Call", "evaluate_integer", "integer_kernel", "is_quantized", "kernel_of", "operators"]


def is_quantized(node: Node) -> bool:
    """True when the node reads or gives integers that stand for real numbers."""
    return any(map(_holds_steps, node.inputs)) or any(map(_holds_steps, node.outputs))


def _holds_steps(tensor: Tensor | None) -> bool:
    return (tensor is not None and tensor.quantization is not None and len(tensor.quantization.scale) > 0
            and tensor.dtype.numpy in INTEGERS)


def evaluate_integer(node: Node, arrays: Sequence[Array | None]) -> list[Array]:
    """Return the outputs of a quantized node, as LiteRT's reference kernel computes them.

    Raises:
        UnsupportedError: the operator, or these types, have no integer kernel here.
    """
    call = Call(node, arrays)
    kernel = kernel_of(type(node.op))
    if kernel is None:
        raise call.refuse("has no integer kernel")
    return list(kernel(call))
