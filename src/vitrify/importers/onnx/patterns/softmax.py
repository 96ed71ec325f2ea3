"""Softmax written out: exp(x) over its sum, with or without the largest x taken out first."""

from __future__ import annotations

from vitrify.importers.onnx.patterns.registry import Found, pattern
from vitrify.importers.onnx.patterns.search import Search
from vitrify.importers.onnx.source import SourceNode


@pattern("Div")
def softmax(search: Search, node: SourceNode) -> Found | None:
    """Softmax, from its quotient."""
    exp = search.maker(node.inputs[0], "Exp")
    total = search.maker(node.inputs[1], "ReduceSum")
    if exp is None or total is None or search.maker(total.inputs[0]) is not exp:
        return None
    axes = search.axes(total)
    if axes is None or len(axes) != 1:
        return None
    x, group = search.plain(exp.inputs[0]), [exp, total, node]
    shifted = search.maker(x, "Sub")
    top = search.maker(shifted.inputs[1], "ReduceMax") if shifted is not None else None
    if shifted is not None and top is not None and search.axes(top) == axes:
        inner = search.plain(shifted.inputs[0])
        if search.plain(top.inputs[0]) == inner:
            x, group = inner, [top, shifted, *group]
    return Found("Softmax", [x], tuple(group), {"axis": axes[0]}, opset=13)
