"""Files appear whole or not at all: written aside, synced, renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vitrify.core.errors import UsageError


@contextmanager
def atomic_writer(path: Path | str) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces ``path`` when the block ends well, and leaves nothing when it does not.

    Raises:
        UsageError: the folder cannot be written, or the disk is full.
    """
    target = Path(path)
    temporary: str | None = None
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "is a folder", str(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise UsageError.of("file.write", f"cannot write {target}: {error.strerror or error}", where=str(target),
                            help="choose another place with -o, or free space and permissions there") from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def write_atomically(path: Path | str, data: bytes | bytearray | memoryview) -> None:
    """Write ``data`` to ``path``, whole or not at all (see ``atomic_writer``)."""
    with atomic_writer(path) as stream:
        stream.write(data)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
