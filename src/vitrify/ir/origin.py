"""Where nodes and tensors come from: the names in the user's file, and the passes that touched them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MOST_SOURCES = 64
"""Kept of one origin, half from each end: what became of a chain of thousands must not carry them all at each step."""


class Source(NamedTuple):
    """One node or tensor of the user's file: its name there, and its operator there ('' for a tensor)."""

    name: str
    operator: str = ""


class Origin(NamedTuple):
    """The sources something was made from, in order, and the passes that made it.

    Fusing joins origins, splitting copies them. An empty origin says "made by the tool".
    """

    sources: tuple[Source, ...] = ()
    passes: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, operator: str = "") -> Origin:
        """The origin of something that stands in the user's file under ``name``."""
        return cls((Source(name, operator),))

    def by(self, name: str) -> Origin:
        """The same sources, after the pass ``name``."""
        return self if name in self.passes else Origin(self.sources, (*self.passes, name))

    def __str__(self) -> str:
        return " + ".join(s.name for s in self.sources) or "(made by Vitrify)"


def join(origins: Iterable[Origin], by: str = "") -> Origin:
    """Join several origins into one, each source once, in order of first appearance; of very many, both ends."""
    listed = list(origins)
    sources = tuple(dict.fromkeys(s for o in listed for s in o.sources))
    if len(sources) > MOST_SOURCES:
        sources = sources[: MOST_SOURCES // 2] + sources[-(MOST_SOURCES // 2) :]
    passes = tuple(dict.fromkeys(p for o in listed for p in o.passes))
    joined = Origin(sources, passes)
    return joined.by(by) if by else joined
