"""Which of TensorFlow's formats a file or folder is, told from its content without TensorFlow.

Source: TensorFlow guide "Using the SavedModel format"; Keras guide "Save, serialize, and export models".
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal

Kind = Literal["saved", "keras", "h5"]
SAVED_FILE = "saved_model.pb"
CONFIG_FILE = "config.json"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_MOST_ENTRIES = 2**16


def kind_of(path: Path) -> Kind | None:
    """Return the format of a file or folder, None when neither TensorFlow nor Keras wrote it."""
    if path.is_dir():
        return "saved" if (path / SAVED_FILE).is_file() else None
    with path.open("rb") as stream:
        head = stream.read(8)
    if head == _HDF5:
        return "h5"
    return "keras" if head.startswith(b"PK\x03\x04") and _is_keras(path) else None


def _is_keras(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()[:_MOST_ENTRIES]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return path.suffix.lower() == ".keras"        # a broken one; who opens it says how
    return CONFIG_FILE in names and any(name.startswith(("model.weights", "metadata.json")) for name in names)
