"""What `doctor` answers: a machine or a board, part by part, and which compiler fits it."""

from __future__ import annotations

import msgspec


class PartRow(msgspec.Struct, kw_only=True):
    """One part: what was found, what fits, and its ``state``.

    ``state``: ``ok``, ``error``, ``warning``, ``info`` (told, not judged), ``unknown`` (not told, or not in our table).
    """

    name: str
    found: str
    fits: str = ""
    state: str = "info"
    source: str = ""


class BoardRow(msgspec.Struct, kw_only=True):
    """What a board is. ``release`` is the one of its kernel; where ``exact`` is false, the nearest that is known.

    ``compiler`` and ``compiler_version`` are what fits that release, empty where it is not published or none is needed.
    ``told`` is all that the probe printed.
    """

    address: str = ""
    file: str = ""
    target: str = ""
    title: str = ""
    system: str = ""
    kernel: str = ""
    release: str = ""
    exact: bool = False
    source: str = ""
    compiler: str = ""
    compiler_version: str = ""
    whole: bool = True
    told: dict[str, str] = {}


class ServedRow(msgspec.Struct, kw_only=True):
    """A chip and what can be done for it here: ``compiled``, or only ``judged``; ``compiler`` as it is installed."""

    target: str
    can: str
    compiler: str = ""
