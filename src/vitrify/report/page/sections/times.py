"""Where the time goes: by kind of operator and what it waits for, and along the run."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.core.words import percent
from vitrify.report.page.charts import Part, strip
from vitrify.report.page.markup import Html, brief, tag
from vitrify.report.page.section import Section
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow, MeasuredRow

KINDS = 12
FINEST = 0.0015
"""A part of the strip that is narrower than this share is joined with its neighbours."""
WORDS = {"compute": "multiplications", "memory": "far memory", "near": "near memory", "elements": "single values",
         "start": "starting", "other": "not told"}

Row = MeasuredRow | EstimatedRow


def style_of(bound: str) -> str:
    """Return the style of what an operator waits for."""
    return "near" if bound == "near memory" else bound or "other"


def times(profile: ProfileResult) -> Section | None:
    """Return the times by kind, and in the order of the run."""
    rows = [row for row in profile.operators if row.time_ms]
    if not rows:
        return None
    styles = [style for style in WORDS if any(style_of(row.bound) == style for row in rows)]
    key = tag("p", [[tag("i", class_=style), WORDS[style]] for style in styles], class_="key") \
        if len(styles) > 1 else None
    text = f"Milliseconds {profile.basis}, by what is waited for." if len(styles) > 1 else \
        f"Milliseconds {profile.basis}."
    return Section.of("times", "Where the time goes", tag("p", text), key, _kinds(rows, styles),
                      tag("h3", "In running order"), strip(_parts(profile)), short="Time")


def _kinds(rows: Sequence[Row], styles: Sequence[str]) -> Html:
    sums: dict[str, dict[str, float]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        one = sums.setdefault(row.operator, dict.fromkeys(styles, 0.0))
        one[style_of(row.bound)] += row.time_ms or 0.0
        counts[row.operator] = counts.get(row.operator, 0) + 1
    ranked = sorted(sums, key=lambda kind: -sum(sums[kind].values()))
    for kind in ranked[KINDS:]:
        other = sums.setdefault("all others", dict.fromkeys(styles, 0.0))
        counts["all others"] = counts.get("all others", 0) + counts[kind]
        for style, value in sums[kind].items():
            other[style] += value
    shown = [*ranked[:KINDS], *(["all others"] if len(ranked) > KINDS else [])]
    whole = sum(row.time_ms or 0.0 for row in rows)
    most = max(sum(sums[kind].values()) for kind in shown)
    lines = []
    for kind in shown:
        total = sum(sums[kind].values())
        track = [tag("i", class_=style, style=f"width:{sums[kind][style] / most:.2%}",
                     title=f"{WORDS[style]}: {sums[kind][style]:.3g} ms") for style in styles if sums[kind][style]]
        lines += [tag("span", kind, tag("small", f" {counts[kind]}"), title=kind), tag("div", track, class_="track"),
                  tag("em", f"{total:.3g} ms, {percent(total / whole)}")]
    return tag("div", lines, class_="kinds")


def _parts(profile: ProfileResult) -> list[Part]:
    """The operators in order; neighbours that are too short to be seen are one part."""
    whole = sum(row.time_ms or 0.0 for row in profile.operators) or 1.0
    parts: list[Part] = []
    waiting: list[Row] = []

    def close() -> None:
        if waiting:
            total = sum(row.time_ms or 0.0 for row in waiting)
            label = brief(f"{waiting[0].operator} {waiting[0].node}") if len(waiting) == 1 else \
                f"{len(waiting)} operators from {brief(waiting[0].node)} to {brief(waiting[-1].node)}"
            longest = max(waiting, key=lambda row: row.time_ms or 0.0)
            parts.append(Part(f"{style_of(longest.bound)}-f", f"{label}: {total:.3g} ms", total,
                              [row.index for row in waiting]))
            waiting.clear()

    for row in profile.operators:
        if not row.time_ms:
            continue
        if row.time_ms / whole >= FINEST:
            close()
        waiting.append(row)
        if sum(one.time_ms or 0.0 for one in waiting) / whole >= FINEST:
            close()
    close()
    return parts
