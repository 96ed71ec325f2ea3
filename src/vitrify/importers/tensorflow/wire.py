"""Protocol buffers without their schema: the fields of a message, for a few that are looked at.

Nothing is trusted: lengths are compared with what is there before anything is taken, and nothing is copied.
Source: Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


class WireError(ValueError):
    """The bytes are no message."""


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field: whole numbers as they are, all else as bytes.

    Raises:
        WireError: the bytes are no message.
    """
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError(f"field 0 at byte {place}")
        if kind == VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if kind == BYTES:
            size, place = _varint(data, place)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise WireError(f"wire type {kind} at byte {place}")
        if size > len(data) - place:
            raise WireError(f"a field of {size:,} bytes at byte {place}, {len(data) - place:,} are left")
        yield number, data[place:place + size]
        place += size


def messages(data: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the fields of that number that are messages, strings or bytes."""
    for found, value in fields(data):
        if found == number and isinstance(value, memoryview):
            yield value


def message(data: memoryview, number: int) -> memoryview:
    """Return the last such field, as protocol buffers have it; empty when there is none."""
    last = memoryview(b"")
    for last in messages(data, number):  # noqa: B007
        pass
    return last


def text(data: memoryview, number: int) -> str:
    """Return a field that is a string."""
    return bytes(message(data, number)).decode("utf-8", "replace")


def whole(data: memoryview, number: int) -> int:
    """Return a field that is a signed whole number, 0 when it is not there."""
    found = 0
    for which, value in fields(data):
        if which == number and isinstance(value, int):
            found = value
    return found - (1 << 64) if found >> 63 else found


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for step, byte in enumerate(data[place:place + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value & (1 << 64) - 1, place + step + 1
    raise WireError(f"a number without an end at byte {place}")
