"""Figures in the words of the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote


def shell(path: object) -> str:
    """Return a file's name as a shell and a command take it: quoted, and never like an option."""
    text = str(path)
    return quote(f"./{text}" if text.startswith("-") else text)


def bytes_text(size: float | None) -> str:
    """Return a size as a person says it."""
    if size is None:
        return "unknown"
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size:.0f} B"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 sample``, ``6 samples``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def percent(share: float | None) -> str:
    """Return a share of 0..1 as per cent; never rounds up to a full 100 %."""
    if share is None:
        return "an unknown share"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{min(share, 0.9999):.1%}" if share < 0.9995 else "99.9%"


def decibels(sqnr: float | None, equal: bool = False) -> str:
    """Return a signal-to-noise ratio; no noise at all is told in words."""
    if equal:
        return "equal"
    return "" if sqnr is None else f"{sqnr:.1f} dB"


def agreeing(share: float | None, equal: bool = False) -> str:
    """Return how many whole numbers are equal, in the place of a ratio that they do not have."""
    return "" if share is None or equal else f"{percent(share)} agree"


def shape_text(shape: Sequence[int | str]) -> str:
    """Return a shape in brackets."""
    return f"[{','.join(map(str, shape))}]"


def count_text(count: float | None) -> str:
    """Return a large count with a unit."""
    if count is None:
        return "unknown"
    for unit, step in ((" T", 1e12), (" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if count >= step:
            return f"{count / step:.3g}{unit}"
    return f"{count:.0f}"
