"""From Records to bytes: a flatbuffer encoder that writes front to back.

Tables come first, parents before children; the contents of buffers follow behind, aligned, so that weights are handed
on as they are and copied once, into the file. The same records always give the same bytes.
Source: the FlatBuffers binary format ("Internals" in its documentation); alignment: the TFLite schema's ``Buffer``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from vitrify.tflite import schema
from vitrify.tflite.schema import SCALARS, Field, Record

BUFFER_ALIGNMENT = 16
_U32 = struct.Struct("<I")


class _Layout(NamedTuple):
    packer: struct.Struct
    vtable: bytes
    fields: tuple[tuple[Field, int], ...]     # widest first, with their distance from the table's start
    wide: bool                                # holds 8-byte fields


@cache
def _layout(table: str, present: tuple[str, ...]) -> _Layout:
    fields: list[tuple[Field, str]] = []
    for field in schema.fields(table):
        if field.name in present:
            fields.append((field, field.of if field.kind == "scalar" else "I"))
            if field.kind == "union":
                fields.append((Field(f"{field.name}_type", field.slot - 1, "scalar", "B", 0), "B"))
    fields.sort(key=lambda item: (-SCALARS[item[1]].itemsize, item[0].slot))
    slots = [0] * (1 + max((f.slot for f, _ in fields), default=-1))
    offset, placed = 4, []
    for field, code in fields:
        slots[field.slot] = offset
        placed.append((field, offset))
        offset += SCALARS[code].itemsize
    vtable = struct.pack(f"<{2 + len(slots)}H", 4 + 2 * len(slots), offset, *slots)
    return _Layout(struct.Struct("<i" + "".join(code for _, code in fields)), vtable, tuple(placed),
                   any(SCALARS[code].itemsize == 8 for _, code in fields))


class Pending:
    """An array that is put into C order only when its turn to be written comes: one transposed copy at a time."""

    def __init__(self, array: np.ndarray[Any, np.dtype[Any]]) -> None:
        self._array = array
        self.nbytes: int = array.nbytes

    def __len__(self) -> int:
        return self.nbytes

    def view(self) -> memoryview:
        """The bytes in C order; without a copy where the array has that order already."""
        return np.ascontiguousarray(self._array).reshape(-1).view(np.uint8).data


class Encoder:
    """Encodes one root record; ``chunks`` then gives the file's pieces in order."""

    def __init__(self, identifier: bytes) -> None:
        self._out = bytearray(4) + identifier
        self._vtables: dict[bytes, int] = {}
        self._behind: list[tuple[int, Any]] = []

    def root(self, record: Record) -> None:
        """Encode the root record with all below it."""
        _U32.pack_into(self._out, 0, self._table(record))

    def size(self) -> int:
        """The number of bytes of the whole file."""
        return self._arrange()[1]

    def chunks(self) -> Iterator[bytes | bytearray | memoryview]:
        """Yield the pieces of the file; the contents of buffers are passed on without a copy."""
        places, _ = self._arrange()
        for (patch, _), place in zip(self._behind, places, strict=True):
            _U32.pack_into(self._out, patch, place - patch)
        yield self._out
        written = len(self._out)
        for (_, content), place in zip(self._behind, places, strict=True):
            yield bytes(place - written) + _U32.pack(content.nbytes)
            yield content.view() if isinstance(content, Pending) else content
            written = place + 4 + content.nbytes

    def _arrange(self) -> tuple[list[int], int]:
        end, places = len(self._out), []
        for _, content in self._behind:
            place = end + -(end + 4) % BUFFER_ALIGNMENT
            places.append(place)
            end = place + 4 + content.nbytes
        return places, end

    def _align(self, size: int, after: int = 0) -> int:
        """Pad so that the byte ``after`` behind the returned position is aligned to ``size``."""
        self._out += bytes(-(len(self._out) + after) % size)
        return len(self._out)

    def _table(self, record: Record) -> int:
        values = record.__dict__
        present = tuple(name for name, default in schema.defaults(record.table).items()
                        if values[name] is not None and (default is None or values[name] != default))
        layout = _layout(record.table, present)
        vtable = self._vtables.get(layout.vtable)
        if vtable is None:
            vtable = self._vtables[layout.vtable] = self._align(2)
            self._out += layout.vtable
        position = self._align(8, 4) if layout.wide else self._align(4)
        inline = [_inline(field, values) for field, _ in layout.fields]
        self._out += layout.packer.pack(position - vtable, *inline)
        for field, offset in layout.fields:
            if field.kind != "scalar":
                self._child(field, values[field.name], position + offset, record.table)
        return position

    def _child(self, field: Field, value: Any, patch: int, table: str) -> None:
        """Write what an offset field leads to, and the offset to it at ``patch``."""
        if table == "Buffer":
            self._behind.append((patch, value if isinstance(value, Pending) else as_bytes(value)))
            return
        if field.kind == "tables":
            place = self._offsets(value, self._table)
        elif field.kind == "strings":
            place = self._offsets(value, self._string)
        elif field.kind == "vector":
            place = self._vector(value, field.of)
        elif field.kind == "string":
            place = self._string(value)
        else:
            place = self._table(value)
        _U32.pack_into(self._out, patch, place - patch)

    def _offsets(self, items: Sequence[Any], write: Callable[[Any], int]) -> int:
        place = self._align(4)
        self._out += _U32.pack(len(items)) + bytes(4 * len(items))
        for patch, item in zip(range(place + 4, place + 4 + 4 * len(items), 4), items, strict=True):
            _U32.pack_into(self._out, patch, write(item) - patch)
        return place

    def _vector(self, values: Any, code: str) -> int:
        dtype = SCALARS[code]
        array = np.frombuffer(values, dtype) if isinstance(values, bytes) else np.asarray(values, dtype)
        place = self._align(max(4, dtype.itemsize), 4)
        self._out += _U32.pack(array.size) + array.tobytes()
        return place

    def _string(self, text: str) -> int:
        raw = text.encode("utf-8")
        place = self._align(4)
        self._out += _U32.pack(len(raw)) + raw + b"\0"
        return place


def as_bytes(content: Any) -> memoryview:
    """The content of a buffer as bytes, without a copy."""
    return memoryview(content).cast("B") if len(content) else memoryview(b"")


def _inline(field: Field, values: dict[str, Any]) -> Any:
    """The number that stands in the table itself: the value, a union's type, or room for an offset."""
    if field.kind != "scalar":
        return 0
    if field.name in values:
        return values[field.name]
    union = field.name.removesuffix("_type")
    return schema.members(schema.UNIONS[union]).index(values[union].table)
