"""Where a quantized model loses its answer: operator by operator."""

from __future__ import annotations

import msgspec


class FigureRow(msgspec.Struct, kw_only=True):
    """How far integers are from floats: SQNR in dB, cosine, and the largest error in steps of the integers."""

    sqnr_db: float | None = None
    cosine: float | None = None
    max_lsb: float | None = None
    equal: bool = False


class OperatorRow(msgspec.Struct, kw_only=True):
    """One operator of the quantized file, with the tensor that it gives.

    accumulated: the error that has come together in the tensor, from the input to here.
    single: that of the operator alone, fed with the float model's own values rounded to its input scales.
    part, part_db: of a join, the member that keeps the least, and what it keeps.
    alone_db: what the outputs keep when this operator alone computes in integers, all others in float.
    share: of all noise in the outputs, what this operator adds to that of its inputs.
    cause: the join whose scale the tensor has to have, which leaves it few levels; its share is the join's then.
    """

    node: str
    operator: str
    tensor: str
    origin: list[str] = []
    bits: int | None = None
    accumulated: FigureRow = msgspec.field(default_factory=FigureRow)
    single: FigureRow = msgspec.field(default_factory=FigureRow)
    part: str = ""
    part_db: float | None = None
    alone_db: float | None = None
    share: float | None = None
    cause: str = ""


class DistributionRow(msgspec.Struct, kw_only=True):
    """How the values of one tensor are spread: counts in equal bins from ``low`` to ``high``, float beside integer.

    saturated: the share of integers that stand at an end of their range. dead: the share of float values that are not
    zero and become it. levels: how many of the ``levels_in_all`` integers the float values would reach.
    """

    tensor: str
    operator: str = ""
    low: float = 0.0
    high: float = 0.0
    float_counts: list[int] = []
    integer_counts: list[int] = []
    saturated: float = 0.0
    dead: float = 0.0
    levels: int = 0
    levels_in_all: int = 256


class AnalysisRow(msgspec.Struct, kw_only=True):
    """The operators in the file's order. ``not_aligned``: those that compute inside another's tensor, counted.

    ``sensitive_of`` says of how many operators ``alone_db`` and ``share`` are known, those with the lowest SQNR first.
    """

    reference: str = ""
    candidate: str = ""
    samples: int = 0
    sensitive_of: int = 0
    not_aligned: int = 0
    operators: list[OperatorRow] = []
    distributions: list[DistributionRow] = []

    def worst(self, most: int) -> list[OperatorRow]:
        """The operators that cost the outputs most, those whose figures are poor last where that is not known."""
        return sorted(self.operators, key=_rank)[:most]


def _rank(row: OperatorRow) -> tuple[float, float]:
    own = row.part_db if row.part_db is not None else row.single.sqnr_db
    return -(row.share or 0.0), 1e9 if own is None else own
