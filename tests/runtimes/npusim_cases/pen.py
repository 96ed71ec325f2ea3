"""What a case is, and the pen that draws its model: one operator or two, with scales and weights of its own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vitrify import tflite
from vitrify.ir import DType, Graph, Model, Operator, Origin, Quantization, Tensor

INT8, INT16 = DType.INT8, DType.INT16
SCALES = {INT8: 0.05, INT16: 3e-4}


class Pen:
    """Draws into one graph; tensors are of the case's type unless another is named."""

    def __init__(self, name: str, dtype: DType = INT8) -> None:
        self.graph, self.dtype, self._count = Graph(name), dtype, 0
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    @property
    def wide(self) -> bool:
        """True in 16 bits."""
        return self.dtype is INT16

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def affine(self, scale: float | None, zero: int, dtype: DType | None = None) -> Quantization:
        """A scale, by default that of the type; 16 bits have no zero point."""
        dtype = dtype or self.dtype
        return Quantization.per_tensor(SCALES.get(dtype, 0.05) if scale is None else scale,
                                       0 if dtype is INT16 else zero)

    def x(self, *shape: int, scale: float | None = None, zero: int = -3, dtype: DType | None = None) -> Tensor:
        """An input."""
        found = Tensor(self._name("x"), dtype or self.dtype, shape, quantization=self.affine(scale, zero, dtype))
        self.graph.inputs.append(found)
        return found

    def ints(self, *values: int) -> Tensor:
        """A row of int32."""
        data = np.array(values, np.int32)
        return Tensor(self._name("ints"), DType.INT32, data.shape, data=data)

    def table(self, values: object) -> Tensor:
        """A table of int32, or one number."""
        data = np.asarray(values, np.int32)
        return Tensor(self._name("ints"), DType.INT32, data.shape, data=data)

    def values(self, *shape: int, scale: float | None = None, zero: int = 2, dtype: DType | None = None) -> Tensor:
        """A constant operand."""
        dtype = dtype or self.dtype
        info = np.iinfo(dtype.numpy)
        data = self.random.integers(info.min, info.max, shape, dtype.numpy, endpoint=True)
        return Tensor(self._name("values"), dtype, shape, data=np.asarray(data),
                      quantization=self.affine(scale, zero, dtype))

    def weights(self, *shape: int, axis: int | None = 0, spread: int = 18, scale: float = 0.01) -> Tensor:
        """Weights of one scale (axis None), or of one for each index of the axis."""
        data = np.clip(np.rint(self.random.laplace(0, spread, shape)), -127, 127).astype(np.int8)
        scales = Quantization.per_tensor(scale) if axis is None else Quantization.per_axis(
            (scale * self.random.uniform(0.3, 2.0, shape[axis])).astype(np.float32), axis)
        return Tensor(self._name("weights"), INT8, shape, data=data, quantization=scales)

    def bias(self, x: Tensor, weights: Tensor, count: int, size: int = 2000) -> Tensor:
        """A bias of the scales that go with an input and its weights."""
        assert x.quantization is not None
        assert weights.quantization is not None
        kind = np.int64 if self.wide else np.int32
        data = self.random.integers(-size, size, count).astype(kind)
        scales = (weights.quantization.scale * x.quantization.scale[0]).astype(np.float32)
        found = Quantization.per_axis(scales, 0) if len(scales) > 1 else Quantization.per_tensor(float(scales[0]))
        return Tensor(self._name("bias"), DType.INT64 if self.wide else DType.INT32, (count,), data=data,
                      quantization=found)

    def op(self, op: Operator, inputs: Sequence[Tensor | None], scale: float | None = None, zero: int = 4, *,
           like: Tensor | None = None, dtype: DType | None = None, shape: Sequence[int] | None = None) -> Tensor:
        """Add an operator with one output; ``like`` is a tensor whose scale the output has too."""
        return self.ops(op, inputs, scale, zero, like=like, dtype=dtype, shape=shape)[0]

    def ops(self, op: Operator, inputs: Sequence[Tensor | None], scale: float | None = None, zero: int = 4, *,
            like: Tensor | None = None, dtype: DType | None = None,
            shape: Sequence[int] | None = None) -> list[Tensor]:
        """Add an operator; return its outputs."""
        shapes = [shape] if shape is not None else [one.shape for one in op.infer(inputs)]
        dtype = dtype or self.dtype
        plain = dtype in (DType.INT32, DType.INT64)
        outputs = [Tensor(self._name(op.kind.lower()), dtype, one, quantization=None if plain else
                          like.quantization if like is not None else self.affine(scale, zero, dtype))
                   for one in shapes]
        self.graph.add(op, inputs, outputs, name=outputs[0].name, origin=Origin.of(outputs[0].name, op.kind))
        return outputs


Draw = Callable[[Pen], "Tensor | list[Tensor]"]


@dataclass(frozen=True)
class Case:
    """One small model. ``operator`` is what it tries; ``dtype`` the type of what is computed.

    Of the notes, ``positive`` keeps the inputs above zero.
    """

    operator: str
    what: str
    draw: Draw
    dtype: DType = INT8
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Readable and unique."""
        return f"{self.operator} {self.what}{' int16' if self.dtype is INT16 else ''}"

    def save(self, path: Path) -> Path:
        """Write the model."""
        pen = Pen(self.name, self.dtype)
        drawn = self.draw(pen)
        pen.graph.set_outputs(drawn if isinstance(drawn, list) else [drawn])
        tflite.write(Model(graphs=[pen.graph]), path)
        return path


Table = Callable[[], Iterator[Case]]
_TABLES: list[Table] = []


def table(source: Table) -> Table:
    """Register a generator of cases."""
    _TABLES.append(source)
    return source


def both(operator: str, what: str, draw: Draw, **notes: Any) -> Iterator[Case]:
    """The case in 8 bits and in 16; the notes are those of 16."""
    yield Case(operator, what, draw)
    yield Case(operator, what, draw, INT16, notes)


def all_cases() -> list[Case]:
    """Return every case, in the order of the tables."""
    import importlib

    for family in ("windows", "products", "arithmetic", "curves", "reductions", "moves", "recurrent"):
        importlib.import_module(f"npusim_cases.{family}")
    found = [case for source in _TABLES for case in source()]
    names = [case.name for case in found]
    assert len(set(names)) == len(names), {name for name in names if names.count(name) > 1}
    return found
