"""Messages between our own processes: pickle 5 over a pipe, array data beside the pickle instead of inside it.

A message is a count, the sizes of its parts, the pickle, then the raw buffers. Both ends are our own code; nothing that
a user's file holds is ever unpickled.
"""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any, NamedTuple

PROGRESS, RESULT, ERROR, FAILURE, MEMORY = "progress", "result", "error", "failure", "memory"
"""What a reply may be: values for the progress callback, the result, an error of ours, anybody else's, no memory."""

_LARGEST_WRITE = 1 << 24


class Call(NamedTuple):
    """A function as ``package.module:name``, its arguments, and whether it takes ``progress=``."""

    function: str
    args: tuple[Any, ...]
    wants_progress: bool


def send(descriptor: int, message: Any) -> None:
    """Write one message.

    Raises:
        BrokenPipeError: the other end is gone.
        TypeError, AttributeError, pickle.PicklingError: the message holds what cannot cross; nothing was written.
    """
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(body), *(buffer.raw() for buffer in buffers)]
    header = struct.pack(f"<I{len(parts)}Q", len(parts), *(part.nbytes for part in parts))
    for part in (memoryview(header), *parts):
        _write(descriptor, part)


def receive(descriptor: int) -> Any:
    """Read one message; arrays in it are writable and own their memory.

    Raises:
        EOFError: the other end is gone.
    """
    (count,) = struct.unpack("<I", _read(descriptor, 4))
    sizes = struct.unpack(f"<{count}Q", _read(descriptor, 8 * count))
    body, *buffers = [_read(descriptor, size) for size in sizes]
    return pickle.loads(body, buffers=buffers)


def _write(descriptor: int, part: memoryview) -> None:
    while part.nbytes:
        part = part[os.write(descriptor, part[:_LARGEST_WRITE]):]


def _read(descriptor: int, size: int) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while rest.nbytes:
        count = os.readv(descriptor, [rest[:_LARGEST_WRITE]])
        if count == 0:
            raise EOFError("the other process is gone")
        rest = rest[count:]
    return data
