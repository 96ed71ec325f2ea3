"""What a profile was held against: gates, and another profile, figure by figure and operator by operator."""

from __future__ import annotations

from vitrify.report.page.markup import Child, table, tag
from vitrify.report.page.section import Section, tools
from vitrify.results import ProfileResult
from vitrify.results.profiling import ComparedRow, DeltaRow, GateRow, PairRow

MOST_PAIRS = 1000


def comparison(profile: ProfileResult) -> Section | None:
    """Return gates and comparison, where there are some."""
    parts: list[Child] = []
    if profile.gates:
        parts.append(table(("condition of failing", "", "what was found"), map(_gate, profile.gates)))
    if profile.comparison is not None:
        parts += _compared(profile.comparison)
    return Section.of("comparison", "Comparison" if profile.comparison is not None else "Gates", parts) if parts \
        else None


def _gate(gate: GateRow) -> tuple[Child, ...]:
    style, word = ("warn", "not judged") if gate.failed is None else ("bad", "failed") if gate.failed else \
        ("good", "held")
    return (tag("code", gate.expression), tag("span", word, class_=style), gate.text)


def _compared(row: ComparedRow) -> list[Child]:
    text = f"Against {row.before}, {row.basis}." if row.related else \
        f"Against {row.before}, {row.basis}; it is no form of the same model, so only totals are compared."
    if row.noise_ms is not None:
        text += f" Differences below {row.noise_ms:.3g} ms have no cause of their own."
    parts: list[Child] = [tag("p", text), table(("figure", "#before", "#after", "#change"), map(_figure, row.figures))]
    changed = sorted((pair for pair in row.operators if pair.change_ms), key=lambda pair: -abs(pair.change_ms or 0.0))
    if changed:
        parts += [tag("h3", "Operators that changed most"), tools("pairs"),
                  table(("operator", "#ms before", "#ms after", "#change"), map(_pair, changed[:MOST_PAIRS]),
                        id="pairs")]
    return parts


def _figure(row: DeltaRow) -> tuple[Child, ...]:
    change = "" if row.change is None else f"{row.change:+.1%}"
    return (row.name, _number(row.before), _number(row.after), change)


def _pair(row: PairRow) -> tuple[Child, ...]:
    names = [", ".join((row.after or row.before)[:3]), tag("small", "/".join(row.operators))]
    change = row.change_ms or 0.0
    return (tag("span", names), _number(row.before_ms), _number(row.after_ms),
            tag("span", f"{change:+.3g} ms", class_="bad" if change > 0 else "good"))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 1 else f"{value:.4g}"
