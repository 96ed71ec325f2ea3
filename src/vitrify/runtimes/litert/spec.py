"""What crosses between LiteRT's two sides; imports nothing of LiteRT, so that the parent stays free of it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Spec(NamedTuple):
    """Which interpreter: ``stamp`` tells versions of a file apart, ``keep_all`` keeps inner tensors readable."""

    path: str
    stamp: tuple[int, int]
    kernels: str
    keep_all: bool
    threads: int
    shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()


class Details(NamedTuple):
    """What LiteRT says of a file.

    ``computed``: indices of what the main graph's nodes give, in their order. ``signature`` maps names to positions in
    inputs and outputs, None without one. ``kernels``: those that run the file, which are not always those asked for.
    """

    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    tensors: list[dict[str, Any]]
    computed: list[int]
    signature: tuple[dict[str, int], dict[str, int]] | None
    version: str
    kernels: str = ""


class Event(NamedTuple):
    """What was timed: its kind (see ``native``), its name, the number of the operator and that of its graph."""

    type: int
    tag: str
    number: int
    subgraph: int


class Recorded(NamedTuple):
    """Runs with the profiler: ``table`` has the microseconds of each event (columns) in each run (rows).

    ``timed`` are the seconds of those runs, ``plain`` of runs without it, each taken right before or after the one of
    the same number.
    """

    events: list[Event]
    table: Any
    plain: list[float]
    timed: list[float]
    version: str
