"""The ledger: what each pass did to the graph, and what it cost or won."""

from __future__ import annotations

from enum import Enum

import msgspec


class Exactness(Enum):
    """How far a rewrite keeps the values."""

    EXACT = "exact"                # bit for bit
    ROUNDING = "rounding"          # equal in real arithmetic; single products may round differently
    APPROXIMATE = "approximate"    # an approximation, its error is measured


class LedgerEntry(msgspec.Struct, kw_only=True):
    """One line: a pass, the places it changed, nodes before and after, and the largest error measured for it.

    ``largest_error`` is None where it was not measured; ``examples`` names some of the user's nodes that changed.
    """

    name: str
    summary: str
    changes: int
    nodes_before: int
    nodes_after: int
    exactness: Exactness = Exactness.EXACT
    largest_error: float | None = None
    transposes_before: int | None = None
    transposes_after: int | None = None
    examples: list[str] = []
    note: str = ""


class Ledger(msgspec.Struct):
    """The entries in the order in which the passes ran."""

    entries: list[LedgerEntry] = []

    def add(self, entry: LedgerEntry) -> None:
        """Append one entry."""
        self.entries.append(entry)
