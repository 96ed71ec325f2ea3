"""Permutations of dimensions, as ``numpy.transpose`` takes them: axis ``i`` of the result is axis ``perm[i]``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

Perm = tuple[int, ...]
Shape = tuple[int, ...]


def identity(rank: int) -> Perm:
    """The permutation that changes nothing."""
    return tuple(range(rank))


def is_identity(perm: Perm) -> bool:
    """True when nothing moves."""
    return perm == tuple(range(len(perm)))


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes ``perm``."""
    result = [0] * len(perm)
    for to, where in enumerate(perm):
        result[where] = to
    return tuple(result)


def then(first: Perm, second: Perm) -> Perm:
    """Transposing by ``first`` and the result by ``second``, as one permutation."""
    return tuple(first[i] for i in second)


def permute(values: Sequence[int], perm: Perm) -> Shape:
    """Reorder one value per axis."""
    return tuple(values[i] for i in perm)


def moves_only_ones(shape: Sequence[int], perm: Perm) -> bool:
    """True when only axes of extent 1 change their place, so that a reshape does the same."""
    kept = [axis for axis in perm if shape[axis] != 1]
    return kept == sorted(kept)


def drop(perm: Perm, axes: Iterable[int]) -> Perm:
    """The permutation of what is left when ``axes`` (of the unpermuted tensor) are removed."""
    gone = set(axes)
    rank_of = {axis: i for i, axis in enumerate(a for a in range(len(perm)) if a not in gone)}
    return tuple(rank_of[axis] for axis in perm if axis not in gone)


def insert(perm: Perm, axes: Sequence[int]) -> Perm:
    """A permutation that ``drop(..., axes)`` makes ``perm``; each new axis stands, stored, at its own number."""
    total = len(perm) + len(axes)
    old = [a for a in range(total) if a not in set(axes)]
    rest = iter(old[i] for i in perm)
    return tuple(a if a in set(axes) else next(rest) for a in range(total))


def groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]] | None:
    """Match the axes of two shapes of the same size in the smallest runs of equal extent.

    Axes of extent 1 are left out. ``[2,3,4] -> [6,4]`` gives ``[([0,1],[0]), ([2],[1])]``. None when an extent is 0.
    """
    if 0 in before or 0 in after or prod(before) != prod(after):
        return None
    left = [i for i, n in enumerate(before) if n != 1]
    right = [i for i, n in enumerate(after) if n != 1]
    result: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left):
        a, b = [left[i]], [right[j]]
        m, n = before[left[i]], after[right[j]]
        i, j = i + 1, j + 1
        while m != n:
            if m < n:
                a.append(left[i])
                m, i = m * before[left[i]], i + 1
            else:
                b.append(right[j])
                n, j = n * after[right[j]], j + 1
        result.append((a, b))
    return result


def through_reshape(before: Shape, perm: Perm, after: Shape) -> Perm | None:
    """The permutation of ``after`` that a reshape from ``before`` stored by ``perm`` can give; None when it cannot.

    Axes that the reshape joins or splits must stay together and in order. Axes of extent 1 have no place of their own:
    leading ones stay leading, others follow the axis before them.
    """
    runs = groups(before, after)
    if runs is None:
        return None
    run_of = {axis: run for run in runs for axis in run[0]}
    order = [axis for axis in perm if before[axis] != 1]
    placed: list[int] = []
    while order:
        left, right = run_of[order[0]]
        if order[:len(left)] != left:
            return None
        order = order[len(left):]
        placed += right
    return _with_ones(after, placed)


def _with_ones(shape: Shape, placed: list[int]) -> Perm:
    """Put the axes of extent 1 back among the others."""
    followers: dict[int, list[int]] = {}
    current = -1
    for axis, extent in enumerate(shape):
        if extent != 1:
            current = axis
        else:
            followers.setdefault(current, []).append(axis)
    result = list(followers.get(-1, []))
    for axis in placed:
        result += [axis, *followers.get(axis, [])]
    return tuple(result)
