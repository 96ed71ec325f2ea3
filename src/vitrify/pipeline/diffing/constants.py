"""How far two constants differ, whatever their layouts and types."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np

from vitrify.ir import DType, Tensor
from vitrify.matching.digests import digest
from vitrify.results.diffing import ChangeRow
from vitrify.verify.alignment import Layout, layouts

Array = np.ndarray[Any, np.dtype[Any]]

ROUNDING = 2e-5
"""Differences below this share of the largest value are roundings of float32, as of a batch norm folded in another
order; exporters of one model differ by up to 7e-6."""

NEAREST = 0.51
"""Steps that rounding to the nearest level moves a value."""

WITH_COMPENSATION = 2.5
"""Steps that a rounding moves which makes up for the errors of other values."""

QUANTIZING = 0.2
"""Share of its own size by which quantizing may change a constant: clipped weights, corrected biases."""

HALF, LEAST_HALF = 2.0 ** -11 * 1.001, 6e-8
"""What rounding to float16 moves a value by: half a step of its 11 bits, and of the least number there is."""

CORRECTION = 4.0
"""Steps of the output by which quantizing may move a bias."""

MOST_TRIED = 64_000_000
"""Elements up to which layouts are told apart by values."""


def constant_changes(what: str, a: Tensor, b: Tensor, *, is_relaid: bool = False,
                     step: float = 0.0) -> Iterator[ChangeRow]:
    """Yield how constant ``b`` differs from ``a``; its type alone and rounding to it are not told here.

    ``is_relaid``: the nodes have other layouts, so that small lists of axes and extents must differ. ``step`` is that
    of what a bias is added to: quantizing moves a bias by some, to make up for the errors of weights.
    """
    if a.data is None or b.data is None or a.data is b.data:
        return
    yield from _granularity(what, a, b)
    if a.dtype.numpy is None or b.dtype.numpy is None:
        if a.data.tobytes() != b.data.tobytes():
            yield ChangeRow(kind="constant", what=what, text=f"{what} holds other values")
        return
    if a.size != b.size:
        if not (is_relaid and a.size <= 8 and b.size <= 8):
            yield ChangeRow(kind="constant", what=what, before=list(a.shape), after=list(b.shape),
                            text=f"{what} is {list(a.shape)}, then {list(b.shape)}")
        return
    if _equal(a, b):
        return
    if a.dtype.numpy.kind in "iub" and a.quantization is None and b.quantization is None:
        yield from _integers(what, a, b, is_relaid)
        return
    with np.errstate(all="ignore"):                        # infinities, as masks have them
        rows = list(_values(what, a, b, step))
    for row in rows:
        row.error = row.error if row.error is not None and isfinite(row.error) else None     # of a bias of zeros
        yield row


def _granularity(what: str, a: Tensor, b: Tensor) -> Iterator[ChangeRow]:
    if a.quantization is None or b.quantization is None or not a.quantization.scale.size or \
            not b.quantization.scale.size:
        return
    before, after = (f"{t.quantization.scale.size} scales" if t.quantization is not None and t.quantization.scale.size
                     > 1 else "one scale" for t in (a, b))
    if before != after and a.size > 1:
        yield ChangeRow(kind="granularity", what=what, before=before, after=after,
                        text=f"{what} has {before}, then {after}")


def _equal(a: Tensor, b: Tensor) -> bool:
    if a.quantization != b.quantization or a.dtype is not b.dtype:
        return False
    return a.shape == b.shape and np.array_equal(a.data, b.data) if a.data is not None and b.data is not None else False


def _integers(what: str, a: Tensor, b: Tensor, is_relaid: bool) -> Iterator[ChangeRow]:
    assert a.data is not None
    assert b.data is not None
    mine, other = np.asarray(a.data).reshape(-1), np.asarray(b.data).reshape(-1)
    if np.array_equal(mine, other) or (is_relaid and mine.size <= 32):
        return
    if digest(a) is not None and digest(a) == digest(b):
        return
    if mine.size <= 16:
        text = f"{what} is {mine.tolist()}, then {other.tolist()}"
        yield ChangeRow(kind="constant", what=what, before=mine.tolist(), after=other.tolist(), text=text)
    else:
        differing = int((mine != other).sum())
        yield ChangeRow(kind="constant", what=what, text=f"{differing} of {mine.size} values of {what} differ",
                        error=differing / mine.size)


def _values(what: str, a: Tensor, b: Tensor, step: float) -> Iterator[ChangeRow]:
    mine, other, steps = np.atleast_1d(real(a)), np.atleast_1d(real(b)), _steps(a, b)
    layout = _layout(mine, other)
    if layout is None:
        return
    mine = layout.apply(mine)
    scale: Array | None
    if steps is not None and steps[0] is a:
        scale = np.broadcast_to(layout.apply(np.broadcast_to(steps[1], np.atleast_1d(real(a)).shape)), mine.shape)
    else:
        scale = None if steps is None else np.broadcast_to(steps[1], other.shape)
    distance = np.abs(mine - other)
    distance[mine == other] = 0.0                          # infinities
    largest = float(np.nanmax(np.abs(mine[np.isfinite(mine)]), initial=0.0))
    differing = distance > ROUNDING * largest
    if scale is not None:
        moved = float(np.nanmax(distance / np.maximum(scale, 1e-30), initial=0.0))
        if moved <= (NEAREST if steps is not None and steps[2] else 1.01):
            return
        error = _relative(mine, distance)
        if moved <= WITH_COMPENSATION:
            yield ChangeRow(kind="rounding", what=what, error=error,
                            text=f"{what} is rounded by up to {moved:.1f} steps")
            return
        if steps is not None and steps[2] and (
                error <= QUANTIZING or float(np.nanmax(distance, initial=0.0)) <= CORRECTION * step):
            yield ChangeRow(kind="quantization", what=what, error=error, text=_text(
                what, int((distance > NEAREST * scale).sum()), mine, other, distance, error))
            return
    count = int(differing.sum())
    if DType.FLOAT16 in (a.dtype, b.dtype) and bool((distance <= HALF * np.abs(mine) + LEAST_HALF).all()):
        yield ChangeRow(kind="rounding", what=what, text=f"{what} is rounded to float16",
                        error=_relative(mine, distance))
        return
    if not count and bool(distance.any()):
        error = _relative(mine, distance)
        yield ChangeRow(kind="float-rounding", what=what, error=error, text=f"{what} differs by rounding of float32")
    elif count:
        error = _relative(mine, distance)
        yield ChangeRow(kind="constant", what=what, error=error, text=_text(what, count, mine, other, distance, error))


def _text(what: str, count: int, mine: Array, other: Array, distance: Array, error: float) -> str:
    where = np.unravel_index(int(np.nanargmax(distance)), distance.shape) if distance.ndim else ()
    at = f"at {[int(i) for i in where]} {float(mine[where]):.6g} became {float(other[where]):.6g}"
    share = f"{count} of {mine.size} values" if mine.size > 1 else "the value"
    much = f", by {error:.2g} of its size in all" if isfinite(error) else "" if mine.any() else ", which were all 0"
    return f"{share} of {what} differ{much}; {at}" if mine.size > 1 else f"{what}: {at}"


def _relative(mine: Array, distance: Array) -> float:
    size = float(np.sqrt(np.nansum(np.square(mine, dtype=np.float64))))
    return float(np.sqrt(np.nansum(np.square(distance, dtype=np.float64)))) / size if size else float("inf")


def real(tensor: Tensor) -> Array:
    """The real values of a constant."""
    assert tensor.data is not None
    data = np.asarray(tensor.data)
    quantization = tensor.quantization
    if quantization is not None and quantization.scale.size and data.dtype.kind in "iu":
        return quantization.dequantize(data)
    return data.astype(np.float64 if data.dtype.kind in "iu" and data.dtype.itemsize > 2 else np.float32)


def _steps(a: Tensor, b: Tensor) -> tuple[Tensor, Array, bool] | None:
    """The constant with the larger steps, them as they broadcast, and whether the other one has none."""
    found = []
    for tensor in (a, b):
        quantization = tensor.quantization
        if quantization is None or not quantization.scale.size:
            continue
        shape = [1] * len(tensor.shape)
        if quantization.scale.size > 1 and quantization.axis is not None:
            shape[quantization.axis] = -1
            found.append((tensor, quantization.scale.reshape(shape)))
        else:
            found.append((tensor, np.asarray(quantization.scale[0])))
    if not found:
        return None
    tensor, scale = max(found, key=lambda one: float(np.max(one[1])))
    return tensor, scale, len(found) == 1


def _layout(mine: Array, other: Array) -> Layout | None:
    """The change of layout under which both agree best."""
    if mine.shape == other.shape:
        plain = Layout()
        if mine.ndim < 2 or mine.size > MOST_TRIED or _close(mine, other) or len(set(mine.shape)) == mine.ndim:
            return plain
    fitting = layouts(mine.shape, other.shape)
    if not fitting:
        return Layout((), other.shape)
    return min(fitting, key=lambda layout: float(np.nansum(np.abs(layout.apply(mine) - other))))


def _close(mine: Array, other: Array) -> bool:
    """True when values at the same places agree well enough that no other order need be tried."""
    sample = slice(0, 4096)
    a, b = mine.reshape(-1)[sample], other.reshape(-1)[sample]
    return float(np.nansum(np.abs(a - b))) <= 0.1 * float(np.nansum(np.abs(a)))
