"""Mish as exporters write it: x * tanh(softplus(x)), the inner function named or as log(exp(x) + 1)."""

from __future__ import annotations

from vitrify.importers.onnx.patterns.registry import Found, pattern
from vitrify.importers.onnx.patterns.search import NEAR, Search
from vitrify.importers.onnx.source import SourceNode


@pattern("Mul")
def mish(search: Search, node: SourceNode) -> Found | None:
    """Mish, from its product."""
    if len(node.inputs) != 2:
        return None
    for value, gate in (node.inputs, node.inputs[::-1]):
        tanh = search.maker(gate, "Tanh")
        inner = _softplus(search, tanh.inputs[0]) if tanh is not None else None
        if tanh is not None and inner is not None and inner[0] == search.plain(value):
            return Found("Mish", [inner[0]], (*inner[1], tanh, node), opset=18)
    return None


def _softplus(search: Search, name: str) -> tuple[str, list[SourceNode]] | None:
    """The x of log(1 + exp(x)), and the nodes of it."""
    last = search.maker(name, "Softplus", "Log")
    if last is None or last.kind == "Softplus":
        return None if last is None else (search.plain(last.inputs[0]), [last])
    plus = search.maker(last.inputs[0], "Add")
    found = search.with_number(plus)
    exp = search.maker(found[0], "Exp") if found is not None and abs(found[1] - 1.0) < NEAR else None
    return (search.plain(exp.inputs[0]), [exp, plus, last]) if exp is not None and plus is not None else None
