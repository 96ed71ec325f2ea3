"""Division by the Euclidean norm, as exporters write it: the norm kept above a tiny number, and spread to x's shape."""

from __future__ import annotations

from vitrify.importers.onnx.patterns.registry import Found, pattern
from vitrify.importers.onnx.patterns.search import NEAR, Search
from vitrify.importers.onnx.source import SourceNode

TINY = 1e-6
"""The smallest norm that L2_NORMALIZATION divides by. Source: TFLite kernels/internal/reference/l2normalization.h."""


@pattern("Div")
def l2_norm(search: Search, node: SourceNode) -> Found | None:
    """LpNormalization, from its quotient."""
    x = search.plain(node.inputs[0])
    group = [node]
    divisor = node.inputs[1]
    spread = search.maker(divisor, "Expand")
    if spread is not None:
        group.insert(0, spread)
        divisor = spread.inputs[0]
    floor = search.maker(divisor, "Clip", "Max", "Add")
    if floor is not None:
        below = _floored(search, floor)
        if below is None:
            return None
        group.insert(0, floor)
        divisor = below
    found = _norm(search, divisor, x)
    if found is None or len(found[0]) != 1:
        return None
    return Found("LpNormalization", [x], (*found[1], *group), {"axis": found[0][0], "p": 2})


def _floored(search: Search, node: SourceNode) -> str | None:
    """The value that a node keeps above a tiny number, or adds one to."""
    if node.kind != "Clip":
        found = search.with_number(node)
        return found[0] if found is not None and 0 <= found[1] <= TINY else None
    low = node.attributes.get("min")
    if low is None and len(node.inputs) > 1:
        low = search.number(node.inputs[1])
    bounded = "max" in node.attributes or (len(node.inputs) > 2 and node.inputs[2])
    return search.plain(node.inputs[0]) if low is not None and 0 <= low <= TINY and not bounded else None


def _norm(search: Search, name: str, x: str) -> tuple[list[int], list[SourceNode]] | None:
    """The axes of x's Euclidean norm, and its nodes."""
    last = search.maker(name, "ReduceL2", "Sqrt")
    if last is None:
        return None
    if last.kind == "ReduceL2":
        axes = search.axes(last)
        return (axes, [last]) if axes is not None and search.plain(last.inputs[0]) == x else None
    total = search.maker(last.inputs[0], "ReduceSum", "ReduceSumSquare")
    axes = search.axes(total) if total is not None else None
    if total is None or axes is None:
        return None
    if total.kind == "ReduceSumSquare":
        return (axes, [total, last]) if search.plain(total.inputs[0]) == x else None
    square = search.maker(total.inputs[0], "Mul", "Pow")
    return (axes, [square, total, last]) if square is not None and _is_square(search, square, x) else None


def _is_square(search: Search, node: SourceNode, x: str) -> bool:
    if search.plain(node.inputs[0]) != x or len(node.inputs) != 2:
        return False
    if node.kind == "Mul":
        return search.plain(node.inputs[1]) == x
    power = search.number(node.inputs[1])
    return power is not None and abs(power - 2) < NEAR
