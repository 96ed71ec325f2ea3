"""The passes over a graph with the file's own scales, in order, and what they tell."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.ir import Model, Node
from vitrify.passes.base import Pass, Runner
from vitrify.passes.quantized.absorbing import AbsorbSteps
from vitrify.passes.quantized.boundary import StepsAtBoundary
from vitrify.passes.quantized.fixed import ReadFixedOutput
from vitrify.passes.quantized.moving import HoistQuantize, MeetQuantize, SinkDequantize
from vitrify.passes.quantized.scaling import ScaleBeforeQuantize, ScaleSteps
from vitrify.passes.quantized.signed import SignedSteps
from vitrify.passes.quantized.steps import is_bridge

MOVING: tuple[type[Pass], ...] = (SinkDequantize, MeetQuantize, HoistQuantize, MeetQuantize)
SHOWN = 8
ROUNDS = 16
"""How often moving, scaling and absorbing may feed each other; three do for every model seen."""


def has_steps(model: Model) -> bool:
    """True for a model that was imported with QUANTIZE and DEQUANTIZE around float operators."""
    return "steps" in model.extras and any(is_bridge(n) and _has_steps(n) for g in model.graphs for n in g)


def _has_steps(node: Node) -> bool:
    return any(t is not None and t.quantization is not None and not t.dtype.is_float
               for t in (*node.inputs, *node.outputs))


def keep_steps(runner: Runner, cleanup: Sequence[type[Pass]]) -> list[Finding]:
    """Make integer operators of what stands between the file's scales; returns what is worth knowing."""
    model = runner.model
    runner.apply(SignedSteps())
    absorb = AbsorbSteps(model.extras.get("steps", {}))
    absorbed = 0
    for _ in range(ROUNDS):
        runner.run(MOVING)
        changed = runner.apply(again := absorb.again())
        absorb.remember(again)
        absorbed += changed
        if not changed + runner.run((ScaleSteps, ScaleBeforeQuantize), rounds=1):
            break
    runner.run((ReadFixedOutput,))
    runner.apply(StepsAtBoundary())
    runner.run(cleanup)
    if not absorbed:
        return []
    return [_kept(absorbed, absorb), *_rounded(absorb), *_islands(model)]


def _kept(absorbed: int, absorb: AbsorbSteps) -> Finding:
    count = len(absorb.changed_scales)
    return Finding(
        code="quant.own-scales", severity=Severity.INFO,
        headline=f"the model is quantized already: {counted(absorbed, 'operator')} computed with the file's own scales",
        why=f"the kernels of {count} have an output scale of their own; a QUANTIZE follows where it matters" if count
        else "",
        help="no calibration is needed; to calibrate anew, give the float model")


def _rounded(absorb: AbsorbSteps) -> list[Finding]:
    names = list(dict.fromkeys(absorb.rounded_weights))
    if not names:
        return []
    return [Finding(
        code="quant.weights-again", severity=Severity.WARNING, where=_listed(names),
        headline=f"weights are rounded again, to symmetric int8: {counted(len(names), 'operator')}",
        why="integer kernels take weights with zero point 0 and steps within -127 to 127; these have more",
        help="quantize with symmetric signed weights: quantize_static(..., weight_type=QuantType.QInt8)")]


def _islands(model: Model) -> list[Finding]:
    left = [n for g in model.graphs for n in g if not is_bridge(n) and any(t.dtype.is_float for t in n.outputs)]
    if not left:
        return []
    kinds = ", ".join(f"{sum(n.op.kind == k for n in left)} {k}" for k in dict.fromkeys(n.op.kind for n in left))
    names = list(dict.fromkeys(str(n.origin) if n.origin.sources else n.name for n in left))
    return [Finding(
        code="quant.float-islands", severity=Severity.WARNING, where=_listed(names),
        headline=f"left in float: {counted(len(left), 'operator')}: {kinds}",
        why="the file has no scale on both sides of them, or there is no integer kernel for them",
        help="they run on the CPU between DEQUANTIZE and QUANTIZE; quantize the float model for a full-integer one")]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{n}'" for n in names[:SHOWN])
    return f"nodes {shown}" + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")

