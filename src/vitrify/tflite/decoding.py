"""From bytes to Records: a flatbuffer decoder that trusts nothing.

Every offset is checked before it is followed, and what a file may cost is bounded by its size: shared or cyclic
offsets cannot blow up memory or time. Vectors of scalars are views into the file, never copies.
Source: the FlatBuffers binary format ("Internals" in its documentation).
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, NoReturn

import numpy as np

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.tflite import schema
from vitrify.tflite.schema import SCALARS, Field, Record

MAX_TABLES = 1_000_000     # as the verifier of FlatBuffers allows
BYTES_OF_A_TABLE = 4       # at least; a file with more tables has some that are listed many times
MAX_DEPTH = 32             # the schema's deepest path is far below
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_U16 = struct.Struct("<H")
_SCALAR = {code: struct.Struct("<" + code) for code in SCALARS}


@cache
def _plan(table: str) -> tuple[tuple[Field, int, int], ...]:
    """The fields with their place in a vtable and the size of what stands in the table itself."""
    return tuple((f, 4 + 2 * f.slot, SCALARS[f.of].itemsize if f.kind == "scalar" else 4) for f in schema.fields(table))


class Decoder:
    """Decodes the tables of one file.

    ``data`` is the whole file as uint8; the arrays handed out are views of it.
    """

    def __init__(self, data: np.ndarray[Any, np.dtype[np.uint8]], where: str) -> None:
        self._array = data
        self._bytes = data.data
        self._size = data.size
        self._where = where
        self._tables_left = min(MAX_TABLES, 64 + data.size // BYTES_OF_A_TABLE)
        self._spent = 0
        self._budget = 16 * data.size + 4096
        self._vtables: dict[int, tuple[int, ...]] = {}
        self._strings: dict[int, str] = {}
        self._path: list[str] = []

    def root(self, table: str) -> Record:
        """Decode the file's root table and all below it.

        Raises:
            ModelError: an offset leads out of the file, or the structure is absurd; names the path to it.
        """
        self._path = [table]
        return self._table(table, self._follow(0))

    def _fail(self, what: str) -> NoReturn:
        where = f"{self._where}, {'.'.join(self._path)}"
        raise ModelError.of("tflite.corrupt", f"the file is damaged: {what}", where=where,
                            why=f"every offset must lead to a place inside the file of {self._size} bytes",
                            help="fetch or export the file again; it may be cut short or overwritten")

    def _follow(self, at: int) -> int:
        """Return where the unsigned offset at ``at`` leads to."""
        if at + 4 > self._size:
            self._fail(f"an offset stands at byte {at}")
        target = at + int(_U32.unpack_from(self._bytes, at)[0])
        if target + 4 > self._size or target == at:
            self._fail(f"an offset at byte {at} leads to byte {target}")
        return target

    def _vtable(self, position: int) -> tuple[int, ...]:
        """The field places of the table at ``position``, after the sizes of the vtable and of the table."""
        at = position - int(_I32.unpack_from(self._bytes, position)[0])
        known = self._vtables.get(at)
        if known is not None:
            return known
        if at < 0 or at + 4 > self._size:
            self._fail(f"the table at byte {position} has its field list at byte {at}")
        length = int(_U16.unpack_from(self._bytes, at)[0])
        if length < 4 or length % 2 or at + length > self._size:
            self._fail(f"the field list at byte {at} has {length} bytes")
        found = struct.unpack_from(f"<{length // 2}H", self._bytes, at)
        self._vtables[at] = found
        return found

    def _table(self, name: str, position: int) -> Record:
        self._tables_left -= 1
        if self._tables_left < 0 or len(self._path) > MAX_DEPTH:
            self._fail(f"more tables than its {self._size} bytes can hold, or nested deeper than {MAX_DEPTH}")
        vtable = self._vtable(position)
        if position + vtable[1] > self._size:
            self._fail(f"the table at byte {position} claims {vtable[1]} bytes")
        values: dict[str, Any] = {}
        for field, place, size in _plan(name):
            index = place // 2
            offset = vtable[index] if index < len(vtable) else 0
            if not offset:
                continue
            at = position + offset
            if at + size > self._size:
                self._fail(f"field '{field.name}' stands at byte {at}")
            if field.kind == "scalar":
                values[field.name] = _SCALAR[field.of].unpack_from(self._bytes, at)[0]
            else:
                self._path.append(field.name)
                values[field.name] = self._value(field, at, vtable, position)
                self._path.pop()
        return Record(name, **values)

    def _value(self, field: Field, at: int, vtable: tuple[int, ...], position: int) -> Any:
        target = self._follow(at)
        if field.kind == "vector":
            return self._vector(field.of, target)
        if field.kind == "string":
            return self._string(target)
        if field.kind == "table":
            return self._table(field.of, target)
        if field.kind == "union":
            return self._union(field, target, vtable, position)
        places = self._vector("I", target)
        starts = range(target + 4, target + 4 + 4 * places.size, 4)
        if field.kind == "strings":
            return [self._string(self._follow(start)) for start in starts]
        return [self._entry(field.of, start, index) for index, start in enumerate(starts)]

    def _entry(self, table: str, start: int, index: int) -> Record:
        self._path.append(str(index))
        record = self._table(table, self._follow(start))
        self._path.pop()
        return record

    def _union(self, field: Field, target: int, vtable: tuple[int, ...], position: int) -> Record | None:
        index = 2 + field.slot - 1          # the type number fills the slot before
        offset = vtable[index] if index < len(vtable) else 0
        if offset and position + offset >= self._size:
            self._fail(f"the type of '{field.name}' stands at byte {position + offset}")
        number = self._bytes[position + offset] if offset else 0
        members = schema.members(schema.UNIONS[field.name])
        if number == 0:
            return None
        if number >= len(members):
            raise UnsupportedError.of("tflite.newer", f"'{field.name}' has type {number}, the schema ends at "
                                      f"{len(members) - 1}", where=f"{self._where}, {'.'.join(self._path)}",
                                      why="the file is damaged, or written for a newer TFLite")
        return self._table(members[number], target)

    def _vector(self, code: str, at: int) -> np.ndarray[Any, np.dtype[Any]]:
        dtype = SCALARS[code]
        count = int(_U32.unpack_from(self._bytes, at)[0])
        end = at + 4 + count * dtype.itemsize
        if end > self._size:
            self._fail(f"a vector of {count} elements at byte {at} ends at byte {end}")
        if code != "B":                       # bytes are never taken apart, so views of them cost nothing
            self._spend(count * dtype.itemsize)
        return self._array[at + 4:end].view(dtype)

    def _string(self, at: int) -> str:
        known = self._strings.get(at)
        if known is not None:
            return known
        raw = self._vector("B", at)
        self._spend(raw.size)
        text = raw.tobytes().decode("utf-8", errors="backslashreplace")
        self._strings[at] = text
        return text

    def _spend(self, size: int) -> None:
        self._spent += size
        if self._spent > self._budget:
            self._fail("its parts overlap so often that they add up to more than 16 times the file")
