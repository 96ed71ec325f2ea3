"""Families of chips made up for a test: a few rules with the codes of real ones, so that a fix is tried alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

import msgspec
import pytest

from vitrify.ir import Node
from vitrify.targets import Target, base
from vitrify.targets.rules.rule import Breach, Variant, rule

Refuses = Callable[[Node], bool]


def double(patch: pytest.MonkeyPatch, name: str, rules: Mapping[str, Refuses],
           limits: Mapping[str, int] | None = None) -> Target:
    """Return a chip without a compiler that leaves to the CPU what ``rules`` refuse, by code."""
    family = ModuleType(f"vitrify.targets.{name}")
    family.__path__ = []
    family.variant = lambda core: Variant(core=core, limits=dict(limits or {}))  # type: ignore[attr-defined]
    family.settle = lambda graph, broken, core: {  # type: ignore[attr-defined]
        node: "cpu" if node in broken else "npu" for node in graph}
    patch.setitem(sys.modules, family.__name__, family)
    for code, refuses in rules.items():
        _register(family.__name__, code, refuses)
    chip = msgspec.structs.replace(base.load("imx93"), family=name, backend="none", name=name)
    loaded = base.load
    patch.setattr(base, "load", lambda wanted: chip if wanted == name else loaded(wanted))
    return chip


def _register(family: str, code: str, refuses: Refuses) -> None:
    def check(node: Node, variant: Variant) -> Iterator[Breach]:
        if refuses(node):
            yield Breach(f"{node.op.kind} as it is")

    check.__module__ = f"{family}.rules"
    rule(code, says="", why="", source="a double")(check)
