"""The weights of a large ONNX file, left where they are: in the file, mapped into memory.

Protobuf copies every byte of what it parses. Of a file that is mostly weights, only the rest is given to it: the raw
data of large initializers is cut out of the message, and each becomes a view of the mapped file. What does not look as
expected is left in, for the parser to judge.
Source: Protocol Buffers, "Encoding"; field numbers: onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitrify.importers.onnx.source import Array

LEAST_FILE_BYTES = 16 * 2**20
"""Of smaller files everything is parsed: it costs less than looking for the weights."""
LEAST_TENSOR_BYTES = 4096
_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_RAW = 7, 5, 9
_VARINT, _I64, _LENGTH, _I32 = 0, 1, 2, 5
_FIXED = {_I64: 8, _I32: 4}
_MOST_VARINT_BYTES = 10


class Cut(NamedTuple):
    """A message without its large weights, and these by the number of the initializer that they belong to."""

    message: bytes
    weights: dict[int, Array]


class _Field(NamedTuple):
    """One field of a message: its number and wire type, where it begins, and where its value begins and ends."""

    number: int
    kind: int
    begin: int
    start: int
    stop: int


class _OddError(Exception):
    """The bytes are not the wire format, or of a form that is left to the parser."""


def mapped(path: Path) -> Cut:
    """Read a file without copying its large weights.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if size < LEAST_FILE_BYTES:
        return Cut(path.read_bytes(), {})
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        try:
            found = _cut(memoryview(whole))
        except _OddError:
            return Cut(whole[:], {})
    data = np.memmap(path, np.uint8, "r")
    return Cut(found[0], {number: np.asarray(data[start:stop]) for number, (start, stop) in found[1].items()})


Places = dict[int, tuple[int, int]]


def _cut(data: memoryview) -> tuple[bytes, Places]:
    """Return the message without its large weights, and where these stand."""
    with data:
        fields = list(_fields(data, 0, len(data)))
        graphs = [f for f in fields if f.number == _MODEL_GRAPH]
        if len(graphs) != 1 or graphs[0].kind != _LENGTH:
            raise _OddError
        places: Places = {}
        graph = _graph(data, graphs[0], places)
        return b"".join(graph if f is graphs[0] else bytes(data[f.begin:f.stop]) for f in fields), places


def _graph(data: memoryview, field: _Field, places: Places) -> bytes:
    parts: list[bytes] = []
    pending = field.start                  # what stands between two cuts is taken over in one piece
    count = 0
    for inner in _fields(data, field.start, field.stop):
        if inner.number != _GRAPH_INITIALIZER or inner.kind != _LENGTH:
            continue
        if inner.stop - inner.start > LEAST_TENSOR_BYTES:
            parts += [bytes(data[pending:inner.begin]), _initializer(data, inner, count, places)]
            pending = inner.stop
        count += 1
    parts.append(bytes(data[pending:field.stop]))
    return _wrapped(_MODEL_GRAPH, b"".join(parts))


def _initializer(data: memoryview, field: _Field, number: int, places: Places) -> bytes:
    fields = list(_fields(data, field.start, field.stop))
    raw = [f for f in fields if f.number == _TENSOR_RAW]
    if len(raw) != 1 or raw[0].kind != _LENGTH or raw[0].stop - raw[0].start < LEAST_TENSOR_BYTES:
        return bytes(data[field.begin:field.stop])
    places[number] = raw[0].start, raw[0].stop
    return _wrapped(_GRAPH_INITIALIZER, b"".join(bytes(data[f.begin:f.stop]) for f in fields if f is not raw[0]))


def _wrapped(number: int, content: bytes) -> bytes:
    """A field that holds a message."""
    length, head = len(content), bytearray((number << 3 | _LENGTH,))
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head) + content


def _fields(data: memoryview, start: int, stop: int) -> Iterator[_Field]:
    position = start
    while position < stop:
        tag, value = _varint(data, position, stop)
        kind = tag & 7
        if kind == _LENGTH:
            length, value = _varint(data, value, stop)
            end = value + length
        elif kind == _VARINT:
            _, end = _varint(data, value, stop)
        elif kind in _FIXED:
            end = value + _FIXED[kind]
        else:
            raise _OddError
        if end > stop:
            raise _OddError
        yield _Field(tag >> 3, kind, position, value, end)
        position = end


def _varint(data: memoryview, position: int, stop: int) -> tuple[int, int]:
    """A number and the position behind it."""
    result = 0
    for count in range(min(_MOST_VARINT_BYTES, stop - position)):
        byte = data[position + count]
        result |= (byte & 127) << 7 * count
        if byte < 128:
            return result, position + count + 1
    raise _OddError
