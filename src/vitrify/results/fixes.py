"""What fixes did to a model: a line for each, and what they won together."""

from __future__ import annotations

import msgspec


class FixRow(msgspec.Struct, kw_only=True):
    """What one fix did.

    ``places`` counts the nodes that it rewrote, ``won`` those of them that left the CPU. ``won_ms`` is estimated by the
    compiler and what is known of the CPU; null where the compiler was not asked. ``largest_error_lsb`` is the largest
    difference at the outputs of its places, in steps; null where it was not measured. ``undone`` says why places were
    put back.
    """

    name: str
    says: str = ""
    exactness: str = "exact"
    places: int = 0
    won: int = 0
    won_ms: float | None = None
    largest_error_lsb: int | None = None
    examples: list[str] = []
    undone: list[str] = []


class LeftRow(msgspec.Struct, kw_only=True):
    """A node that is still on the CPU, and the rules it breaks by code."""

    node: str
    operator: str
    codes: list[str] = []
    headline: str = ""


class FixOutcome(msgspec.Struct, kw_only=True):
    """What fixing a model came to: shares in 0..1 of nodes and MACs off the CPU, and estimated times, before and after.

    ``proof`` says by what the model was run before and after, and on how many inputs; where it could not be run, why
    not, and nothing was changed. ``largest_error_lsb`` is that of the model's outputs, ``left`` what stays on the CPU.
    """

    target: str
    changed: bool = False
    rows: list[FixRow] = []
    nodes_before: float = 0.0
    nodes_after: float = 0.0
    macs_before: float = 0.0
    macs_after: float = 0.0
    cpu_before: int = 0
    cpu_after: int = 0
    ms_before: float | None = None
    ms_after: float | None = None
    cycles_before: int | None = None
    cycles_after: int | None = None
    largest_error_lsb: int | None = None
    proof: str = ""
    left: list[LeftRow] = []
