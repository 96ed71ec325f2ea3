"""Rows of `verify` and `trace` about single tensors."""

from __future__ import annotations

import msgspec


class FigureOfTensor(msgspec.Struct, kw_only=True):
    """How far one tensor is from the reference's. An infinite SQNR (no error at all) is null with ``equal`` true."""

    sqnr_db: float | None = None
    cosine: float | None = None
    largest_error: float | None = None
    max_lsb: float | None = None
    equal: bool = False


class TracedRow(msgspec.Struct, kw_only=True):
    """One tensor of one stage beside the reference's tensor of that meaning, in running order.

    ``tensor`` is the reference's name, ``candidate`` the stage's own. ``accumulated``: the stage ran as a whole;
    ``own``: the operators that make this tensor were given the reference's values (null where they cannot be run
    alone). ``expected_db`` is the SQNR that rounding alone would leave of ``own``. ``verdict``: ``equal``,
    ``rounding``, ``excess`` (more noise than rounding explains), ``fault``, ``carried`` (its own error is that of an
    input which is cut off) or ``unknown``. ``saturated`` is the share of integers at an end of their type,
    ``clipped`` the share of the reference's values that the stage cannot hold, ``not_finite`` counts values that are
    finite on one side only. ``channels`` are those that are wrong, the worst first, of at most 16. ``covers`` names the
    tensors before this one that the stage does not show, whose operators are judged together with its own.
    """

    stage: str
    tensor: str
    candidate: str = ""
    operator: str = ""
    node: str = ""
    layout: str = ""
    matched: str = ""
    accumulated: FigureOfTensor = msgspec.field(default_factory=FigureOfTensor)
    own: FigureOfTensor | None = None
    expected_db: float | None = None
    verdict: str = "unknown"
    why: str = ""
    saturated: float | None = None
    clipped: float = 0.0
    not_finite: int = 0
    channels: list[int] = []
    covers: list[str] = []


class WorstValue(msgspec.Struct, kw_only=True):
    """One of the values that differ most: its place in the stage's layout, and both sides' value."""

    place: list[int]
    reference: float
    value: float


class TraceRow(msgspec.Struct, kw_only=True):
    """What became of a tensor in one stage.

    ``state``: ``reference``, ``kept`` (it is there), ``fused`` (what it was is done inside another operator), ``gone``
    (nothing computes it any more), or ``hidden`` (the stage shows no inner tensors). ``candidate``, ``type``,
    ``shape``, ``scale`` and ``zero_point`` are the stage's own; ``where`` says in words where it lives on. ``counts``
    is a histogram over ``low`` .. ``high``, which all stages share. ``map`` holds the mean error at each place of the
    picture, coarse: rows of columns, as shares of the reference's largest value. ``used_levels`` of ``all_levels``
    integers occur.
    """

    stage: str
    state: str
    candidate: str = ""
    operator: str = ""
    node: str = ""
    where: str = ""
    type: str = ""
    shape: list[int] = []
    layout: str = ""
    scale: float | None = None
    zero_point: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    zeros: float | None = None
    not_finite: int = 0
    saturated: float | None = None
    used_levels: int | None = None
    all_levels: int | None = None
    low: float = 0.0
    high: float = 0.0
    counts: list[int] = []
    error: FigureOfTensor | None = None
    worst: list[WorstValue] = []
    map: list[list[float]] = []
