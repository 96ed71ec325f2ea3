"""GELU as exporters write it: x * 0.5 * (1 + Erf(x / sqrt(2))), the factors in any order. TFLite has no ERF."""

from __future__ import annotations

import math

from vitrify.importers.onnx.patterns.registry import Found, pattern
from vitrify.importers.onnx.patterns.search import NEAR, Search
from vitrify.importers.onnx.source import SourceNode

_FACTORS = 3  # x, 1 + erf, 0.5


@pattern("Mul")
def gelu(search: Search, node: SourceNode) -> Found | None:
    """Gelu, from its last product."""
    for factor in search.factors(node.outputs[0], "", _FACTORS):
        plus = search.maker(factor, "Add")
        found = search.with_number(plus)
        erf = search.maker(found[0], "Erf") if found is not None and abs(found[1] - 1.0) < NEAR else None
        if plus is None or erf is None or search.only_reader(erf.outputs[0], "Add") is not plus:
            continue
        if search.only_reader(plus.outputs[0], "Mul") is None:
            continue
        scaled = search.maker(erf.inputs[0], "Mul", "Div")
        x = _unscaled(search, scaled) if scaled is not None else None
        if scaled is not None and x is not None and _is_product(search, node, x, plus):
            return Found("Gelu", [x], (scaled, erf, plus, *_between(search, plus, node)))
    return None


def _unscaled(search: Search, node: SourceNode) -> str | None:
    """The x of a node that is x / sqrt(2), written as a product or a quotient."""
    found = search.with_number(node)
    if found is None:
        return None
    factor = math.sqrt(2) if node.kind == "Div" else 1 / math.sqrt(2)
    turned = node.kind == "Div" and search.plain(node.inputs[0]) != found[0]
    return found[0] if abs(found[1] - factor) < NEAR and not turned else None


def _is_product(search: Search, node: SourceNode, x: str, plus: SourceNode) -> bool:
    leaves = list(search.factors(node.outputs[0], plus.outputs[0], _FACTORS))
    numbers = [value for name in leaves if (value := search.number(name)) is not None]
    names = sorted(name for name in leaves if search.number(name) is None)
    return names == sorted([x, plus.outputs[0]]) and abs(math.prod(numbers) - 0.5) < NEAR


def _between(search: Search, plus: SourceNode, last: SourceNode) -> list[SourceNode]:
    """The products that read nothing but this Gelu, from the sum to the last one."""
    found: list[SourceNode] = []
    following = search.only_reader(plus.outputs[0], "Mul")
    while following is not None and following is not last and len(found) < _FACTORS:
        found.append(following)
        following = search.only_reader(following.outputs[0], "Mul")
    return [*found, last]
