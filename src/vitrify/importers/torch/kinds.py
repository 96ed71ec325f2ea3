"""Which of PyTorch's formats a file is, told from its content without loading anything of it.

Source: PyTorch's documentation, "torch.export pt2 archive", "Serialization semantics".
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Literal

from vitrify.core.errors import ModelError
from vitrify.importers.torch.archive import opened

Kind = Literal["exported", "script", "pickle", "old pickle", "damaged"]
PICKLES = ("pickle", "old pickle")
WORDS = {
    "exported": "PyTorch exported program",
    "script": "TorchScript",
    "pickle": "PyTorch pickle",
    "old pickle": "PyTorch pickle",
}
_ENDINGS = (".pt", ".pt2", ".pth", ".ts", ".torchscript")
MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"
"""The number that PyTorch before 1.6 pickled first. Source: torch/serialization.py, MAGIC_NUMBER."""
_TAR_MAGIC = slice(257, 262)
_PICKLE = b"\x80"
_PROTOCOLS = range(2, 6)


def kind_of(path: Path) -> Kind | None:
    """Return the format of a file, None when PyTorch did not write it.

    A pickle without PyTorch's marks, and an archive that is cut off, are told by the name's ending.
    """
    with path.open("rb") as stream:
        head = stream.read(512)
    named = path.suffix.lower() in _ENDINGS
    if head[2:].startswith(MAGIC) or _is_old_tar(path, head):
        return "old pickle"
    if named and head[:1] == _PICKLE and head[1] in _PROTOCOLS:
        return "old pickle"
    if not head.startswith(b"PK\x03\x04"):
        return None
    try:
        with opened(path) as archive:
            found = _of_names(archive.names)
    except ModelError:
        return "damaged" if named else None
    return found


def _is_old_tar(path: Path, head: bytes) -> bool:
    """True for the TAR archives of PyTorch before 0.1.10, which hold pickles too."""
    if head[_TAR_MAGIC] != b"ustar":
        return False
    try:
        with tarfile.open(path, "r:") as archive:
            first = archive.next()
    except (tarfile.TarError, OSError, ValueError):
        return False
    return first is not None and first.name in ("sys_info", "pickle", "storages", "tensors")


def _of_names(names: list[str]) -> Kind | None:
    """Tell by the entries of the archive, below its one folder."""
    if "archive_format" in names or any(n.startswith("models/") and n.endswith(".json") for n in names):
        return "exported"
    if "serialized_exported_program.json" in names:
        return "exported"
    if "constants.pkl" in names or any(n.startswith("code/") for n in names):
        return "script"
    return "pickle" if "data.pkl" in names else None
