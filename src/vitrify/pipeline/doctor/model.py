"""Which compiler made a file, as far as the file tells."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitrify.boards.facts import version_in
from vitrify.core.errors import ModelError, UsageError
from vitrify.core.files import look

VELA_VERSION = "vela_version"
"""Metadata of files that Vela's Python core writes (3.8 and later, `tflite_writer.py`); its newer core writes none."""
_LONGEST = 64
_MAGIC = b"TFL3"


class Made(NamedTuple):
    """What a compiled file is: its kinds of NPU operators, the version of what made it (empty: not told), bytes."""

    kinds: frozenset[str]
    version: str
    bytes: int


def size_of(path: Path) -> int:
    """Return the size of a file that the user named.

    Raises:
        UsageError: there is none, or it is none.
    """
    found = look(path)
    if found is None or path.is_dir():
        reason = "there is no such file" if found is None else "it is a folder"
        raise UsageError.of("file.read", f"cannot use {path}: {reason}", where=str(path))
    return found.st_size


def made_by(path: Path) -> Made:
    """Read a file's NPU operators and the version of its compiler.

    Raises:
        ModelError: it is no TFLite file, or damaged.
        UsageError: it cannot be read.
    """
    from vitrify.tflite.decoding import Decoder
    from vitrify.tflite.kind import NPU_GRAPHS

    size = size_of(path)
    data = np.fromfile(path, np.uint8)
    if data[4:8].tobytes() != _MAGIC:
        raise ModelError.of("doctor.no-tflite", f"{path} is no TFLite file", where=str(path),
                            help="--model takes the .tflite file that is to run on the board")
    root = Decoder(data, str(path)).root("Model")
    kinds = frozenset(code.custom_code for code in root.operator_codes or () if code.custom_code in NPU_GRAPHS)
    version = ""
    for entry in root.metadata or ():
        if entry.name == VELA_VERSION and entry.buffer < len(root.buffers or ()):
            text = root.buffers[entry.buffer].data
            version = version_in(bytes(text[:_LONGEST]).decode("ascii", "replace")) if text is not None else ""
    return Made(kinds, version, size)
