"""Text that leaves the program: always valid UTF-8, although names of files may hold any bytes."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def json_bytes(value: Any, *, sort: bool = False) -> bytes:
    """Return plain data or structs as JSON; bytes of names that are no text are shown like ``\\udcff``."""
    order: Literal["deterministic"] | None = "deterministic" if sort else None
    try:
        return msgspec.json.encode(value, order=order)
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean(msgspec.to_builtins(value)), order=order)


def clean(text: str) -> str:
    """Return text that can be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


def without_controls(text: str) -> str:
    """Return text with what would steer a terminal, or turn the order of letters round, shown like ``\\x1b``.

    Line ends and tabs stay.
    """
    return text if text.isprintable() else _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(entry) for key, entry in value.items()}
    return [_clean(entry) for entry in value] if isinstance(value, list | tuple) else value
