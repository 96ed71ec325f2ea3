"""Whether outputs of whole numbers agree: class numbers, indices, counts and flags are equal or they are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LONG_RANKING = 1024
"""Rows of more values are maps, not rankings."""


@dataclass
class Agreement:
    """How many values were equal, and whether either side ever gave another value than its first."""

    count: int = 0
    equal: int = 0
    reference_first: float | None = None
    candidate_first: float | None = None
    reference_changes: bool = False
    candidate_changes: bool = False

    def add(self, reference: Array, candidate: Array) -> None:
        """Take in one pair of equal shape.

        Rows without a value twice are rankings, as the indices of TopK are: what counts is which values are among them.
        """
        if not reference.size:
            return
        if self.reference_first is None or self.candidate_first is None:
            self.reference_first = float(reference.reshape(-1)[0])
            self.candidate_first = float(candidate.reshape(-1)[0])
        self.reference_changes |= bool((reference != self.reference_first).any())
        self.candidate_changes |= bool((candidate != self.candidate_first).any())
        self.count += reference.size
        self.equal += _shared(reference, candidate) if _is_ranking(reference) else int((reference == candidate).sum())

    @property
    def share(self) -> float:
        """The share of equal values, 0..1."""
        return self.equal / self.count if self.count else 1.0

    @property
    def is_dead(self) -> bool:
        """True when the candidate gives one value only where the reference does not."""
        return self.reference_changes and not self.candidate_changes


def is_discrete(values: Array) -> bool:
    """True for class numbers, indices, counts and flags; what has 8 or 16 bits may be pixels or steps of a scale."""
    return values.dtype.kind == "b" or (values.dtype.kind in "iu" and values.dtype.itemsize >= 4)


def _is_ranking(values: Array) -> bool:
    if values.ndim == 0 or values.dtype.kind == "b" or not 1 < values.shape[-1] <= LONG_RANKING:
        return False
    rows = np.sort(values.reshape(-1, values.shape[-1]), axis=-1)
    return bool((rows[:, 1:] != rows[:, :-1]).all())


def _shared(reference: Array, candidate: Array) -> int:
    pairs = zip(reference.reshape(-1, reference.shape[-1]), candidate.reshape(-1, reference.shape[-1]), strict=True)
    return sum(len(np.intersect1d(one, other)) for one, other in pairs)
