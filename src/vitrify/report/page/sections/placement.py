"""Placement on the page: partitions, the verdict on every node with its reasons, hot spots, memory."""

from __future__ import annotations

from vitrify.core.words import bytes_text, counted, percent
from vitrify.report.page.charts import strip
from vitrify.report.page.markup import Child, Html, table, tag
from vitrify.report.page.section import Section, tools
from vitrify.results import RunRecord, VerdictRow

WORDS = {"npu": "NPU", "cpu": "CPU", "folded": "folded"}
HOT_SPOTS = 20


def placement(record: RunRecord) -> Section | None:
    """Return where each node runs, and why."""
    rows = record.placement
    if not rows.verdicts:
        return None
    text = (f"{rows.npu} nodes run on the NPU, {rows.cpu} on the CPU, {rows.folded} cost nothing of their own: they "
            f"went into a neighbour, into addressing or into a constant. Told by {_confidence(rows.verdicts)}.")
    return Section("placement", "Placement", tag("p", text), _map(record), _partitions(record),
                   tools("verdicts", places=True),
                   table(("node", "operator", "place", "why", "#cycles"), map(_verdict, rows.verdicts), id="verdicts"))


def _confidence(verdicts: list[VerdictRow]) -> str:
    kinds = {v.confidence for v in verdicts}
    return "the target's own compiler" if kinds == {"compiler"} else ", ".join(sorted(kinds))


def _map(record: RunRecord) -> Html:
    parts = [(v.placement, f"{v.node} ({v.operator}): {WORDS.get(v.placement, v.placement)}", 1.0)
             for v in record.placement.verdicts]
    key = tag("p", [[tag("i", class_=name), word] for name, word in WORDS.items()], class_="key")
    return Html(strip(parts) + key)


def _partitions(record: RunRecord) -> Child:
    parts = record.placement.partitions
    if len(parts) < 2:
        return None
    rows = [(part.index, tag("span", WORDS.get(part.placement, part.placement), class_=f"place {part.placement}"),
             len(part.nodes), f"{part.nodes[0]} … {part.nodes[-1]}" if part.nodes else "", bytes_text(part.bytes_in),
             bytes_text(part.bytes_out), "" if part.time_ms is None else f"{part.time_ms:.3g} ms") for part in parts]
    columns = ("partition", "side", "#nodes", "from … to", "#bytes in", "#bytes out", "#estimate")
    return tag("details", tag("summary", counted(len(parts), "partition")), table(columns, rows))


def _verdict(verdict: VerdictRow) -> tuple[Child, ...]:
    reasons = [tag("div", f"{rule.headline}", tag("span", " ".join(filter(None, (rule.why, rule.help))), class_="why"))
               for rule in verdict.rules]
    origin = ", ".join(name for name in verdict.origin if name != verdict.node)
    return (tag("span", verdict.node, tag("small", f"from {origin}") if origin else None), verdict.operator,
            tag("span", WORDS.get(verdict.placement, verdict.placement), class_=f"place {verdict.placement}"),
            reasons or ("no reason given" if verdict.placement == "cpu" else ""),
            "" if verdict.cycles is None else f"{verdict.cycles:,}")


def hot_spots(record: RunRecord) -> Section | None:
    """Return the nodes that the estimate puts most cycles into."""
    known = [v for v in record.placement.verdicts if v.cycles]
    if not known:
        return None
    total = sum(v.cycles or 0 for v in known)
    ranked = sorted(known, key=lambda v: -(v.cycles or 0))[:HOT_SPOTS]
    rows = [(v.node, v.operator, f"{v.cycles:,}", percent((v.cycles or 0) / total)) for v in ranked]
    estimate = record.estimate
    text = f"Cycles as estimated by {estimate.source}; not measured on a board."
    doubts = tag("details", tag("summary", "what the estimate assumes"),
                 tag("ul", [tag("li", doubt) for doubt in estimate.assumptions])) if estimate.assumptions else None
    return Section("cycles", "Cycles", tag("p", text), doubts,
                   table(("node", "operator", "#cycles", "#share"), rows))


def memory(record: RunRecord) -> Section | None:
    """Return the compiler's memory figures."""
    if not record.memory:
        return None
    rows = [(name.removesuffix("_bytes").replace("_", " "), bytes_text(size))
            for name, size in record.memory.items()]
    return Section("memory", "Memory", table(("what", "#size"), rows))
