"""What each way to round weights changed and won: the error that a layer's output has from its weights, by steps.

What calibration saw of a layer's inputs, how they vary together and what they are on average, gives the mean squared
error of its output for any rounding of its weights, without running anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np

from vitrify.ir import LedgerEntry, Node, Operator
from vitrify.ir.ledger import Exactness
from vitrify.ops import DepthwiseConv2D
from vitrify.quant.calibration.moments import Array, Moments
from vitrify.quant.planning import Plan, Weights
from vitrify.quant.scales import WEIGHT_HIGH

_EXACT = 200.0
"""Decibels beyond which nothing was rounded at all."""
SUMMARY = {
    "weight-clipping": "scales of weights narrowed, a few weights cut, for the least error of a layer's output",
    "rounding": "weights rounded against each other, so that their errors cancel in a layer's output",
    "bias-correction": "the mean error that rounded weights bring taken out of the biases",
}
"""The steps in the order in which they build on each other."""

TINY = 1e-30


def weights_won(plan: Plan, moments: Mapping[str, Moments], count: int) -> list[LedgerEntry]:
    """Return a line for each step that changed something.

    Args:
        plan: what becomes of the weights; not applied yet.
        moments: what was seen of the layers' inputs, by node name.
        count: the nodes of the graph.
    """
    found: dict[str, list[tuple[str, float, float]]] = {name: [] for name in SUMMARY}
    changed = dict.fromkeys(SUMMARY, 0)
    for node, weights in plan.weights.items():
        for name in _changes(weights):
            changed[name] += 1
        if (seen := moments.get(node.name)) is not None:
            for name, before, after in _measured(node, weights, seen):
                found[name].append((node.name, before, after))
    return [_entry(name, changed[name], found[name], count) for name in SUMMARY if changed[name]]


def _entry(name: str, changes: int, rows: list[tuple[str, float, float]], count: int) -> LedgerEntry:
    note = "not measured: no layer's inputs were observed for it"
    if rows:
        before, after = median(b for _, b, _ in rows), median(a for _, _, a in rows)
        if min(before, after) >= _EXACT:
            return LedgerEntry(name=name, summary=SUMMARY[name], changes=changes, nodes_before=count, nodes_after=count,
                               note="the weights are whole steps already: nothing was lost, with or without")
        best = max(rows, key=lambda row: row[2] - row[1])
        note = (f"the output of the median layer keeps {after:.1f} dB of its weights' rounding, {before:.1f} without; "
                f"most in '{best[0]}', {best[2] - best[1]:+.1f} dB; {len(rows)} of {changes} layers measured, on the "
                "calibration samples")
    return LedgerEntry(name=name, summary=SUMMARY[name], changes=changes, nodes_before=count, nodes_after=count,
                       exactness=Exactness.APPROXIMATE, examples=[row[0] for row in rows[:5]], note=note)


def _changes(weights: Weights) -> Iterator[str]:
    """The steps that changed a layer."""
    if weights.extent is not None and (weights.quantization.scale < weights.extent.scale).any():
        yield "weight-clipping"
    if weights.levels is not None:
        yield "rounding"
    if weights.means is not None and weights.bias is not None:
        yield "bias-correction"


def _measured(node: Node, weights: Weights, seen: Moments) -> list[tuple[str, float, float]]:
    """What a layer's output keeps before and after each step that changed it, in dB."""
    key = b"won" + weights.quantization.scale.tobytes() + bytes([weights.levels is None, weights.means is None])
    if key not in seen.won:
        seen.won[key] = list(_steps(node, weights, seen))
    return seen.won[key]


def _steps(node: Node, weights: Weights, seen: Moments) -> Iterator[tuple[str, float, float]]:
    exact = node.input(weights.index).data
    assert exact is not None
    rows = _rows(node.op, exact.astype(np.float32), len(seen.first))
    if rows is None or seen.second.shape != (rows.shape[0], rows.shape[2], rows.shape[2]):
        return
    spread, centred = seen.spread(False), seen.spread(True)
    if not np.isfinite(spread).all():
        return
    power = _power(rows, spread)

    def nearest(scale: Array) -> Array:
        channels = rows.shape[0] * rows.shape[1]
        steps = np.broadcast_to(scale.astype(np.float32), (channels,)).reshape(*rows.shape[:2], 1)
        return np.clip(np.rint(rows / steps), -WEIGHT_HIGH, WEIGHT_HIGH) * steps

    def kept(made: Array, moments: Array) -> float:
        return float(10 * np.log10(max(power, TINY) / max(_power(made - rows, moments), TINY)))

    corrected = weights.means is not None and weights.bias is not None
    judged = centred if corrected else spread
    made = nearest(weights.quantization.scale)
    changes = list(_changes(weights))
    if "weight-clipping" in changes and weights.extent is not None:
        yield "weight-clipping", kept(nearest(weights.extent.scale), judged), kept(made, judged)
    if weights.levels is not None:
        rounded = weights.quantization.dequantize(weights.levels)
        before, levels = kept(made, judged), _rows(node.op, rounded, len(seen.first))
        made = made if levels is None else levels
        yield "rounding", before, kept(made, judged)
    if corrected:
        yield "bias-correction", kept(made, spread), kept(made, centred)


def _rows(op: Operator, weights: Array, groups: int) -> Array | None:
    """Weights as [groups, outputs, inputs]; None where they do not part so."""
    if isinstance(op, DepthwiseConv2D):
        return weights.reshape(-1, weights.shape[-1]).T[:, None, :]
    return None if weights.shape[0] % groups else weights.reshape(groups, weights.shape[0] // groups, -1)


def _power(rows: Array, moments: Array) -> float:
    """The mean square of the outputs that these weights make."""
    return float(np.einsum("gon,gon->", np.matmul(rows, moments.astype(np.float32)), rows))
