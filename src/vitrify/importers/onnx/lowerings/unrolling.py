"""Recurrent layers as their steps: one input product for all steps, then a cell per step."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.lowerings.matmul import dense
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Operator, Tensor

MAX_STEPS = 256
ACTIVATIONS: dict[str, type[Operator]] = {"sigmoid": ops.Logistic, "tanh": ops.Tanh, "relu": ops.Relu}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
States = tuple[Tensor, ...]


class Cell(ABC):
    """One direction of a recurrent layer; subclasses say what one step does.

    ``gates`` blocks stand one above the other in the kernels; ``defaults`` names the activations.
    """

    gates: int
    defaults: tuple[str, ...]
    states: int

    def __init__(self, ctx: Context, node: SourceNode, direction: int) -> None:
        self.ctx, self.node, self.direction = ctx, node, direction
        self.kernel, self.recurrent = (_part(ctx.known(node, i, "the kernel"), direction, node) for i in (1, 2))
        self.hidden = self.recurrent.shape[-1]
        rows = self.gates * self.hidden
        if self.kernel.shape[0] != rows or self.recurrent.shape != (rows, self.hidden):
            shapes = f"{list(self.kernel.shape)} and {list(self.recurrent.shape)}"
            raise node.problem(f"kernels {shapes} do not hold {self.gates} gates of {self.hidden}")
        bias = np.zeros((direction + 1, 2 * rows), np.float32)
        if ctx.present(node, 3):
            bias = ctx.known(node, 3, "the bias")
        both = _part(bias, direction, node)
        if both.shape != (2 * rows,):
            raise node.problem(f"a bias of shape {list(bias.shape)}; each direction must have {2 * rows} values")
        self.input_bias, self.recurrent_bias = both[:rows], both[rows:]
        count = len(self.defaults)
        names = node.attributes.get("activations", list(self.defaults) * (direction + 1))
        self.activations = [ACTIVATIONS[n.lower()] for n in names[count * direction : count * (direction + 1)]]

    @abstractmethod
    def bias(self) -> Array:
        """What is added to the product of input and kernel."""

    @abstractmethod
    def step(self, rows: Tensor, states: States) -> States:
        """The states after one step; ``rows`` is the input's product [batch, gates * hidden]; the first state is Y."""

    def run(self, x: Tensor, backward: bool) -> list[Tensor]:
        """Y [steps, 1, batch, hidden] and the last states [1, batch, hidden]."""
        ctx = self.ctx
        steps, batch, inputs = x.shape
        if inputs != self.kernel.shape[1]:
            raise self.node.problem(f"the input has {inputs} features, the kernel takes {self.kernel.shape[1]}")
        flat = ctx.reshape(x, (steps * batch, inputs))
        products = dense(ctx, flat, self.kernel, self.bias(), self.node.inputs[1])
        states = tuple(self._initial(5 + i, batch) for i in range(self.states))
        kept: dict[int, Tensor] = {}
        for step in range(steps)[::-1] if backward else range(steps):
            part = [slice(step * batch, (step + 1) * batch), slice(0, self.gates * self.hidden)]
            states = self.step(sliced(ctx, self.node, products, part), states)
            kept[step] = states[0]
        pieces = [ctx.reshape(kept[s], (1, 1, batch, self.hidden)) for s in range(steps)]
        return [stack(ctx, pieces, 0), *(ctx.reshape(s, (1, batch, self.hidden)) for s in states)]

    def _initial(self, index: int, batch: int) -> Tensor:
        if not self.ctx.present(self.node, index):
            return self.ctx.constant(np.zeros((batch, self.hidden), np.float32))
        state = float_input(self.ctx, self.node, index, (3,))
        if self.node.integer("layout"):
            state = self.ctx.transpose(state, (1, 0, 2))
        if state.shape[0] <= self.direction or state.shape[1:] != (batch, self.hidden):
            raise self.node.problem(f"an initial state {state.type} for {batch} x {self.hidden} values per direction")
        if state.shape[0] > 1:
            part = [slice(self.direction, self.direction + 1), slice(0, batch), slice(0, self.hidden)]
            state = sliced(self.ctx, self.node, state, part)
        return self.ctx.reshape(state, (batch, self.hidden))

    def split(self, rows: Tensor, count: int) -> tuple[Tensor, ...]:
        """The gates' blocks of [batch, count * hidden]."""
        return self.ctx.emit_all(ops.Split(num_splits=count), [np.array(1, np.int32), rows])


def _part(array: Array, direction: int, node: SourceNode) -> Array:
    if array.ndim < 2 or array.shape[0] <= direction:
        raise node.problem(f"a constant of shape {list(array.shape)} has nothing for direction {direction}")
    return np.asarray(array[direction])


def is_zero(x: Tensor) -> bool:
    """True for a constant of zeros, such as the states that nobody gives."""
    return x.data is not None and not x.data.any()


def stack(ctx: Context, parts: list[Tensor], axis: int) -> Tensor:
    """The parts joined along an axis; a single one as it is."""
    return parts[0] if len(parts) == 1 else ctx.emit(ops.Concatenation(axis=axis), parts)


def unroll(ctx: Context, node: SourceNode, cell: type[Cell]) -> None:
    """Lower a recurrent node: X [steps, batch, inputs] to Y [steps, directions, batch, hidden] and the last states."""
    x = float_input(ctx, node, 0, (3,))
    _check(ctx, node, x, cell)
    if node.integer("layout"):
        x = ctx.transpose(x, (1, 0, 2))
    backwards = _DIRECTIONS[node.string("direction", "forward")]
    results = [cell(ctx, node, i).run(x, backward) for i, backward in enumerate(backwards)]
    outputs = [stack(ctx, [r[i] for r in results], 1 if i == 0 else 0) for i in range(cell.states + 1)]
    if node.integer("layout"):
        outputs = [ctx.transpose(outputs[0], (2, 0, 1, 3)), *(ctx.transpose(o, (1, 0, 2)) for o in outputs[1:])]
    ctx.bind(node, *outputs)


def _check(ctx: Context, node: SourceNode, x: Tensor, cell: type[Cell]) -> None:
    steps, batch = (x.shape[1], x.shape[0]) if node.integer("layout") else x.shape[:2]
    if steps > MAX_STEPS:
        text = f"{steps} time steps; at most {MAX_STEPS} are unrolled"
        raise node.unsupported(text, "use a shorter --shape for the sequence")
    direction = node.string("direction", "forward")
    if direction not in _DIRECTIONS:
        raise node.problem(f"direction '{direction}' is not one of {', '.join(_DIRECTIONS)}")
    count = len(cell.defaults) * len(_DIRECTIONS[direction])
    names = node.attributes.get("activations", list(cell.defaults) * len(_DIRECTIONS[direction]))
    if len(names) != count or any(str(n).lower() not in ACTIVATIONS for n in names):
        raise node.unsupported(f"activations {names}")
    if node.number("clip") or node.integer("input_forget"):
        raise node.unsupported("clip or input_forget")
    if ctx.present(node, 4):
        lengths = ctx.known(node, 4, "the sequence lengths")
        if lengths.size != batch or (lengths != steps).any():
            raise node.unsupported(f"sequences of lengths {lengths.tolist()}; all must have {steps} steps")
