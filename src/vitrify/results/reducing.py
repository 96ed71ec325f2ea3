"""What `reduce` and `bisect` found."""

from __future__ import annotations

import msgspec


class ReduceStep(msgspec.Struct, kw_only=True):
    """One step of a reduction: what it tried, and what was left behind it."""

    name: str
    tries: int = 0
    nodes_before: int = 0
    nodes_after: int = 0
    bytes_after: int = 0
    seconds: float = 0.0


class BisectRow(msgspec.Struct, kw_only=True):
    """What brings an error: ``kind`` is ``pass`` or ``operator``, ``name`` in the user's names.

    The errors are the SQNR of the worst output, in dB: ``all`` with everything as it is, ``without`` with this one
    alone left out (kept in float, or not run), ``before`` and ``after`` up to and with it, in the order they come. An
    SQNR of null is no error at all.
    """

    kind: str
    name: str
    operator: str = ""
    source: str = ""
    all_db: float | None = None
    without_db: float | None = None
    before_db: float | None = None
    after_db: float | None = None
    words: str = ""
