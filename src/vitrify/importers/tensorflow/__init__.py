"""TensorFlow and Keras models into the IR: SavedModel folders, .keras and .h5 files."""

from __future__ import annotations

from pathlib import Path

from vitrify.importers.exchange import Exchanged, Request, not_installed


def match(path: Path) -> bool:
    """True for a SavedModel's folder."""
    return path.is_dir() and (path / "saved_model.pb").is_file()


def exchange(path: Path, folder: Path, request: Request) -> Exchanged:
    """Convert to TFLite (see ``importers.exchange``)."""
    raise not_installed("TensorFlow", "tf", path)
