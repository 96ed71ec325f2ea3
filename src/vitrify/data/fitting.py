"""Whether an array fits an input of a model, and how one sample of it becomes that input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.findings import Finding
from vitrify.data.preprocess import PictureShape, Preprocess, holds_pixels, pixels_prepared
from vitrify.ir.dtypes import element_type, is_float
from vitrify.ir.interface import InputBinding

Array = np.ndarray[Any, np.dtype[Any]]

TURNS = {"nhwc": (2, 0, 1), "nchw": (1, 2, 0)}
"""From an array's layout to the other one, without the batch."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` samples of shape ``inner`` each; ``perm`` turns one to the input's layout, ``pixels`` are prepared."""

    count: int
    inner: tuple[int, ...]
    perm: tuple[int, ...] = ()
    pixels: bool = False

    @property
    def elements(self) -> int:
        """Values of one sample."""
        return math.prod(self.inner)

    def apply(self, values: Array, binding: InputBinding, preprocess: Preprocess) -> Array:
        """Make the input's array of the values of one sample."""
        if self.pixels:
            shape = PictureShape.of(tuple(binding.shape))
            assert shape is not None
            return pixels_prepared(values.reshape(self.inner), preprocess, shape).reshape(binding.shape)
        array = values.reshape(self.inner).transpose(self.perm) if self.perm else values
        return np.ascontiguousarray(array, element_type(binding.dtype)).reshape(binding.shape)


def fit(path: Path | str, binding: InputBinding, shape: Sequence[int], dtype: np.dtype[Any],
        preprocess: Preprocess) -> Fit | Finding:
    """Say how an array becomes samples of an input, or what is wrong with it; ``path`` is what messages call it."""
    found, wanted = tuple(shape), tuple(binding.shape)
    if is_float(element_type(binding.dtype)) and holds_pixels(found, dtype) and PictureShape.of(wanted) is not None:
        return Fit(count=found[0] if len(found) == 4 else 1, inner=found[-3:], pixels=True)
    fitted = _as_is(found, wanted) or _turned(found, wanted, TURNS.get(preprocess.layout))
    if fitted is None:
        return _misfit(path, binding, found, dtype)
    return fitted if _means_the_same(dtype, element_type(binding.dtype)) else _other_type(path, binding, found, dtype)


def _as_is(found: tuple[int, ...], wanted: tuple[int, ...]) -> Fit | None:
    """The input's shape itself, the same without its leading 1, or either with a number of samples in front."""
    inner = wanted[1:] if wanted[:1] == (1,) else wanted
    if found in (wanted, inner):
        return Fit(count=1, inner=found)
    return Fit(count=found[0], inner=found[1:]) if found and found[1:] in (wanted, inner) else None


def _turned(found: tuple[int, ...], wanted: tuple[int, ...], turn: tuple[int, ...] | None) -> Fit | None:
    inner = wanted[1:] if wanted[:1] == (1,) else wanted
    if turn is None or len(inner) != 3 or len(found) not in (3, 4) or tuple(found[-3:][a] for a in turn) != inner:
        return None
    return Fit(count=found[0] if len(found) == 4 else 1, inner=found[-3:], perm=turn)


def _means_the_same(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    if is_float(wanted):
        return is_float(found)
    return found.kind == wanted.kind or np.can_cast(found, wanted)


def _headline(path: Path | str, binding: InputBinding, found: Sequence[int], dtype: np.dtype[Any]) -> str:
    expected = f"{binding.dtype}[{','.join(map(str, binding.shape))}]"
    return f"{Path(path).name} holds {dtype}[{','.join(map(str, found))}], input '{binding.name}' takes {expected}"


def own_layout(binding: InputBinding, found: Sequence[int]) -> str:
    """Say so where an array has the layout of the converted file, whose source model has another; else nothing."""
    wanted = tuple(binding.shape)
    if not binding.perm:
        return ""
    own = tuple(wanted[axis] for axis in binding.perm)
    if own == wanted or tuple(found)[-len(own) + 1:] != own[1:]:
        return ""
    return (f"the file itself has [{','.join(map(str, own))}] there; samples are given as its source model takes them, "
            f"[{','.join(map(str, wanted))}]")


def _misfit(path: Path | str, binding: InputBinding, found: tuple[int, ...], dtype: np.dtype[Any]) -> Finding:
    headline, wanted = _headline(path, binding, found, dtype), tuple(binding.shape)
    for layout, turn in TURNS.items():
        if _turned(found, wanted, turn) is not None:
            other = "NHWC" if layout == "nhwc" else "NCHW"
            return Finding(code="data.layout", headline=headline, where=str(path),
                           why=own_layout(binding, found) or "the shape is that of the input with the channels "
                               f"{'last' if turn[0] == 2 else 'first'} ({other})",
                           help=f"say so with --prepare layout={layout}, or transpose the array")
    return Finding(code="data.shape", headline=headline, where=str(path),
                   help="a number of samples may stand in front of that shape")


def _other_type(path: Path | str, binding: InputBinding, found: tuple[int, ...], dtype: np.dtype[Any]) -> Finding:
    return Finding(code="data.dtype", headline=_headline(path, binding, found, dtype), where=str(path),
                   why="the values would not mean the same",
                   help="save the values as the model takes them, already scaled")
