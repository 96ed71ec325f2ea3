"""A host program: arithmetic behind the file's outputs that int8 cannot hold, as plain data.

Adding a small number to a large one needs more than 256 levels, as decoding boxes does: a distance of some cells to an
anchor hundreds of pixels away. Such steps are computed in float by whoever reads the outputs; this says how.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class HostConstant(msgspec.Struct, frozen=True, kw_only=True):
    """An array: element type, shape, and its bytes, compressed with zlib."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: Array) -> HostConstant:
        """Pack an array."""
        whole = np.ascontiguousarray(array)
        return cls(dtype=whole.dtype.name, shape=array.shape, data=zlib.compress(whole.tobytes(), 9))

    def array(self) -> Array:
        """Unpack the array."""
        return np.frombuffer(zlib.decompress(self.data), np.dtype(self.dtype)).reshape(self.shape)


class HostStep(msgspec.Struct, frozen=True, kw_only=True):
    """One operator: its TFLite name, its attributes, and the values it reads and makes, by number (-1: left out)."""

    operator: str
    attributes: dict[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class HostProgram(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in order. Value i is the file's output i, dequantized; then come ``constants``, then what steps make.

    ``gives`` lists the values that take the place of the file's outputs.
    """

    takes: int
    constants: tuple[HostConstant, ...]
    steps: tuple[HostStep, ...]
    gives: tuple[int, ...]

    def describe(self) -> str:
        """Return one line per step, as a person reads it."""
        def label(number: int) -> str:
            if 0 <= number < self.takes:
                return f"output {number}"
            if number < self.takes + len(self.constants):
                constant = self.constants[number - self.takes]
                return f"constant {constant.dtype}[{','.join(map(str, constant.shape))}]"
            return f"%{number}"

        lines = [f"{', '.join(map(label, s.outputs))} = {s.operator}({', '.join(map(label, s.inputs))})"
                 for s in self.steps]
        return "\n".join([*lines, f"gives {', '.join(map(label, self.gives))}"])


def values_of(program: HostProgram, outputs: Sequence[Array]) -> dict[int, Array]:
    """Return the values known before the first step, by number."""
    known = dict(enumerate(outputs))
    return known | {program.takes + i: c.array() for i, c in enumerate(program.constants)}
