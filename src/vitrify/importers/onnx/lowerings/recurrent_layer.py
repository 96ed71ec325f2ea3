"""What a recurrent node says: its sequence, and the weights and states of each direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.recurrent_activations import Named, named
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.joints import joined, parts, pieces
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Kind:
    """One of the recurrent operators: gates, default activations, states, and whether it has peepholes."""

    gates: int
    defaults: tuple[str, ...]
    states: int
    peepholes: bool = False


@dataclass(frozen=True)
class Side:
    """One direction: kernels [gates * hidden, ...], both biases, peepholes [hidden] of three gates, first states.

    A state of None is zeros.
    """

    backward: bool
    kernel: Value
    recurrent: Value
    input_bias: Value
    recurrent_bias: Value
    peepholes: tuple[Value, ...] | None
    states: tuple[Tensor | None, ...]
    activations: tuple[Named, ...]


@dataclass(frozen=True)
class Layer:
    """A recurrent node: x [steps, batch, inputs], the sides, and the lengths where sequences end early."""

    ctx: Context
    node: SourceNode
    x: Tensor
    hidden: int
    sides: tuple[Side, ...]
    lengths: Value | None

    @property
    def steps(self) -> int:
        """How many steps the sequences have."""
        return self.x.shape[0]

    @property
    def batch(self) -> int:
        """How many sequences there are."""
        return self.x.shape[1]


def layer_of(ctx: Context, node: SourceNode, kind: Kind) -> Layer:
    """Read a recurrent node.

    Raises:
        ModelError: shapes do not fit each other.
        UnsupportedError: an unknown activation.
    """
    x = float_input(ctx, node, 0, (3,))
    if node.integer("layout"):
        x = ctx.transpose(x, (1, 0, 2))
    direction = node.string("direction", "forward")
    if direction not in DIRECTIONS:
        raise node.problem(f"direction '{direction}' is not one of {', '.join(DIRECTIONS)}")
    ways = DIRECTIONS[direction]
    kernel, recurrent = _weights(ctx, node, 1), _weights(ctx, node, 2)
    hidden = recurrent.shape[-1]
    if node.integer("hidden_size", hidden) != hidden:
        raise node.problem(f"hidden_size is {node.integer('hidden_size')}, and its weights {list(recurrent.shape)} are "
                           f"for {hidden}")
    rows = kind.gates * hidden
    if kernel.shape != (len(ways), rows, x.shape[2]) or recurrent.shape != (len(ways), rows, hidden):
        raise node.problem(
            f"kernels {list(kernel.shape)} and {list(recurrent.shape)} do not hold {kind.gates} gates of {hidden} "
            f"for {len(ways)} direction(s) of {x.shape[2]} inputs"
        )
    chosen = named(node, kind.defaults, len(ways))
    kernels, recurrents = pieces(ctx, node, kernel, 0), pieces(ctx, node, recurrent, 0)
    biases, holes = _biases(ctx, node, len(ways), rows), _peepholes(ctx, node, len(ways), hidden, kind)
    states = [_states(ctx, node, 5 + i, len(ways), (x.shape[1], hidden)) for i in range(kind.states)]
    count = len(kind.defaults)
    sides = tuple(
        Side(way, kernels[i], recurrents[i], *biases[i], holes[i], tuple(s[i] for s in states),
             tuple(chosen[count * i : count * (i + 1)]))
        for i, way in enumerate(ways)
    )
    return Layer(ctx, node, x, hidden, sides, _lengths(ctx, node, x))


def _weights(ctx: Context, node: SourceNode, index: int) -> Value:
    value = ctx.value(node, index)
    return float_input(ctx, node, index, (3,)) if isinstance(value, Tensor) else value.astype(np.float32, copy=False)


def _biases(ctx: Context, node: SourceNode, directions: int, rows: int) -> list[tuple[Value, Value]]:
    if not ctx.present(node, 3):
        zeros = np.zeros(rows, np.float32)
        return [(zeros, zeros)] * directions
    value = _weights_2d(ctx, node, 3, (directions, 2 * rows), "a bias")
    halves = [parts(ctx, node, side, [rows, rows], 0) for side in pieces(ctx, node, value, 0)]
    return [(first, second) for first, second in halves]


def _weights_2d(ctx: Context, node: SourceNode, index: int, shape: tuple[int, int], what: str) -> Value:
    value = ctx.value(node, index)
    if value.shape != shape:
        raise node.problem(f"{what} of shape {list(value.shape)}; {list(shape)} is needed")
    return value if isinstance(value, Tensor) else value.astype(np.float32, copy=False)


def _peepholes(
    ctx: Context, node: SourceNode, directions: int, hidden: int, kind: Kind
) -> list[tuple[Value, ...] | None]:
    if not kind.peepholes or not ctx.present(node, 7):
        return [None] * directions
    value = _weights_2d(ctx, node, 7, (directions, 3 * hidden), "peepholes")
    if not isinstance(value, Tensor) and not value.any():
        return [None] * directions
    return [tuple(parts(ctx, node, side, [hidden] * 3, 0)) for side in pieces(ctx, node, value, 0)]


def _states(ctx: Context, node: SourceNode, index: int, directions: int, shape: tuple[int, int]) -> list[Tensor | None]:
    """The first state of each direction, None where it is zeros."""
    known = ctx.array(node, index)
    if not ctx.present(node, index) or (known is not None and not known.any()):
        return [None] * directions
    state = float_input(ctx, node, index, (3,))
    if node.integer("layout"):
        state = ctx.transpose(state, (1, 0, 2))
    if state.shape != (directions, *shape):
        raise node.problem(
            f"an initial state {state.type} for {directions} direction(s) of {shape[0]} x {shape[1]} values"
        )
    found = pieces(ctx, node, state, 0)
    return [None if is_zero(part) else part for part in found if isinstance(part, Tensor)]


def is_zero(x: Tensor) -> bool:
    """True for a constant of zeros."""
    return x.data is not None and not x.data.any()


def _lengths(ctx: Context, node: SourceNode, x: Tensor) -> Value | None:
    """The lengths of the sequences; None when all are whole."""
    if not ctx.present(node, 4):
        return None
    lengths = ctx.value(node, 4)
    steps, batch = x.shape[:2]
    if lengths.shape != (batch,):
        raise node.problem(f"{list(lengths.shape)} sequence lengths for a batch of {batch}")
    if isinstance(lengths, Tensor):
        return lengths
    if lengths.min() < 0 or lengths.max() > steps:
        raise node.problem(f"sequence lengths {lengths.tolist()[:8]} of sequences with {steps} steps")
    return None if (lengths == steps).all() else lengths


def added(ctx: Context, node: SourceNode, a: Value, b: Value) -> Value:
    """The sum of two biases."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.asarray(a + b)
    return ctx.emit(ops.Add(), [a, b], aside=True)


def halved(ctx: Context, node: SourceNode, bias: Value, first: int) -> tuple[Value, Value]:
    """A bias with zeros from ``first`` on, and one with zeros before."""
    rest = bias.shape[0] - first
    low, high = parts(ctx, node, bias, [first, rest], 0)
    zeros: list[Array] = [np.zeros(first, np.float32), np.zeros(rest, np.float32)]
    return joined(ctx, node, [low, zeros[1]], 0), joined(ctx, node, [zeros[0], high], 0)
