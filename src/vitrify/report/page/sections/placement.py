"""Where nodes run: the partitions, and every reason why one stays on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.core.words import bytes_text, counted
from vitrify.report.page.charts import Part, strip
from vitrify.report.page.markup import Child, Html, brief, table, tag
from vitrify.report.page.section import Section, tools
from vitrify.report.page.sections.advice import numbers_by_name
from vitrify.results import Estimate, PartitionRow, PlacementRow, ProfileResult, VerdictRow

WORDS = {"npu": "NPU", "cpu": "CPU", "folded": "folded"}
MOST_ROWS = 2000


def placement(rows: PlacementRow, estimate: Estimate | None, profile: ProfileResult | None) -> Section | None:
    """Return where each node runs, and why; ``estimate`` adds what its figures rest on."""
    if not rows.verdicts and not rows.partitions:
        return None
    known = numbers_by_name(profile) if profile is not None else {}
    left = [verdict for verdict in rows.verdicts if verdict.placement == "cpu"]
    parts: list[Child] = [tag("p", _text(rows, left)), _map(rows, profile), _partitions(rows.partitions)]
    if left:
        cells = [_verdict(verdict, known) for verdict in left[:MOST_ROWS]]
        parts += [tag("h3", f"{counted(len(left), 'node')} on the CPU"), tools("verdicts"),
                  table(("node", "operator", "why", "known by"), cells, id="verdicts")]
    if estimate is not None and estimate.assumptions:
        parts.append(tag("details", tag("summary", "what the estimate assumes"),
                         tag("ul", [tag("li", doubt) for doubt in estimate.assumptions])))
    return Section.of("placement", "Placement", parts)


def _text(rows: PlacementRow, left: Sequence[VerdictRow]) -> str:
    if not rows.npu + rows.cpu + rows.folded:
        return "No node stays on the CPU." if not left else "Every rule that a node breaks is named."
    confidence = {verdict.confidence for verdict in rows.verdicts}
    by = "the target's own compiler" if confidence == {"compiler"} else ", ".join(sorted(confidence))
    return (f"{rows.npu} nodes run on the NPU, {rows.cpu} on the CPU, {rows.folded} cost nothing of their own: they "
            f"went into a neighbour, into addressing or into a constant. Told by {by}.")


def _map(rows: PlacementRow, profile: ProfileResult | None) -> Child:
    if profile is not None:
        told = [(row.placement, brief(f"{row.node} ({row.operator})")) for row in profile.operators]
    else:
        told = [(verdict.placement, brief(f"{verdict.node} ({verdict.operator})")) for verdict in rows.verdicts]
    if len({place for place, _ in told}) < 2:
        return None
    parts: list[Part] = []
    for number, (place, name) in enumerate(told):
        if parts and parts[-1].style == place:
            last = parts[-1]
            parts[-1] = Part(place, f"{last.label.split(' … ')[0]} … {name}: {WORDS.get(place, place)}",
                             last.weight + 1, [*last.operators, number])
        else:
            parts.append(Part(place, f"{name}: {WORDS.get(place, place)}", 1.0, [number]))
    if profile is None:
        parts = [part._replace(operators=[]) for part in parts]
    key = tag("p", [[tag("i", class_=name), word] for name, word in WORDS.items()], class_="key")
    return Html(strip(parts) + key)


def _partitions(parts: Sequence[PartitionRow]) -> Child:
    if len(parts) < 2:
        return None
    rows = [(part.index, tag("span", WORDS.get(part.placement, part.placement), class_=f"place {part.placement}"),
             len(part.nodes), f"{part.nodes[0]} … {part.nodes[-1]}" if part.nodes else "", bytes_text(part.bytes_in),
             bytes_text(part.bytes_out), "" if part.time_ms is None else f"{part.time_ms:.3g} ms") for part in parts]
    columns = ("partition", "side", "#nodes", "from … to", "#bytes in", "#bytes out", "#estimate")
    return tag("details", tag("summary", counted(len(parts), "partition")), table(columns, rows))


def _verdict(verdict: VerdictRow, known: dict[str, list[int]]) -> tuple[Child, ...]:
    reasons = [tag("div", rule.headline, tag("span", " ".join(filter(None, (rule.why, rule.help))), class_="why"))
               for rule in verdict.rules]
    origin = ", ".join(name for name in verdict.origin if name != verdict.node)
    numbers = ",".join(map(str, known.get(verdict.node, [])))
    name = tag("button", verdict.node, type="button", class_="link", data_ops=numbers) if numbers else verdict.node
    return (tag("span", name, tag("small", f"from {origin}") if origin else None), verdict.operator,
            reasons or "no reason given", verdict.confidence)
