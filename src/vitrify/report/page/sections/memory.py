"""Memory: what is alive while each operator runs, and where in the arena every tensor lies, and how long."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.core.words import bytes_text, counted
from vitrify.report.page.charts import BOTTOM, HALF, HEIGHT, LEFT, RIGHT, TOP, WIDE, gridline
from vitrify.report.page.markup import Child, Html, brief, table, tag
from vitrify.report.page.section import Section
from vitrify.results import ProfileResult
from vitrify.results.profiling import LifeRow, MemoryPlan, ModeRow

MOST_LIVES = 700
"""Tensors drawn in the map of the arena: the largest, over their lives."""
MOST_STEPS = 600
SIDE = LEFT + 18


def alive(profile: ProfileResult) -> Section | None:
    """Return how much is alive along the run, with its peak."""
    plan = profile.memory
    if not plan.lives or not plan.live_bytes:
        return None
    names = ", ".join(f"'{name}'" for name in plan.alive[:3])
    more = f" and {len(plan.alive) - 3} more" if len(plan.alive) > 3 else ""
    text = f"Most is alive while '{plan.peak_node}' runs: {bytes_text(plan.live_bytes)}, {names}{more}."
    return Section.of("memory", "Memory in running order", tag("p", text),
                      tag("div", _area(plan, len(profile.operators)), _figures(plan), class_="beside"), short="Memory")


def _area(plan: MemoryPlan, count: int) -> Html:
    """The bytes alive while each operator runs; of neighbours that share a pixel, the most."""
    steps = [0] * (count + 1)
    for life in plan.lives:
        steps[life.first] += life.bytes
        steps[min(life.last, count - 1) + 1] -= life.bytes
    now, sums = 0, []
    for step in steps[:count]:
        now += step
        sums.append(now)
    every = -(-count // MOST_STEPS) or 1
    shown = [max(sums[start:start + every]) for start in range(0, count, every)]
    top = max([plan.live_bytes, *shown, 1]) * 1.06
    base, wide = HEIGHT - BOTTOM, (HALF - SIDE - RIGHT) / max(1, len(shown))
    y = [base - value / top * (base - TOP) for value in shown]
    points = [f"{SIDE + (index + side) * wide:.1f} {height:.1f}" for index, height in enumerate(y) for side in (0, 1)]
    marks: list[Child] = [gridline(base - part / 1.06 * (base - TOP), bytes_text(part * top / 1.06), SIDE, HALF)
                          for part in (0, 0.25, 0.5, 0.75, 1)]
    marks.append(tag("path", d=f"M{SIDE} {base} L{' L'.join(points)} L{HALF - RIGHT} {base} Z", class_="area"))
    if plan.near_limit_bytes and plan.near_limit_bytes < top:
        at = base - plan.near_limit_bytes / top * (base - TOP)
        marks += [tag("line", x1=SIDE, x2=HALF - RIGHT, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="limit"),
                  tag("text", f"{bytes_text(plan.near_limit_bytes)} on the chip", x=HALF - RIGHT - 4,
                      y=f"{at - 5:.1f}", class_="axis end")]
    if plan.peak_index is not None:
        x = SIDE + (plan.peak_index / every + 0.5) * wide
        left = x < HALF / 2
        marks += [tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=TOP, y2=base, class_="peak"),
                  tag("text", f"peak {bytes_text(plan.live_bytes)}", x=f"{x + (6 if left else -6):.1f}", y=TOP + 6,
                      class_="axis strong" if left else "axis strong end"),
                  tag("rect", tag("title", f"the peak: {brief(plan.peak_node)}"), x=f"{x - 5:.1f}", y=TOP, width=10,
                      height=base - TOP, fill="transparent", data_ops=plan.peak_index)]
    marks.append(tag("text", "bytes alive, operators in running order", x=SIDE, y=HEIGHT - 6, class_="axis"))
    return tag("svg", marks, viewBox=f"0 0 {HALF} {HEIGHT}", class_="chart half", role="img",
               aria_label=f"Bytes alive over the run, at most {bytes_text(plan.live_bytes)}")


def _figures(plan: MemoryPlan) -> Child:
    rows: list[tuple[Child, Child]] = [("weights and constants", bytes_text(plan.weights_bytes))]
    if plan.arena_bytes:
        rows.append((tag("span", "arena", tag("small", plan.planner)), bytes_text(plan.arena_bytes)))
    if plan.reserve_bytes:
        rows.append((tag("span", "to reserve", tag("small", plan.reserve_why)), bytes_text(plan.reserve_bytes)))
    if plan.near_limit_bytes:
        text = "on the chip" if plan.near_used_bytes is None else \
            f"on the chip, used {bytes_text(plan.near_used_bytes)}"
        rows.append((text, bytes_text(plan.near_limit_bytes)))
    if plan.beyond:
        rows.append(("operators whose values and weights do not fit there together", f"{len(plan.beyond):,}"))
    if plan.variables_bytes:
        rows.append(("variables", bytes_text(plan.variables_bytes)))
    return table(("", "#size"), rows)


def plan(profile: ProfileResult) -> Section | None:
    """Return the map of each memory that tensors were placed in, and the effect of memory modes."""
    memory = profile.memory
    compiled = [life for life in memory.placed if life.offset is not None]
    placed = compiled or [life for life in memory.lives if life.offset is not None]
    if not placed and not memory.modes:
        return None
    steps = "the compiler's steps" if compiled else "operators"
    parts: list[Child] = []
    for name in dict.fromkeys(life.memory for life in placed):
        lives = [life for life in placed if life.memory == name]
        parts += [tag("h3", f"{name}, {counted(len(lives), 'tensor')}"),
                  _map(lives, memory, steps, links=not compiled)]
    if memory.modes:
        parts += [tag("h3", "Memory modes"), table(("mode", "", "#latency, estimate", "#on the chip", "#outside",
                                                    "#moved"), map(_mode, memory.modes))]
    text = ("Each box is a tensor: as high as its bytes where it lies, as long as it is needed. "
            "Those that are alive at the peak stand out.")
    key = tag("p", tag("i", class_="life"), "tensor", tag("i", class_="alive"), "alive at the peak", class_="key")
    return Section.of("arena", "Memory map", tag("p", text), key if placed else None, parts)


def _map(lives: Sequence[LifeRow], plan: MemoryPlan, steps: str, *, links: bool) -> Html:
    drawn = sorted(lives, key=lambda life: -life.bytes * (life.last - life.first + 1))[:MOST_LIVES]
    low, high = min(life.first for life in lives), max(life.last for life in lives) + 1
    size = max((life.offset or 0) + life.bytes for life in lives)
    tall = HEIGHT + 60
    base, wide = tall - BOTTOM, (WIDE - SIDE - RIGHT) / max(1, high - low)
    peak = _fullest(lives)
    marks: list[Child] = [gridline(base - part * (base - TOP), bytes_text(part * size), SIDE, WIDE)
                          for part in (0, 0.25, 0.5, 0.75, 1)]
    for life in drawn:
        top = base - ((life.offset or 0) + life.bytes) / size * (base - TOP)
        height = life.bytes / size * (base - TOP)
        at_peak = life.first <= peak <= life.last
        label = f"{brief(life.tensor)}: {bytes_text(life.bytes)} at {life.offset:,}, from {life.first} to {life.last}"
        marks.append(tag("rect", tag("title", label), x=f"{SIDE + (life.first - low) * wide:.1f}", y=f"{top:.1f}",
                         width=f"{max(0.8, (life.last - life.first + 1) * wide):.1f}", height=f"{max(0.6, height):.1f}",
                         class_="life alive" if at_peak else "life", data_ops=life.first if links else None))
    x = SIDE + (peak - low + 0.5) * wide
    marks += [tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=TOP, y2=base, class_="peak"),
              tag("text", f"{steps}, {low} to {high - 1}" + (
                  f"; the {len(drawn)} largest of {len(lives)}" if len(drawn) < len(lives) else ""),
                  x=SIDE, y=tall - 6, class_="axis")]
    return tag("svg", marks, viewBox=f"0 0 {WIDE} {tall}", class_="chart", role="img",
               aria_label=f"Map of {bytes_text(size)} over {steps}")


def _fullest(lives: Sequence[LifeRow]) -> int:
    """The step at which most bytes are in use."""
    changes: dict[int, int] = {}
    for life in lives:
        changes[life.first] = changes.get(life.first, 0) + life.bytes
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.bytes
    now, most, best = 0, -1, 0
    for step in sorted(changes):
        now += changes[step]
        if now > most:
            most, best = now, step
    return best


def _mode(mode: ModeRow) -> tuple[Child, ...]:
    name = tag("span", mode.mode, tag("small", "the usual one") if mode.usual else None)
    if mode.problem:
        return (name, tag("span", mode.problem, class_="bad"), "", "", "", "")
    latency = "" if mode.latency_ms is None else f"{mode.latency_ms:.4g} ms"
    sizes = (mode.near_bytes, mode.far_bytes, mode.far_traffic_bytes)
    return (name, mode.says, latency, *("" if size is None else bytes_text(size) for size in sizes))
