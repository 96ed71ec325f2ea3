"""Loop and Scan, round by round. Source: ONNX operator reference, Loop-21, Scan-8, Scan-21."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.bundles import Bundle
from vitrify.importers.onnx.context import Context, Poison
from vitrify.importers.onnx.controls.registry import (
    Walk,
    as_flag,
    control,
    give,
    inner,
    open_condition,
    poison,
    settled,
    size_of,
)
from vitrify.importers.onnx.parts.joints import pieces, stacked
from vitrify.importers.onnx.registry import axis_of
from vitrify.importers.onnx.source import SourceGraph, SourceNode
from vitrify.ir import Tensor

MOST_NODES = 20_000
"""How many nodes the rounds of all loops in a model may make: a few bytes of a file can ask for any number."""

MOST_ELEMENTS = 2**24
"""Of the constants that rounds give out, all together."""


def spend(walk: Walk, node: SourceNode, body: SourceGraph, rounds: int | None, times: int = 1) -> None:
    """Count the nodes of ``times`` rounds.

    Raises:
        UnsupportedError: there are too many.
    """
    walk.context.unrolled += (size_of(body) + 1) * times
    if walk.context.unrolled > MOST_NODES:
        count = f"{rounds} rounds" if rounds is not None else "its rounds"
        raise node.unsupported(
            f"unrolling {count} of {size_of(body)} nodes makes more than {MOST_NODES:,}, the most that loops may make",
            "use a shorter --shape for what is looped over, or run the loop in the application around its body",
        )


def one_round(walk: Walk, node: SourceNode, body: SourceGraph, given: Sequence[Any]) -> list[Any]:
    """Run the body once and return what it gives.

    Raises:
        UnsupportedError: the known values that rounds have given so far are too many.
    """
    results = inner(walk, body, dict(zip([v.name for v in body.inputs], given, strict=False)))
    items = [item for r in results for item in (r.items if isinstance(r, Bundle) else (r,))]
    walk.context.unrolled_elements += sum(item.size for item in items if isinstance(item, np.ndarray))
    if walk.context.unrolled_elements > MOST_ELEMENTS:
        raise node.unsupported(f"its rounds make constants of more than {MOST_ELEMENTS:,} elements")
    return results


@control("Loop")
def loop(walk: Walk, node: SourceNode) -> None:
    """The body as often as its trip count and condition say; both are known before each round."""
    context, body = walk.context, node.graph("body")
    count = settled(context.value(node, 0), context.budget) if context.present(node, 0) else None
    if isinstance(count, Tensor):
        raise open_condition(walk, node, count, f"its trip count '{node.inputs[0]}'")
    rounds = None if count is None else max(int(count.reshape(-1)[0]), 0)
    going: Any = context.value(node, 1) if context.present(node, 1) else np.array(True)
    carried = [context.values[name] for name in node.inputs[2:]]
    if len(body.inputs) != len(carried) + 2 or len(body.outputs) < len(carried) + 1:
        raise node.problem(
            f"its body takes {len(body.inputs)} and gives {len(body.outputs)} values for {len(carried)} carried ones"
        )
    kept: list[list[Any]] = [[] for _ in body.outputs[len(carried) + 1 :]]
    number = 0
    while rounds is None or number < rounds:
        going = settled(going, context.budget)
        if isinstance(going, Tensor):
            raise open_condition(walk, node, going, f"the condition of round {number}")
        if not as_flag(node, going, "the condition"):
            break
        spend(walk, node, body, rounds)
        given = [_shaped(body, 0, np.int64(number)), _shaped(body, 1, np.bool_(True)), *carried]
        going, *results = one_round(walk, node, body, given)
        carried, scans = results[: len(carried)], results[len(carried) :]
        for rows, value in zip(kept, scans, strict=True):
            rows.append(value)
        if _broken(walk, node, (going, *carried, *scans)):
            return
        number += 1
    outputs = body.outputs[len(carried) + 1 :]
    give(walk, node, [*carried, *(_gathered(walk, node, rows, v, 0) for rows, v in zip(kept, outputs, strict=True))])


def _shaped(body: SourceGraph, index: int, value: Any) -> Any:
    """A counter or condition in the rank that the body declares: a scalar, or one element."""
    return np.full((1,) * len(body.inputs[index].dims or ()), value)


def _broken(walk: Walk, node: SourceNode, values: Sequence[Any]) -> bool:
    """True when a round could not be lowered: its problems are noted, further rounds would only repeat them."""
    if not any(isinstance(value, Poison) for value in values):
        return False
    poison(walk, node)
    return True


def _gathered(walk: Walk, node: SourceNode, rows: list[Any], declared: Any, axis: int) -> Any:
    """What the rounds gave out, stacked along a new axis."""
    if rows:
        return stacked(walk.context, node, rows, axis)
    if declared.dims is None or not all(isinstance(d, int) for d in declared.dims):
        raise node.unsupported(f"it makes no round, and the shape of '{declared.name}' is not declared")
    return np.zeros((0, *declared.dims), declared.dtype or "float32")


@control("Scan")
def scan(walk: Walk, node: SourceNode) -> None:
    """The body once per index of the scanned axes; operator set 8 has a batch in front and may give lengths."""
    if node.opset < 9:
        _scan_batches(walk, node)
        return
    count = node.integer("num_scan_inputs")
    states = len(node.inputs) - count
    if count < 1 or states < 0:
        raise node.problem(f"{count} scan inputs of {len(node.inputs)} inputs")
    values = [walk.context.value(node, i) for i in range(len(node.inputs))]
    ways = _listed(node, "scan_input_directions", count)
    axes = _listed(node, "scan_input_axes", count)
    axes = [axis_of(node, a, len(v.shape)) for a, v in zip(axes, values[states:], strict=True)]
    give(walk, node, _rounds(walk, node, values[:states], values[states:], axes, ways))


def _listed(node: SourceNode, name: str, count: int) -> list[int]:
    found = node.ints(name) or [0] * count
    if len(found) != count:
        raise node.problem(f"{len(found)} {name} for {count} values")
    return found


def _rounds(
    walk: Walk, node: SourceNode, states: list[Any], scanned: list[Any], axes: list[int], ways: list[int]
) -> list[Any]:
    """The last states and the stacked outputs of a Scan over one batch."""
    body = node.graph("body")
    extents = {value.shape[axis] for value, axis in zip(scanned, axes, strict=True)}
    if len(extents) != 1 or len(body.inputs) != len(states) + len(scanned) or len(body.outputs) < len(states):
        raise node.problem(f"its body or the extents {sorted(extents)} of its scan inputs do not fit each other")
    count = extents.pop()
    outputs = body.outputs[len(states) :]
    out_ways, out_axes = (_listed(node, f"scan_output_{what}", len(outputs)) for what in ("directions", "axes"))
    parts: list[list[Any]] = []
    if count:
        spend(walk, node, body, count, count)
        parts = [pieces(walk.context, node, v, a) for v, a in zip(scanned, axes, strict=True)]
    kept: list[list[Any]] = [[] for _ in outputs]
    for number in range(count):
        given = [*states, *(p[count - 1 - number if way else number] for p, way in zip(parts, ways, strict=True))]
        results = one_round(walk, node, body, given)
        if _broken(walk, node, results):
            return results
        states, scans = results[: len(states)], results[len(states) :]
        for rows, value in zip(kept, scans, strict=True):
            rows.append(value)
    made = []
    for rows, declared, way, axis in zip(kept, outputs, out_ways, out_axes, strict=True):
        place = axis_of(node, axis, len(rows[0].shape) + 1) if rows else 0
        made.append(_gathered(walk, node, rows[::-1] if way else rows, declared, place))
    return [*states, *made]


def _scan_batches(walk: Walk, node: SourceNode) -> None:
    """Operator set 8: every batch by itself; the first input may hold lengths, which are then constants."""
    context: Context = walk.context
    count = node.integer("num_scan_inputs")
    values = [context.value(node, i) for i in range(1, len(node.inputs))]
    states = len(values) - count
    if count < 1 or states < 0:
        raise node.problem(f"{count} scan inputs of {len(values)} inputs")
    ways = _listed(node, "directions", count)
    if any(len(v.shape) < 2 for v in values[states:]):
        raise node.problem("a scan input has no batch and sequence dimensions")
    batches = values[0].shape[0]
    extent = values[states].shape[1]
    if context.present(node, 0) and (context.known(node, 0, "the sequence lengths") != extent).any():
        raise node.unsupported("sequences of different lengths", "cut them to one length")
    split = [pieces(context, node, value, 0) for value in values]
    results = [
        _rounds(walk, node, [p[b] for p in split[:states]], [p[b] for p in split[states:]], [0] * count, ways)
        for b in range(batches)
    ]
    if any(_broken(walk, node, found) for found in results):
        return
    give(walk, node, [stacked(context, node, list(column), 0) for column in zip(*results, strict=True)])
