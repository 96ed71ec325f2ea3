"""The cores of the family, from ``cores.toml``: which operators, types and widths the compiler takes for each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vitrify.ir import DType

U55, U65, U85 = "u55", "u65", "u85"
SMALL = (U55, U65)
"""The cores that share one table of operators and limits."""


@dataclass(frozen=True)
class Core:
    """One core. ``wide`` holds, by bits, the operators that compute on so wide values; None: all do."""

    operators: frozenset[str]
    types: frozenset[DType]
    wide: dict[int, frozenset[str] | None]
    limits: dict[str, int]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "cores.toml").read_text(encoding="utf-8"))


@cache
def core(name: str) -> Core:
    """Return the core called ``name``."""
    table = _file()[name]
    wide = {bits: None if table[f"bits_{bits}"] == "any" else _words(table[f"bits_{bits}"]) for bits in (32, 64)}
    return Core(operators=_words(_file()["operators"]) | _words(table.get("more_operators", "")),
                types=frozenset(DType[word.upper()] for word in table["types"].split()), wide=wide,
                limits=dict(table["limits"]))


def kinds(group: str) -> frozenset[str]:
    """Return a group of operators: ``without_scales``, ``any_zero_point`` or ``weighted``."""
    return _words(_file()[group])
