"""Which of PyTorch's formats a file is, told from its content without loading anything of it.

Source: PyTorch's documentation, "torch.export pt2 archive", "Serialization semantics".
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal

Kind = Literal["exported", "script", "pickle", "old pickle"]
PICKLES = ("pickle", "old pickle")
_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"
"""The number that PyTorch before 1.6 pickled first. Source: torch/serialization.py, MAGIC_NUMBER."""
_MOST_ENTRIES = 2**20


def kind_of(path: Path) -> Kind | None:
    """Return the format of a file, None when PyTorch did not write it."""
    with path.open("rb") as stream:
        head = stream.read(32)
    if head[2:].startswith(_MAGIC):
        return "old pickle"
    if not head.startswith(b"PK\x03\x04"):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.partition("/")[2] for name in archive.namelist()[:_MOST_ENTRIES]]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None
    return _of_names(names)


def _of_names(names: list[str]) -> Kind | None:
    """Tell by the entries of the archive, below its one folder."""
    if "archive_format" in names or any(n.startswith("models/") and n.endswith(".json") for n in names):
        return "exported"
    if "serialized_exported_program.json" in names:
        return "exported"
    if "constants.pkl" in names or any(n.startswith("code/") for n in names):
        return "script"
    return "pickle" if "data.pkl" in names else None
