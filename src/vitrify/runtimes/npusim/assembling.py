"""Whole tensors of the source model out of what single commands store: stripes, slices of channels, parts of a join.

Where a part belongs follows from its address: what lies between it and the first part, in rows, columns and channels.
Of a rolling buffer, whose rows are used again, the rows of one column and channel follow each other as they are made.
What does not add up to each value once is not a tensor of the source model, and is left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from vitrify.runtimes.npusim.machine.features import FeatureMap
from vitrify.runtimes.npusim.machine.machine import Done
from vitrify.tflite.streams import CommandMap, MadeTensor

Array = np.ndarray[Any, np.dtype[Any]]
_BRICK = 16


class Part(NamedTuple):
    """What one command stored: its values, and where its map begins and how it lies."""

    values: Array
    map: FeatureMap


class Collector:
    """Watches a run and keeps what commands store, by the name of the tensor that the compiler says they make."""

    def __init__(self, commands: CommandMap, wanted: Container[str]) -> None:
        self.names = [{offset: commands.scheduled[number].tensor for offset, number in stream
                       if number < len(commands.scheduled) and commands.scheduled[number].tensor in wanted}
                      for stream in commands.streams]
        self.made = commands.tensors()
        self.parts: dict[str, list[Part]] = {}

    def __call__(self, stream: int, done: Done) -> None:
        """Keep what ``done`` stored, if it is wanted; ``stream`` counts the NPU operators."""
        name = self.names[stream].get(done.command.offset) if stream < len(self.names) else None
        if name is not None and done.output is not None:
            stored = np.asarray(done.values).astype(done.output.dtype)
            self.parts.setdefault(name, []).append(Part(stored, done.output))

    def values(self) -> dict[str, Array]:
        """The tensors that came together whole, in the order in which they were begun."""
        found = {}
        for name, parts in self.parts.items():
            value = assembled(parts, self.made[name]) if name in self.made else None
            if value is not None:
                found[name] = value
        return found

    def excess(self) -> dict[str, int]:
        """The tensors of which more values are stored than they have: how many are. The stream is wrong there."""
        found = {name: sum(part.values.size for part in parts) for name, parts in self.parts.items()
                 if name in self.made}
        return {name: count for name, count in found.items()
                if count > int(np.prod(self.made[name].shape, dtype=np.int64))}


def assembled(parts: Iterable[Part], made: MadeTensor) -> Array | None:
    """Return the tensor that the parts make up, None where they do not."""
    listed = list(parts)
    total = int(np.prod(made.shape, dtype=np.int64))
    if not listed or sum(part.values.size for part in listed) != total:
        return None
    dtype = listed[0].values.dtype
    if dtype.itemsize != np.dtype(made.dtype).itemsize or any(part.values.dtype != dtype for part in listed):
        return None
    if len(listed) == 1:
        return listed[0].values.reshape(made.shape)
    places = _places(listed)
    if places is None:
        return None
    extents = [max(at[axis] + part.values.shape[axis] for at, part in zip(places, listed, strict=True))
               for axis in range(3)]
    if int(np.prod(extents, dtype=np.int64)) != total:
        return None
    whole, seen = np.zeros(extents, dtype), np.zeros(extents, bool)
    for (y, x, c), part in zip(places, listed, strict=True):
        high, wide, deep = part.values.shape
        place = np.s_[y:y + high, x:x + wide, c:c + deep]
        if seen[place].any():
            return None
        whole[place], seen[place] = part.values, True
    return whole.reshape(made.shape)


def _places(parts: list[Part]) -> list[tuple[int, int, int]] | None:
    """Row, column and channel at which each part begins; None where the parts lie in different ways."""
    first = parts[0].map
    strides = (first.layout.stride_y, first.layout.stride_x, first.layout.stride_c)
    if min(strides[0], strides[2] if first.layout.bricks else strides[1]) <= 0 or any(
            (part.map.layout.stride_y, part.map.layout.stride_x, part.map.layout.stride_c) != strides
            or part.map.layout.bricks != first.layout.bricks for part in parts):
        return None
    origin = min(part.map.layout.bases[0] for part in parts)
    found = [_place(part.map.layout.bases[0] - origin, first) for part in parts]
    if _distinct(found, parts):
        return found
    rows: dict[tuple[int, int], int] = {}
    rolled = []
    for (_, x, c), part in zip(found, parts, strict=True):
        y = rows.get((x, c), 0)
        rolled.append((y, x, c))
        rows[x, c] = y + part.values.shape[0]
    return rolled


def _place(distance: int, like: FeatureMap) -> tuple[int, int, int]:
    layout = like.layout
    y, rest = divmod(distance, layout.stride_y)
    if layout.bricks:
        brick, rest = divmod(rest, layout.stride_c)
        x, rest = divmod(rest, _BRICK * layout.size)
        return y, x, brick * _BRICK + rest // layout.size
    x, rest = divmod(rest, layout.stride_x)
    return y, x, rest // layout.size


def _distinct(places: list[tuple[int, int, int]], parts: list[Part]) -> bool:
    """True when the parts, as their addresses say, fill a box without a gap."""
    extents = [max(at[axis] + part.values.shape[axis] for at, part in zip(places, parts, strict=True))
               for axis in range(3)]
    return (len(set(places)) == len(places)
            and int(np.prod(extents, dtype=np.int64)) == sum(part.values.size for part in parts))


def named(commands: CommandMap | None) -> Mapping[str, MadeTensor]:
    """The tensors of the source that some command makes, in the order of the commands."""
    if commands is None:
        return {}
    made = commands.tensors()
    order = dict.fromkeys(commands.scheduled[number].tensor for stream in commands.streams for _, number in stream
                          if number < len(commands.scheduled))
    return {name: made[name] for name in order if name in made}
