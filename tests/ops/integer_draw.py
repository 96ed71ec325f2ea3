"""Random quantized models of one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vitrify.ir import DType, Graph, Model, Operator, Quantization, Tensor

Made = tuple[Model, list[np.ndarray]]
DRAWS: dict[str, Callable[[np.random.Generator], Made]] = {}
"""Every kind of case by its label, such as "ADD int8"."""


def drawn(name: str, *dtypes: str) -> Callable[[Callable[[Draw], None]], Callable[[Draw], None]]:
    """Register what draws cases of an operator, for each element type."""
    def register(make: Callable[[Draw], None]) -> Callable[[Draw], None]:
        for dtype in dtypes:
            def one(rng: np.random.Generator, dtype: str = dtype) -> Made:
                draw = Draw(rng, np.dtype(dtype))
                make(draw)
                return draw.model, draw.arrays
            assert f"{name} {dtype}" not in DRAWS
            DRAWS[f"{name} {dtype}"] = one
        return make
    return register


class Draw:
    """One case being drawn: a graph of one operator, whose inputs come as they are asked for."""

    def __init__(self, rng: np.random.Generator, dtype: np.dtype) -> None:
        self.rng, self.dtype = rng, dtype
        self.model = Model(graphs=[Graph()])
        self.arrays: list[np.ndarray] = []

    @property
    def is_wide(self) -> bool:
        return self.dtype == np.int16

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def among(self, values: Sequence[Any]) -> Any:
        return values[self.rng.integers(len(values))]

    def size(self, most: int, least: int = 1) -> int:
        return int(self.rng.integers(least, most + 1))

    def shape(self, ranks: Sequence[int] = (1, 2, 3, 4), most: int = 7) -> tuple[int, ...]:
        return tuple(self.size(most) for _ in range(self.among(ranks)))

    def pair(self, ranks: Sequence[int] = (1, 2, 3, 4), most: int = 6) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two shapes that broadcast; half of the time they are equal."""
        shape = self.shape(ranks, most)
        if self.chance(0.5):
            return shape, shape
        other = tuple(1 if self.chance(0.4) else extent for extent in shape)[self.size(len(shape) - 1, 0):]
        return (other, shape) if self.chance(0.3) else (shape, other)

    def scale(self, low: float = 1e-4, high: float = 1.0) -> float:
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def affine(self, scale: float | None = None, zero: int | None = None) -> Quantization:
        """A scale, and a zero point: 0 for 16 bits, else any, often an end of the range."""
        info = np.iinfo(self.dtype)
        if zero is None:
            ends = (0, info.min, info.max)
            zero = 0 if self.is_wide else self.among(ends) if self.chance(0.4) else self.size(info.max, info.min)
        return Quantization.per_tensor(self.scale() if scale is None else scale, zero)

    def steps(self, shape: Sequence[int], dtype: np.dtype | None = None, low: int | None = None) -> np.ndarray:
        """Random steps; some arrays hold many ends of the range, some only small steps."""
        info = np.iinfo(dtype or self.dtype)
        low = info.min if low is None else low
        values = self.rng.integers(low, info.max + 1, shape)
        kind = self.rng.random()
        if kind < 0.25:
            values = np.where(self.rng.random(shape) < 0.5, self.rng.choice([low, info.max], shape), values)
        elif kind < 0.4:
            values = np.clip(values // max(1, (info.max - info.min) // 16), low, info.max)
        return np.asarray(values).astype(info.dtype)

    def x(self, shape: Sequence[int], q: Quantization | None, steps: np.ndarray | None = None) -> Tensor:
        """An input of the model."""
        steps = self.steps(shape) if steps is None else steps
        tensor = Tensor(f"input{len(self.arrays)}", DType.of(steps.dtype), shape, quantization=q)
        self.model.main.inputs.append(tensor)
        self.arrays.append(steps)
        return tensor

    def constant(self, data: Any, q: Quantization | None = None, dtype: Any = None) -> Tensor:
        array = np.asarray(data, dtype)
        return Tensor(f"constant{self.rng.integers(1 << 30)}", DType.of(array.dtype), array.shape, data=array,
                      quantization=q)

    def ints(self, *values: int) -> Tensor:
        return self.constant(np.array(values, np.int32))

    def node(self, op: Operator, inputs: Sequence[Tensor | None], *outputs: Quantization | None,
             dtypes: Sequence[DType] = ()) -> None:
        """Add the operator, and give its outputs their scales (and types)."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        types = op.infer(list(inputs))
        made = [Tensor(f"output{i}", dtypes[i] if dtypes else t.dtype, t.shape,
                       quantization=outputs[i] if i < len(outputs) else None) for i, t in enumerate(types)]
        graph = self.model.main
        graph.set_outputs(graph.add(op, list(inputs), made).outputs)
