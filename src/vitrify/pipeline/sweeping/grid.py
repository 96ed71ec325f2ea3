"""The grid of a sweep: sizes as they are written, precisions, memory modes and arenas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from vitrify.core.errors import UsageError

if TYPE_CHECKING:
    from vitrify.targets import Target

PRECISIONS = ("int8", "int16x8")
ALL = "all"
MOST_CELLS = 5000
MOST_EXTENT = 16384
_SIZE = re.compile(r"(\d+)(?:x(\d+))?")
_RANGE = re.compile(r"(\d+):(\d+)(?::(\d+))?")
_ARENA = re.compile(r"(\d+)\s*([kKmM]?)(?:i?[bB])?")
_UNITS = {"": 1, "k": 1024, "m": 1024 * 1024}


class Size(NamedTuple):
    """Height and width of the pictures; both 0 stand for the model's own size."""

    height: int = 0
    width: int = 0

    @property
    def pixels(self) -> int:
        """How many pixels there are."""
        return self.height * self.width

    def __str__(self) -> str:
        return f"{self.height}x{self.width}" if self.pixels else "own"


class Setting(NamedTuple):
    """What of a cell does not depend on its size: mode and arena are empty where a target's compiler has no such."""

    precision: str
    memory_mode: str = ""
    arena_bytes: int | None = None

    def __str__(self) -> str:
        arena = "" if self.arena_bytes is None else f", {self.arena_bytes / 1024:g} KiB"
        return f"{self.precision}{f', {self.memory_mode}' if self.memory_mode else ''}{arena}"


class Grid(NamedTuple):
    """All cells: every size with every setting."""

    sizes: tuple[Size, ...]
    settings: tuple[Setting, ...]


def read_sizes(texts: Sequence[str]) -> tuple[Size, ...]:
    """Read ``160:640:32``, ``224``, ``480x640`` with commas between; smallest first, each once.

    Raises:
        UsageError: a text is none of these.
    """
    found: set[Size] = set()
    for text in (word.strip() for given in texts for word in given.split(",") if word.strip()):
        found |= set(_sizes(text))
    return tuple(sorted(found, key=lambda size: (size.pixels, size)))


def _sizes(text: str) -> list[Size]:
    if match := _RANGE.fullmatch(text):
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 32)
        if 0 < first <= last <= MOST_EXTENT and step > 0:
            return [Size(extent, extent) for extent in range(first, last + 1, step)]
    elif match := _SIZE.fullmatch(text):
        height, width = int(match[1]), int(match[2] or match[1])
        if min(height, width) > 0 and max(height, width) <= MOST_EXTENT:
            return [Size(height, width)]
    raise UsageError.of("sweep.size", f"--size {text!r} is no size from 1 to {MOST_EXTENT}", where="--size",
                        help="write it like --size 160:640:32 (from, to, step), --size 224,320 or --size 480x640")


def read_precisions(texts: Sequence[str]) -> tuple[str, ...]:
    """Read names of precisions with commas between.

    Raises:
        UsageError: there is no such precision.
    """
    found = _words(texts) or [PRECISIONS[0]]
    found = list(PRECISIONS) if ALL in found else found
    for name in found:
        if name not in PRECISIONS:
            raise UsageError.of("sweep.precision", f"there is no precision {name!r}", where="--precision",
                                help=f"there are {', '.join(PRECISIONS)}, {ALL}")
    return tuple(dict.fromkeys(found))


def read_arenas(texts: Sequence[str]) -> tuple[int, ...]:
    """Read sizes of on-chip memory: ``384K``, ``1M``, or bytes.

    Raises:
        UsageError: a text is none.
    """
    found = []
    for text in _words(texts):
        match = _ARENA.fullmatch(text)
        size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
        if not 1024 <= size <= 1 << 32:
            raise UsageError.of("sweep.arena", f"--arena {text!r} is no size of memory from 1 KiB to 4 GiB",
                                where="--arena", help="write it like --arena 384K,256K")
        found.append(size)
    return tuple(dict.fromkeys(found))


def settings_of(target: Target, precisions: Sequence[str], modes: Sequence[str],
                arenas: Sequence[int]) -> tuple[Setting, ...]:
    """Return every precision with every memory mode and arena that the target's compiler has.

    Raises:
        UsageError: the target has no such mode, or none at all.
    """
    wanted = _words(modes)
    if target.backend != "vela":
        if arenas or any(name != ALL for name in wanted):
            raise UsageError.of("sweep.memory-mode", f"{target.name} has no memory modes to choose from",
                                where="--memory-mode, --arena", help="leave them out; they are settings of Vela")
        return tuple(Setting(precision) for precision in precisions)
    from vitrify.backends.vela.modes import legal_modes, usual_mode

    legal = legal_modes(target)
    known = {name.lower(): name for name in legal}
    chosen = legal if ALL in wanted else [known.get(name.lower(), name) for name in wanted] or [usual_mode(target)]
    for name in chosen:
        if name not in legal:
            raise UsageError.of("sweep.memory-mode", f"{target.name} has no memory mode {name!r}",
                                where="--memory-mode", help=f"it has {', '.join(legal)}; {ALL} takes each")
    return tuple(Setting(*one) for one in product(precisions, dict.fromkeys(chosen), arenas or (None,)))


def checked(grid: Grid) -> Grid:
    """Refuse a grid that would take for ever.

    Raises:
        UsageError: it has too many cells.
    """
    count = len(grid.sizes) * len(grid.settings)
    if count > MOST_CELLS:
        raise UsageError.of("sweep.cells", f"the grid has {count:,} cells, at most {MOST_CELLS:,} are swept at once",
                            help="take larger steps, or fewer precisions, modes and arenas")
    return grid


def _words(texts: Sequence[str]) -> list[str]:
    return [word for text in texts for word in text.replace(" ", "").split(",") if word]
