"""The key figures at the top of a page, a card each; what is estimated and what is measured says so."""

from __future__ import annotations

from vitrify.core.words import bytes_text, count_text, percent
from vitrify.report.page.markup import Child, Html, tag
from vitrify.results import Coverage, Estimate, ProfileResult, RunRecord
from vitrify.results.profiling import MeasuredRun


def card(head: str, value: str, text: str, kind: str = "", picture: Child = None) -> Html:
    """Return one card; ``kind`` says how the value is known."""
    mark = tag("span", kind, class_=f"kind {kind}") if kind else None
    return tag("div", tag("span", tag("span", head), mark, class_="head"), tag("b", value), picture, tag("span", text),
               class_="card")


def latency_text(value: float) -> str:
    """Return milliseconds as a card shows them."""
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"


def span_text(low: float, high: float) -> str:
    """Return an interval of milliseconds."""
    return f"{low:.3g} to {high:.3g} ms" if high < 1000 else f"{latency_text(low)} to {latency_text(high)}"


def estimated(estimate: Estimate | None) -> Html | None:
    """Return the estimated latency with its interval."""
    if estimate is None or estimate.latency_ms is None:
        return None
    low, high, value = estimate.low_ms, estimate.high_ms, estimate.latency_ms
    if low is None or high is None or not high:
        return card("Latency", latency_text(value), f"by {estimate.source}", "estimate")
    span = span_text(low, high)
    picture = tag("div", tag("i", style=f"left:{low / high:.1%};right:0"), tag("em", style=f"left:{value / high:.1%}"),
                  class_="range", role="img", aria_label=span)
    return card("Latency", latency_text(value), f"{span}, by {estimate.source}", "estimate", picture)


def measured(run: MeasuredRun | None) -> Html | None:
    """Return the measured latency with how it varies."""
    if run is None:
        return None
    whole = run.whole
    top = max(whole.p99_ms, whole.quiet_ms) or 1.0
    picture = tag("div", tag("i", style=f"left:{whole.p10_ms / top:.1%};right:{1 - whole.p90_ms / top:.1%}"),
                  tag("em", style=f"left:min({whole.quiet_ms / top:.1%}, calc(100% - 3px))"), class_="range",
                  role="img", aria_label=f"nine of ten runs within {whole.p90_ms:.3g} ms")
    text = f"median {whole.median_ms:.3g} ms, nine of ten runs within {whole.p90_ms:.3g} ms; {whole.runs} runs"
    return card("Latency", latency_text(whole.quiet_ms), text, "measured", picture)


def coverage(shares: Coverage) -> Html | None:
    """Return the share of nodes on the NPU."""
    if shares.nodes is None:
        return None
    more = [f"{percent(value)} of the {name}" for value, name in ((shares.macs, "MACs"), (shares.time, "time"))
            if value is not None]
    picture = tag("div", tag("i", class_="npu", style=f"width:{shares.nodes:.2%}"),
                  tag("i", class_="cpu", style=f"width:{1 - shares.nodes:.2%}"), class_="meter")
    return card("On the NPU", percent(shares.nodes), ", ".join(["of the nodes", *more]), "", picture)


def quality(record: RunRecord) -> Html | None:
    """Return the lowest quality of the integer answers."""
    row = record.verify_int8
    if row is None or not row.outputs:
        return None
    worst = row.lowest()
    if worst is None:
        return card("Quality", "equal", "INT8 answers against float", "measured")
    return card("Quality", str(worst), f"SQNR of {worst.name}, the lowest of INT8 against float", "measured")


def file_size(record: RunRecord) -> Html | None:
    """Return the size of the integer file."""
    if record.int8_model is None:
        return None
    before = f"; float {bytes_text(record.float_model.bytes)}" if record.float_model else ""
    return card("Size", bytes_text(record.int8_model.bytes), f"INT8 file{before}")


def model_size(profile: ProfileResult) -> Html:
    """Return the size of the profiled file and what is computed in it."""
    macs = sum(row.macs for row in profile.operators)
    text = f"file, {profile.nodes:,} operators, {count_text(macs)} MACs"
    return card("Size", bytes_text(profile.bytes) if profile.bytes else f"{profile.nodes:,} operators",
                text if profile.bytes else f"{count_text(macs)} MACs")


def memory(profile: ProfileResult) -> Html | None:
    """Return what an inference needs besides the weights."""
    plan = profile.memory
    size = plan.arena_bytes or plan.live_bytes
    if not size:
        return None
    text = "tensor arena" if plan.arena_bytes else "alive at once"
    picture = None
    if plan.near_limit_bytes and plan.near_used_bytes is not None:
        used = min(1.0, plan.near_used_bytes / plan.near_limit_bytes)
        picture = tag("div", tag("i", class_="npu", style=f"width:{used:.1%}"), class_="meter")
        text += f"; on the chip {bytes_text(plan.near_used_bytes)} of {bytes_text(plan.near_limit_bytes)}"
    kind = "compiler" if plan.placed else "measured" if plan.arena_bytes else ""
    return card("Memory", bytes_text(size), text, kind, picture)


def arena(record: RunRecord) -> Html | None:
    """Return the arena of the compiled file, where there is no profile that says more."""
    size = record.memory.get("arena_bytes")
    return None if size is None else card("Memory", bytes_text(size), "tensor arena at run time", "compiler")
