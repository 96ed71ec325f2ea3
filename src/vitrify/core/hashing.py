"""Hashes of files and values: what a stage read, as one short text.

BLAKE2b with 20 bytes: from the standard library, and as quick as reading. A hash here tells whether something changed;
it guards nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vitrify.core.files import look
from vitrify.core.text import json_bytes

CHUNK = 1 << 20
SIZE = 20


def hash_file(path: Path | str) -> str:
    """Return the hash of a file's content, read piece by piece."""
    state = hashlib.blake2b(digest_size=SIZE)
    look(path)
    with open(path, "rb") as stream:
        while piece := stream.read(CHUNK):
            state.update(piece)
    return state.hexdigest()


def hash_value(value: Any) -> str:
    """Return the hash of plain data and msgspec structs; the order of mapping keys does not matter."""
    return hashlib.blake2b(json_bytes(value, sort=True), digest_size=SIZE).hexdigest()


def hash_files(paths: Iterable[Path]) -> str:
    """Return one hash for several files: of their names and contents, in the given order."""
    return hash_value([(path.name, hash_file(path)) for path in paths])


def fingerprint(paths: Iterable[Path]) -> str:
    """Return one hash for many files from names, sizes and times of change: quick, for data folders."""
    listed: list[Mapping[str, Any]] = []
    for path in paths:
        facts = path.stat()
        listed.append({"name": path.name, "bytes": facts.st_size, "changed": facts.st_mtime_ns})
    return hash_value(listed)
