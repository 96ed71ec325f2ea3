"""Recurrent layers as their steps: one input product for all steps, then a cell per step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.lowerings.recurrent_layer import Layer, Side
from vitrify.importers.onnx.parts.joints import joined
from vitrify.importers.onnx.source import Array
from vitrify.ir import Tensor
from vitrify.ops.cells import Cell, States, in_steps

MAX_STEPS = 1024
Make = Callable[[Layer, Side], tuple[Cell, Value]]
"""Gives the cell of a side, and the bias of the input product."""


def unroll(layer: Layer, make: Make) -> None:
    """Lower a recurrent node to cells and bind Y [steps, directions, batch, hidden] and the last states."""
    node = layer.node
    if layer.steps > MAX_STEPS:
        text = f"{layer.steps} time steps; at most {MAX_STEPS:,} are unrolled"
        raise node.unsupported(text, "use a shorter --shape for the sequence")
    if 0 in layer.x.shape:
        raise node.unsupported(f"an empty sequence {layer.x.type}")
    bind(layer, [_run(layer, side, *make(layer, side)) for side in layer.sides])


def bind(layer: Layer, sides: list[tuple[Tensor, tuple[Tensor, ...]]]) -> None:
    """Bind the node's outputs from what each direction gives: rows [.., hidden] and states [batch, hidden].

    Directions lie side by side, as exporters join them next; the transpose that ONNX wants goes away with theirs.
    """
    ctx, node, count = layer.ctx, layer.node, len(sides)
    steps, batch, hidden = layer.steps, layer.batch, layer.hidden
    rows = [y for y, _ in sides]
    if count == 1:
        y = ctx.reshape(rows[0], (steps, 1, batch, hidden))
    else:
        both = ctx.emit(ops.Concatenation(axis=len(rows[0].shape) - 1), rows)
        y = ctx.transpose(ctx.reshape(both, (steps, batch, count, hidden)), (0, 2, 1, 3))
    states = [
        ctx.reshape(_tensor(ctx, joined(ctx, node, column, 0)), (count, batch, hidden))
        for column in zip(*(s for _, s in sides), strict=True)
    ]
    if node.integer("layout"):
        y, states = ctx.transpose(y, (2, 0, 1, 3)), [ctx.transpose(s, (1, 0, 2)) for s in states]
    ctx.bind(node, y, *states)


def _tensor(ctx: Context, value: Value) -> Tensor:
    return ctx.constant(value) if isinstance(value, np.ndarray) else value


def _run(layer: Layer, side: Side, cell: Cell, bias: Value) -> tuple[Tensor, tuple[Tensor, ...]]:
    ctx, node = layer.ctx, layer.node
    batch, masks = layer.batch, _masks(layer)
    states: States = side.states
    kept: list[Value] = [np.zeros((batch, layer.hidden), np.float32)] * layer.steps
    active = [i for i, mask in enumerate(masks) if isinstance(mask, Tensor) or mask.any()]
    rows = _products(layer, side, bias, len(active), cell.groups)
    for index in active[::-1] if side.backward else active:
        fresh = cell.step(rows[index], states)
        mask, given = masks[index], fresh[0]
        if isinstance(mask, Tensor) or not mask.all():
            states = tuple(_chosen(layer, mask, new, old) for new, old in zip(fresh, states, strict=True))
            given = _chosen(layer, mask, fresh[0], None)
        else:
            states = fresh
        kept[index] = given
    if layer.lengths is not None and (isinstance(masks[0], Tensor) or not masks[0].all()):
        # ONNX Runtime gives zeros for a sequence of no steps, whatever its first state.
        states = tuple(s if s is None else _chosen(layer, masks[0], s, None) for s in states)
    last = tuple(_zeros(layer) if s is None else s for s in states)
    return _tensor(ctx, joined(ctx, node, kept, 0)), last


def _products(layer: Layer, side: Side, bias: Value, count: int, groups: Sequence[int]) -> list[list[Tensor]]:
    """The product of kernel and input for each of the first ``count`` steps."""
    if not count:
        return []
    ctx, node = layer.ctx, layer.node
    flat = ctx.reshape(layer.x, (layer.steps * layer.batch, layer.x.shape[2]))
    used = sliced(ctx, node, flat, [slice(0, count * layer.batch), slice(0, layer.x.shape[2])])
    kernel = ctx.constant(side.kernel, node.inputs[1]) if isinstance(side.kernel, np.ndarray) else side.kernel
    products = ctx.emit(ops.FullyConnected(), [used, kernel, bias])
    return in_steps(ctx.emit_all, products, count, layer.hidden, groups)


def _zeros(layer: Layer) -> Tensor:
    return layer.ctx.constant(np.zeros((layer.batch, layer.hidden), np.float32))


def _chosen(layer: Layer, mask: Value, new: Tensor, old: Tensor | None) -> Tensor:
    """``new`` in the sequences that have this step, ``old`` in those that are over."""
    return layer.ctx.emit(ops.SelectV2(), [mask, new, _zeros(layer) if old is None else old])


def _masks(layer: Layer) -> list[Array | Tensor]:
    """For each step which sequences have it: bool [batch, 1]."""
    lengths, batch = layer.lengths, layer.batch
    if lengths is None:
        return [np.ones((batch, 1), np.bool_)] * layer.steps
    if isinstance(lengths, np.ndarray):
        return [(lengths > step).reshape(batch, 1) for step in range(layer.steps)]
    column = layer.ctx.reshape(lengths, (batch, 1))
    return [layer.ctx.emit(ops.Greater(), [column, np.array(step, np.int32)]) for step in range(layer.steps)]
