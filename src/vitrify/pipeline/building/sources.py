"""What a build reads: the hash of a model with the files that belong to it, and of the data's folder."""

from __future__ import annotations

import mmap
from pathlib import Path

from vitrify.core.hashing import fingerprint, hash_file, hash_value

LARGEST_WHOLE = 1 << 22
"""Data files up to 4 MB in one are hashed by content; folders by names, sizes and times."""


def hash_model(path: Path) -> str:
    """Return the hash of a model file, together with the weights that an ONNX file keeps beside it."""
    if path.is_dir():
        return fingerprint(sorted(file for file in path.rglob("*") if file.is_file()))
    own = hash_file(path)
    beside = external_files(path)
    return hash_value([own, fingerprint(beside)]) if beside else own


def external_files(path: Path) -> list[Path]:
    """Return the files that an ONNX model keeps its weights in; empty for any other."""
    if path.suffix.lower() == ".tflite" or not _mentions_location(path):
        return []
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        graph = onnx.load_model(str(path), load_external_data=False).graph
    except DecodeError:
        return []                        # the importer says what is wrong with the file
    names = {entry.value for tensor in graph.initializer for entry in tensor.external_data if entry.key == "location"}
    return sorted(file for name in names if (file := path.parent / name).is_file())


def _mentions_location(path: Path) -> bool:
    """True when the word stands anywhere in the file: quick, and never false for a file with external weights."""
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"location") >= 0


def hash_data(path: Path | None) -> str:
    """Return the hash of the samples' files."""
    from vitrify.data.samples import sample_files

    if path is None or not path.exists():
        return ""
    if path.is_file():
        return hash_file(path) if path.stat().st_size <= LARGEST_WHOLE else fingerprint([path])
    return fingerprint(sample_files(path)[0])
