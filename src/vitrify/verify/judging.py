"""From sums to rows and findings: what passes its gate, what does not, and where trouble begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from vitrify.core.findings import Finding, Severity
from vitrify.results import ErrorRow, GroupRow
from vitrify.verify import channels as ch
from vitrify.verify.agreement import Agreement
from vitrify.verify.gate import Gate
from vitrify.verify.metrics import ChannelSums, Sums, finite
from vitrify.verify.pairs import OutputPair, TensorPair

NEGLIGIBLE = 2.0 ** -16
"""Channels below this share of an output's largest value are not judged: 1/256 of its int8 step, noise to a reader."""

TAKE_APART = "quantize the float model with --outputs split, the default: such an output then becomes several"


@dataclass
class Judgement:
    """The rows of one stage, its findings, and its first divergence in words (None when it passed)."""

    outputs: list[ErrorRow] = field(default_factory=list)
    tensors: list[ErrorRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    divergence: str | None = None

    @property
    def ok(self) -> bool:
        """True when every output passed."""
        return all(row.ok for row in self.outputs)


def judge(stage: str, outputs: Sequence[OutputPair], tensors: Sequence[TensorPair], gate: Gate) -> Judgement:
    """Hold one stage against its gate."""
    verdict = Judgement()
    for pair in outputs:
        row, findings = _output(stage, pair, gate)
        verdict.outputs.append(row)
        verdict.findings += findings
    verdict.tensors = _inner(tensors, gate, verdict.ok)
    if not verdict.ok:
        verdict.divergence = _divergence(stage, verdict)
    return verdict


def _output(stage: str, pair: OutputPair, gate: Gate) -> tuple[ErrorRow, list[Finding]]:
    row = _row(pair.reference, pair.sums)
    row.note = str(pair.layout) if pair.layout is not None and (pair.layout.perm or pair.layout.shape) else ""
    row.saturated = pair.saturated / pair.seen if pair.seen and pair.sums.max_lsb is not None else None
    where = f"{stage}, output '{pair.reference}'"
    if pair.agreed is not None:
        return _discrete(pair.reference, pair.agreed, row, gate, where)
    findings = _whole(pair, row, gate, where)
    if pair.channels is not None and pair.channels.sums:
        judged = [group for group in ch.groups(pair.channels) if group.reach > NEGLIGIBLE * pair.sums.reference_max]
        groups = [_group(pair, pair.channels, group, gate, where) for group in judged]
        row.groups = sorted((g for g, _ in groups), key=lambda g: math.inf if g.sqnr_db is None else g.sqnr_db)
        findings += [f for _, listed in groups for f in listed]
    row.ok = not any(f.severity is Severity.ERROR for f in findings)
    row.reason = "" if row.ok else next(f.headline for f in findings if f.severity is Severity.ERROR)
    return row, findings


def _discrete(name: str, agreed: Agreement, row: ErrorRow, gate: Gate, where: str) -> tuple[ErrorRow, list[Finding]]:
    """Judge class numbers, indices and flags: a ratio of signal to error says nothing of them."""
    row.agreement, row.judged = agreed.share, False
    row.sqnr_db = row.cosine = row.max_lsb = row.relative_error = None
    differing = agreed.count - agreed.equal
    allowed = (1 - gate.agreement) * agreed.count
    findings = []
    if agreed.is_dead:
        findings.append(Finding(code="verify.agreement", where=where, help=gate.advice,
                                headline=f"'{name}' is always {agreed.candidate_first:g}; the other model's changes",
                                why=f"{agreed.count} values were compared"))
    elif differing > allowed and not (differing == 1 and agreed.count > 2 and allowed < 1):
        findings.append(Finding(code="verify.agreement", where=where, help=gate.advice,
                                headline=f"{100 * agreed.share:.4g} % of the values of '{name}' agree, at least "
                                         f"{100 * gate.agreement:.4g} % should",
                                why=f"{differing} of {agreed.count} differ; they are whole numbers, and none is "
                                    "nearly another"))
    row.ok = not findings
    row.reason = findings[0].headline if findings else ""
    return row, findings


def _whole(pair: OutputPair, row: ErrorRow, gate: Gate, where: str) -> list[Finding]:
    found = []
    sums = pair.sums
    if row.not_finite:
        found.append(Finding(code="verify.not_finite", where=where,
                             headline=f"{row.not_finite} values of '{pair.reference}' are infinite or not a number on "
                                      f"one side only"))
    floor = math.inf if pair.floor_db is None or gate.floor_margin_db is None else pair.floor_db - gate.floor_margin_db
    asked = min(gate.output_db, floor)
    if sums.not_finite_in_both and not sums.count:
        found.append(Finding(code="verify.not_finite", where=where,
                             headline=f"none of the {sums.not_finite} values of '{pair.reference}' is a finite number, "
                                      "in either model",
                             why="nothing was compared", help="see that the samples hold what the model takes"))
    is_score = sums.reference_min >= 0.0 and sums.reference_max <= 1.0
    if sums.equal or sums.sqnr_db >= asked:
        return found
    if is_score and sums.largest_error <= gate.score_error:
        row.judged = False
        return found
    why = f"the largest error is {sums.largest_error:.3g}, the values reach {sums.reference_max:.3g}"
    if asked < gate.output_db:
        why += f"; one rounding of the inputs alone leaves {pair.floor_db:.1f} dB"
    return [*found, Finding(code="verify.output", where=where, why=why, help=gate.advice,
                            headline=f"SQNR of '{pair.reference}' is {_db(sums.sqnr_db)}, at least {asked:.3g} dB is "
                                     f"asked")]


def _group(pair: OutputPair, sums: ChannelSums, group: ch.Group, gate: Gate,
           where: str) -> tuple[GroupRow, list[Finding]]:
    """Judge channels of one kind together, and find those that went dead."""
    value = sums.sqnr_db(group.channels)
    error = float(sums.ranges["largest_error"][group.channels].max())
    row = GroupRow(name=group.name, sqnr_db=finite(value), cosine=sums.cosine(group.channels), largest_error=error)
    if group.is_score and error <= gate.score_error:
        row.judged = False
        return row, []
    found = []
    shares = not pair.is_apart and len(sums.sums["count"]) > group.channels.size
    advice = TAKE_APART if gate.rounds and shares else gate.advice
    dead = ch.dead(sums, group)
    if dead.size:
        found.append(Finding(code="verify.dead_channels", where=where,
                             headline=f"{dead.size} of {group.channels.size} {group.name} no longer change: "
                                      f"{ch.spell(dead)}",
                             why="they round to one value; their range was not what calibration saw" if pair.is_apart
                             else "values of very different range share one scale; the smaller ones round to one value",
                             help=advice))
    if value < gate.group_db:
        found.append(Finding(code="verify.group", where=where,
                             help=advice,
                             headline=f"SQNR of {group.name} is {_db(value)}, at least {gate.group_db:g} dB is asked"))
    row.ok = not found
    row.reason = found[0].headline if found else ""
    return row, found


def _inner(tensors: Sequence[TensorPair], gate: Gate, passed: bool) -> list[ErrorRow]:
    """Judge inner tensors. One that differs while what is computed from it agrees only shares a name: the two files
    fuse or order values differently. ``passed``: the outputs agree."""
    good = [pair.sums.count > 0 and (pair.sums.equal or pair.sums.sqnr_db >= gate.tensor_db) for pair in tensors]
    fine = sum(1 << number for number, is_good in enumerate(good) if is_good)
    rows = []
    for pair, is_good in zip(tensors, good, strict=True):
        if pair.sums.count or pair.sums.not_finite:
            row = _tensor(pair)
            row.ok = is_good
            if not is_good and (passed or pair.downstream & fine):
                row.ok, row.aligned = True, False
                row.note = "another value under this name, what is computed from it agrees"
            rows.append(row)
    return rows


def _tensor(pair: TensorPair) -> ErrorRow:
    row = _row(pair.reference, pair.sums)
    row.operator = pair.operator
    notes = [f"'{pair.candidate}' there"] if pair.candidate != pair.reference else []
    if pair.layout is not None and (pair.layout.perm or pair.layout.shape):
        notes.append(str(pair.layout))
    row.note = ", ".join(notes)
    return row


def _row(name: str, sums: Sums) -> ErrorRow:
    return ErrorRow(tensor=name, sqnr_db=finite(sums.sqnr_db), cosine=sums.cosine, max_lsb=sums.max_lsb,
                    largest_error=sums.largest_error, reference_max=sums.reference_max, equal=sums.equal,
                    relative_error=finite(sums.relative_error), not_finite=sums.not_finite - sums.not_finite_in_both)


def _divergence(stage: str, verdict: Judgement) -> str:
    """Say where a failing stage first falls below what inner tensors should reach, in the order of computation."""
    low = next((row for row in verdict.tensors if not row.ok), None)
    if low is not None:
        value = _db(-math.inf if low.sqnr_db is None else low.sqnr_db)
        return f"{stage}: tensor '{low.tensor}' ({low.operator}), SQNR {value}"
    failed = next(row for row in verdict.outputs if not row.ok)
    return f"{stage}: output '{failed.tensor}', {failed.reason}"


def _db(value: float) -> str:
    return f"{value:.1f} dB" if math.isfinite(value) else "without any signal"
