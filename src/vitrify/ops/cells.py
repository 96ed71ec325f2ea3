"""One step of a recurrent layer, written out in plain operators with as few of them as the formulas allow.

The same forms serve importers and the pass that takes fused layers apart. What is multiplied with the input of a step
is computed for all steps at once beforehand; ``rows`` holds one step's part of it, in groups of gates.
Source of the formulas: ONNX operator reference, LSTM-14, GRU-14, RNN-14.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vitrify.ir.graph import Array, Tensor
from vitrify.ir.operator import Operator
from vitrify.ops.binary import Add, Mul, Sub
from vitrify.ops.joining import Split, SplitV
from vitrify.ops.matmul import FullyConnected

Value = Tensor | Array
Emit = Callable[[Operator, Sequence[Tensor | Array | None]], tuple[Tensor, ...]]
"""Adds an operator to a graph and gives its outputs."""
Activation = Callable[[Tensor], Tensor]
States = tuple[Tensor | None, ...]
"""The states before a step; None stands for zeros."""

MOST_STEPS = 4096
"""A sequence is written out up to this length; a longer one stays one operator."""


def in_steps(emit: Emit, products: Tensor, steps: int, hidden: int, groups: Sequence[int]) -> list[list[Tensor]]:
    """The rows of each step, group by group, from the products of all steps [steps * batch, gates * hidden]."""
    columns: Sequence[Tensor] = (products,)
    if len(groups) > 1:
        sizes = np.array([g * hidden for g in groups], np.int32)
        columns = emit(SplitV(num_splits=len(groups)), [products, sizes, np.array(1, np.int32)])
    if steps == 1:
        return [list(columns)]
    cut = [emit(Split(num_splits=steps), [np.array(0, np.int32), column]) for column in columns]
    return [list(rows) for rows in zip(*cut, strict=True)]


@dataclass(frozen=True)
class Cell:
    """What every cell has: the recurrent kernel [gates * hidden, hidden] and the names of its activations."""

    emit: Emit
    hidden: int
    recurrent: Value
    activations: tuple[Activation, ...]

    groups: ClassVar[tuple[int, ...]] = (1,)
    """How many gates each of the tensors in ``rows`` holds."""

    def step(self, rows: Sequence[Tensor], states: States) -> tuple[Tensor, ...]:
        """The states after one step; the first of them is what the layer gives out.

        ``rows``: float32[batch, gates * hidden] for each group of gates.
        """
        raise NotImplementedError

    def _one(self, op: Operator, *inputs: Tensor | Array | None) -> Tensor:
        return self.emit(op, inputs)[0]

    def _dense(self, x: Tensor, weights: Value, bias: Value | None = None) -> Tensor:
        zeros = np.zeros(weights.shape[0], np.float32)
        return self._one(FullyConnected(), x, weights, zeros if bias is None else bias)

    def _split(self, x: Tensor, count: int) -> tuple[Tensor, ...]:
        """Equal parts of the columns."""
        return self.emit(Split(num_splits=count), [np.array(1, np.int32), x])

    def _cut(self, x: Tensor, *gates: int) -> tuple[Tensor, ...]:
        """Parts of the columns, each of so many gates."""
        sizes = np.array([self.hidden * g for g in gates], np.int32)
        return self.emit(SplitV(num_splits=len(gates)), [x, sizes, np.array(1, np.int32)])


@dataclass(frozen=True)
class LstmCell(Cell):
    """Gates stand in the order input, output, forget, cell; ``peepholes`` in the order input, output, forget.

    ``coupled``: the forget gate is what the input gate leaves.
    """

    peepholes: tuple[Value, ...] | None = None
    coupled: bool = False
    groups = (4,)

    def step(self, rows: Sequence[Tensor], states: States) -> tuple[Tensor, ...]:
        """C = f * C + i * c; H = o * h(C)."""
        hidden, cell = states
        gate, candidate, output = self.activations
        (total,) = rows
        if hidden is not None:
            total = self._one(Add(), total, self._dense(hidden, self.recurrent))
        if self.peepholes is None:
            gates, c = self._cut(total, 3, 1)
            i, o, f = self._split(gate(gates), 3)
        else:
            i, o, f, c = self._split(total, 4)
            i, f = gate(self._peep(i, cell, 0)), gate(self._peep(f, cell, 2))
        if self.coupled:
            f = self._one(Sub(), np.array(1, np.float32), i)
        fresh = self._one(Mul(), i, candidate(c))
        if cell is not None:
            fresh = self._one(Add(), self._one(Mul(), f, cell), fresh)
        if self.peepholes is not None:
            o = gate(self._peep(o, fresh, 1))
        return self._one(Mul(), o, output(fresh)), fresh

    def _peep(self, x: Tensor, cell: Tensor | None, index: int) -> Tensor:
        assert self.peepholes is not None
        return x if cell is None else self._one(Add(), x, self._one(Mul(), cell, self.peepholes[index]))


@dataclass(frozen=True)
class GruCell(Cell):
    """Gates stand in the order update, reset, hidden.

    With ``bias`` [gates * hidden] the reset gate scales the recurrent product and its bias. Without, it scales the
    state: ``recurrent`` then holds update and reset, and ``inner`` [hidden, hidden] what the scaled state goes through.
    """

    bias: Value | None = None
    inner: Value | None = None
    groups = (2, 1)

    def step(self, rows: Sequence[Tensor], states: States) -> tuple[Tensor, ...]:
        """H = n + z * (H - n)."""
        (hidden,) = states
        gate, candidate = self.activations
        pair, fresh = rows
        past: Value | None = None
        if self.bias is not None and hidden is not None:
            before, past = self._cut(self._dense(hidden, self.recurrent, self.bias), 2, 1)
            pair = self._one(Add(), pair, before)
        elif self.bias is not None:
            past = self._last_bias(self.bias)
        elif hidden is not None:
            pair = self._one(Add(), pair, self._dense(hidden, self.recurrent))
        update, reset = self._split(gate(pair), 2)
        if past is not None:
            fresh = self._one(Add(), fresh, self._one(Mul(), reset, past))
        elif hidden is not None:
            assert self.inner is not None
            fresh = self._one(Add(), fresh, self._dense(self._one(Mul(), reset, hidden), self.inner))
        fresh = candidate(fresh)
        if hidden is None:
            return (self._one(Sub(), fresh, self._one(Mul(), update, fresh)),)
        return (self._one(Add(), fresh, self._one(Mul(), update, self._one(Sub(), hidden, fresh))),)

    def _last_bias(self, bias: Value) -> Value:
        """The bias of the hidden gate: what the recurrent product is for a state of zeros."""
        if isinstance(bias, np.ndarray):
            return bias[2 * self.hidden :]
        if bias.data is not None:
            return np.asarray(bias.data[2 * self.hidden :])
        sizes, axis = np.array([2 * self.hidden, self.hidden], np.int32), np.array(0, np.int32)
        return self.emit(SplitV(num_splits=2), [bias, sizes, axis])[1]


@dataclass(frozen=True)
class RnnCell(Cell):
    """One gate."""

    def step(self, rows: Sequence[Tensor], states: States) -> tuple[Tensor, ...]:
        """H = f(x + R H)."""
        (total,) = rows
        if states[0] is not None:
            total = self._one(Add(), total, self._dense(states[0], self.recurrent))
        return (self.activations[0](total),)
