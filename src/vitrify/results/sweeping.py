"""What a sweep over sizes, precisions and memory modes found."""

from __future__ import annotations

import msgspec

from vitrify.results.rows import Coverage


class CellRow(msgspec.Struct, kw_only=True):
    """One point of the grid; ``problem`` says why there are no figures, ``code`` which finding that is.

    ``cpu_operators`` counts the nodes on the CPU by kind, ``rules`` why they are there. ``near_bytes`` is what has to
    fit into on-chip memory, ``near_limit_bytes`` what there is of it; ``far_bytes`` lie outside. Latencies are
    estimates; ``source`` says whose. ``cautions`` are what published cases make one expect beside the figures, by code.
    """

    size: str
    height: int = 0
    width: int = 0
    precision: str
    memory_mode: str = ""
    arena_bytes: int | None = None
    problem: str = ""
    code: str = ""
    nodes: int = 0
    cpu_nodes: int = 0
    cpu_operators: dict[str, int] = {}
    rules: dict[str, int] = {}
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    partitions: int = 0
    macs: int = 0
    latency_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    source: str = ""
    near_bytes: int | None = None
    near_limit_bytes: int | None = None
    far_bytes: int | None = None
    far_traffic_bytes: int | None = None
    cautions: dict[str, str] = {}


class CliffRow(msgspec.Struct, kw_only=True):
    """A step of the grid that costs more than its size explains.

    ``kind``: ``latency`` (for each MAC, or for each pixel), ``coverage`` (nodes leave the NPU), ``memory`` (what lies
    outside, for each pixel), ``on-chip`` (what has to fit no longer does), ``refused`` (nothing comes of it any more).
    ``factor`` is how much more than the size explains. ``recommended`` is the largest size before.
    """

    kind: str
    precision: str
    memory_mode: str = ""
    arena_bytes: int | None = None
    size_before: str
    size_after: str
    before: float | None = None
    after: float | None = None
    factor: float | None = None
    headline: str = ""
    recommended: str = ""
