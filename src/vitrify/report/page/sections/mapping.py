"""The source beside its optimized forms: how many nodes were kept, fused, split, folded, and what was put in."""

from __future__ import annotations

from vitrify.core.words import counted
from vitrify.report.page.markup import Child, table, tag
from vitrify.report.page.section import Section, tools
from vitrify.results import ProfileResult
from vitrify.results.profiling import MappedRow

MOST_ROWS = 1000
WORDS = {"kept": "kept as one operator", "split": "made into several", "fused": "joined with others",
         "folded": "computed beforehand, or free", "unused": "not used by any output"}


def mapping(profile: ProfileResult) -> Section | None:
    """Return the counts, what is no more, and what no source node is in; the table of operators has every node."""
    told = profile.mapping
    if not told.nodes:
        return None
    counts = [(how, WORDS.get(how, ""), count) for how, count in sorted(told.counts.items(), key=lambda one: -one[1])]
    text = f"What became of {counted(len(told.nodes), 'node')} of the source; the table of operators lists each."
    parts: list[Child] = [table(("", "", "#nodes"), counts)]
    gone = [row for row in told.nodes if row.how in ("folded", "unused", "fused")]
    if gone:
        parts.append(tag("details", tag("summary", f"{counted(len(gone), 'node')} without an operator of their own"),
                         tools("gone"), table(("node", "kind", "", "where it is now", "by"),
                                              map(_gone, gone[:MOST_ROWS]), id="gone")))
    if told.inserted:
        rows = [(row.node, row.operator, row.form, ", ".join(row.passes),
                 "" if row.time_ms is None else f"{row.time_ms:.3g} ms") for row in told.inserted[:MOST_ROWS]]
        parts.append(tag("details", tag("summary", f"{counted(len(told.inserted), 'operator')} that no source node is "
                                                   "in"), table(("operator", "kind", "form", "by", "#time"), rows)))
    return Section.of("mapping", "Source and result", tag("p", text), parts, short="Mapping")


def _gone(row: MappedRow) -> tuple[Child, ...]:
    form = row.integer_form or row.float_form
    into = row.into or (form.nodes if form is not None else [])
    listed = ", ".join(into[:4]) + (f" and {len(into) - 4} more" if len(into) > 4 else "")
    return (row.name, row.operator, row.how, listed, ", ".join(row.passes))
