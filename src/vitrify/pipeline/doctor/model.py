"""Which compiler made a file, as far as the file tells."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitrify.boards.facts import version_in

VELA_VERSION = "vela_version"
"""Metadata of files that Vela's Python core writes (3.8 and later, `tflite_writer.py`); its newer core writes none."""
_LONGEST = 64


class Made(NamedTuple):
    """What a compiled file is: its kinds of NPU operators, the version of what made it (empty: not told), bytes."""

    kinds: frozenset[str]
    version: str
    bytes: int


def made_by(path: Path) -> Made:
    """Read a file's NPU operators and the version of its compiler.

    Raises:
        ModelError: it is no TFLite file, or damaged.
        UsageError: it cannot be read.
    """
    from vitrify.core.errors import UsageError
    from vitrify.core.files import look
    from vitrify.tflite.decoding import Decoder
    from vitrify.tflite.kind import NPU_GRAPHS

    found = look(path)
    if found is None or path.is_dir():
        raise UsageError.of("file.read", f"cannot use {path}: there is no such file", where=str(path))
    root = Decoder(np.fromfile(path, np.uint8), str(path)).root("Model")
    kinds = frozenset(code.custom_code for code in root.operator_codes or () if code.custom_code in NPU_GRAPHS)
    version = ""
    for entry in root.metadata or ():
        if entry.name == VELA_VERSION and entry.buffer < len(root.buffers or ()):
            data = root.buffers[entry.buffer].data
            version = version_in(bytes(data[:_LONGEST]).decode("ascii", "replace")) if data is not None else ""
    return Made(kinds, version, found.st_size)
