"""What is public about operators on a family's cores: a table in TOML, each row with its source.

A row says whether the compiler takes an operator of some form. An operator without a row is one about which nothing
public was found, and the verdict says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from vitrify.core.errors import InternalError
from vitrify.ir import Node
from vitrify.targets.rules.rows import Row
from vitrify.targets.rules.rule import Breach

NOTHING_PUBLIC = "no public source was found"


_UNKNOWN = Row(taken="unknown", confidence="unknown", source=NOTHING_PUBLIC)


class Table:
    """The rows of a family, by core and operator."""

    def __init__(self, path: Path) -> None:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        sources: dict[str, str] = content.pop("sources")
        self._cores = {core: _rows(groups, sources) for core, groups in content.items()}

    def row(self, operator: str, core: str) -> Row:
        """Return what is known of an operator on a core; that nothing is, where there is no row."""
        return self._cores[core].get(operator, _UNKNOWN)

    def operators(self, core: str) -> frozenset[str]:
        """Return the operators that the core takes in some form."""
        return frozenset(name for name, row in self._cores[core].items() if row.taken == "yes")

    def cores(self) -> list[str]:
        """Return the names of all cores."""
        return sorted(self._cores)

    def unknown(self, node: Node, core: str) -> Iterator[Breach]:
        """Yield what a node of an operator breaks of which nobody says in public whether the NPU takes it."""
        found = self.row(node.op.kind, core)
        if found.taken == "unknown":
            yield Breach(f"no public source says whether the NPU takes it{_more(found)}", {"operator": node.op.kind},
                         confidence="unknown", source=found.source, versions=found.versions)

    def refused(self, node: Node, core: str) -> Iterator[Breach]:
        """Yield what a node of an operator breaks that the NPU does not take in any form."""
        found = self.row(node.op.kind, core)
        if found.taken == "no":
            yield Breach(f"the NPU does not take it{_more(found)}", {"operator": node.op.kind},
                         confidence=found.confidence, source=found.source, versions=found.versions)


def _more(row: Row) -> str:
    return f" ({row.note})" if row.note else ""


def _rows(groups: list[dict[str, Any]], sources: dict[str, str]) -> dict[str, Row]:
    """Spread groups of operators that have one row in common; ``source`` is the name of one, or several joined by +."""
    found: dict[str, Row] = {}
    for group in groups:
        said = "; ".join(sources[name.strip()] for name in group["source"].split("+"))
        row = msgspec.convert({**{k: v for k, v in group.items() if k != "operators"}, "source": said}, Row)
        for name in group["operators"].split():
            if name in found:
                raise InternalError.of("target.rows", f"two rows for {name}")
            found[name] = row
    return found
