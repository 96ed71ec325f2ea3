"""The top of a page: the verdict in a sentence and the key figures; and what was found, the heaviest first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted, percent
from vitrify.report.page.markup import Html, tag
from vitrify.report.page.section import Section
from vitrify.report.page.sections import cards
from vitrify.results import ProfileResult, RunRecord

PILLS = {"done": ("good", "good"), "failed": ("bad", "failed"), "interrupted": ("warn", "interrupted"),
         "running": ("warn", "not finished")}
WAITS = {"compute": "multiplications", "memory": "memory outside the chip", "near memory": "memory on the chip",
         "elements": "work on values one by one", "start": "starting operators"}


def of_run(record: RunRecord) -> Html:
    """Return the title, the verdict and the key figures of a build."""
    style, word = PILLS.get(record.status, ("warn", record.status))
    memory = cards.memory(record.profile) if record.profile is not None else cards.arena(record)
    shown = (cards.quality(record), cards.estimated(record.estimate), cards.coverage(record.coverage),
             cards.file_size(record), memory)
    return _top(f"{record.name} on {record.target}", f"{record.model} · {record.started}", style, word, record.verdict,
                shown)


def title_of(result: ProfileResult) -> str:
    """Return what a profile is of."""
    where = result.target or ("this machine" if result.basis == "measured" else "")
    return f"{PurePath(result.model).name} on {where}" if where else PurePath(result.model).name


def of_profile(result: ProfileResult) -> Html:
    """Return the title, the verdict and the key figures of a profile."""
    failed = [gate for gate in result.gates if gate.failed]
    style, word = ("good" if result.gates else "plain"), result.basis or "profiled"
    if failed or not result.ok:
        style, word = "bad", "failed"
    latency = cards.measured(result.measurement) if result.basis == "measured" else cards.estimated(result.estimate)
    shown = (latency, cards.coverage(result.coverage), cards.memory(result), cards.model_size(result))
    form = ", ".join(filter(None, (result.kind, result.form)))
    origin = " · ".join(filter(None, (result.model, form, result.source)))
    return _top(title_of(result), origin, style, word, sentence(result), shown)


def _top(title: str, origin: str, style: str, word: str, verdict: str, shown: Sequence[Html | None]) -> Html:
    return tag("header", tag("h1", title), tag("p", origin),
               tag("div", tag("span", word, class_=f"pill {style}"), tag("span", verdict), class_="verdict"),
               tag("div", [card for card in shown if card], class_="cards"), class_="top", id="summary")


def sentence(result: ProfileResult) -> str:
    """Return what a profile comes to in a sentence or two."""
    failed = [gate for gate in result.gates if gate.failed]
    said = []
    if result.total_ms is not None:
        said.append(f"{cards.latency_text(result.total_ms)} an inference, {result.basis}{_interval(result)}.")
    else:
        said.append(f"{counted(result.nodes, 'operator')}; no total time is known.")
    if result.coverage.nodes is not None:
        left = sum(row.placement == "cpu" for row in result.operators)
        said.append("Every operator runs on the NPU." if not left else f"{counted(left, 'operator')} "
                    f"{'stays' if left == 1 else 'stay'} on the CPU.")
    said += _slowest(result)
    if failed:
        said.insert(0, "; ".join(gate.text or gate.expression for gate in failed) + ".")
    return " ".join(said)


def _interval(result: ProfileResult) -> str:
    row = result.estimate
    if result.basis == "measured" or row is None or row.low_ms is None or row.high_ms is None:
        return ""
    return f" ({cards.span_text(row.low_ms, row.high_ms)})"


def _slowest(result: ProfileResult) -> list[str]:
    """What most of the time goes into: a kind of operator, and what is waited for."""
    kinds: dict[str, float] = {}
    waits: dict[str, float] = {}
    for row in result.operators:
        kinds[row.operator] = kinds.get(row.operator, 0.0) + (row.share or 0.0)
        if row.bound:
            waits[row.bound] = waits.get(row.bound, 0.0) + (row.share or 0.0)
    if not kinds or max(kinds.values()) <= 0:
        return []
    kind = max(kinds, key=lambda name: kinds[name])
    said = f"{percent(kinds[kind])} of the time goes into {kind}"
    if waits and max(waits.values()) > 0:
        wait = max(waits, key=lambda name: waits[name])
        said += f", {percent(waits[wait])} waits for {WAITS.get(wait, wait)}"
    return [said + "."]


def findings(found: Sequence[Finding]) -> Section | None:
    """Return the findings, the heaviest first."""
    if not found:
        return None
    order = list(Severity)
    ranked = sorted(found, key=lambda finding: order.index(finding.severity))
    return Section.of("findings", "Findings", [_finding(finding) for finding in ranked])


def _finding(finding: Finding) -> Html:
    facts = [(label, text) for label, text in (("where", finding.where), ("why", finding.why), ("help", finding.help))
             if text]
    return tag("div", tag("b", f"{finding.severity.value} {finding.code}: "), finding.headline,
               tag("dl", [[tag("dt", label), tag("dd", text)] for label, text in facts]),
               class_=f"finding {finding.severity.value}")
