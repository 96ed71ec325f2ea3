"""The one registration of integer kernels, and what a kernel is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vitrify.core.errors import UnsupportedError, VitrifyError
from vitrify.ir.graph import Array, Node, Tensor
from vitrify.ir.operator import Operator
from vitrify.ir.quantization import Quantization

INTEGERS = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16))
"""The element types that stand for real numbers; int32 does so only as a bias."""

Kernel = Callable[["Call"], Sequence[Array]]
_KERNELS: dict[type[Operator], Kernel] = {}


def integer_kernel(*operators: type[Operator]) -> Callable[[Kernel], Kernel]:
    """Register a function as what computes these operators on quantized tensors."""
    def register(kernel: Kernel) -> Kernel:
        for operator in operators:
            if operator in _KERNELS:
                raise TypeError(f"{operator.name} has two integer kernels: {_KERNELS[operator]} and {kernel}")
            _KERNELS[operator] = kernel
        return kernel
    return register


def kernel_of(operator: type[Operator]) -> Kernel | None:
    """Return the integer kernel of an operator class."""
    return _KERNELS.get(operator)


def operators() -> tuple[type[Operator], ...]:
    """Return the operators that have an integer kernel."""
    return tuple(_KERNELS)


class Affine(NamedTuple):
    """A scale and zero point: real = scale * (q - zero)."""

    scale: np.float32
    zero: int

    @classmethod
    def of(cls, tensor: Tensor) -> Affine:
        """Return those of a tensor with one scale."""
        found = tensor.quantization
        if found is None or len(found.scale) == 0:
            raise UnsupportedError.of("ops.integer", f"'{tensor.name}' is {tensor.type} without a scale")
        return cls(np.float32(found.scale[0]), int(found.zero_point[0]) if len(found.zero_point) else 0)


@dataclass(frozen=True)
class Call:
    """One run of a node: its operator, tensors (for scales and types) and the input arrays."""

    node: Node
    arrays: Sequence[Array | None]

    @property
    def output(self) -> Affine:
        """The first output's scale and zero point."""
        return Affine.of(self.node.output)

    @property
    def dtype(self) -> np.dtype:
        """The first output's element type."""
        found = self.node.output.dtype.numpy
        assert found is not None
        return found

    def array(self, index: int) -> Array:
        """Return an input's steps."""
        found = self.arrays[index]
        assert found is not None
        return found

    def optional(self, index: int) -> Array | None:
        """Return an input's steps, None when it is left out."""
        return self.arrays[index] if index < len(self.arrays) else None

    def affine(self, index: int) -> Affine:
        """Return an input's scale and zero point."""
        return Affine.of(self.node.input(index))

    def shifted(self, index: int) -> Array:
        """Return an input's steps less its zero point, as int64."""
        return self.array(index).astype(np.int64) - self.affine(index).zero

    def scales(self, index: int) -> Quantization:
        """Return all scales of an input."""
        found = self.node.input(index).quantization
        if found is None:
            raise self.refuse(f"needs scales on input {index}")
        return found

    def clipped(self, values: Array, low: int | None = None, high: int | None = None) -> Array:
        """Return values held within the output's type, or a narrower range, in that type."""
        info = np.iinfo(self.dtype)
        return np.clip(values, info.min if low is None else low, info.max if high is None else high).astype(self.dtype)

    def refuse(self, problem: str) -> VitrifyError:
        """Build the error for what no kernel computes; ``problem`` goes on after the operator's name."""
        types = ", ".join("-" if t is None else t.dtype.label for t in self.node.inputs)
        return UnsupportedError.of("ops.integer", f"{self.node.op.kind} {problem}",
                                   where=f"node '{self.node.name}', inputs {types}")
