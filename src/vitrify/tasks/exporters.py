"""What exporters write beside a TFLite file's graph: Ultralytics appends a ZIP archive with its metadata."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

MOST_BYTES = 1_000_000
"""Larger entries are left alone: names of classes need some kilobytes."""


def written_in(path: Path) -> dict[str, str]:
    """The metadata in the archive behind a file, as text by name; empty where there is none.

    Source: Ultralytics' TFLite export (metadata.json, in older releases temp_meta.txt with a Python dict).
    """
    if not zipfile.is_zipfile(path):
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith((".json", "meta.txt")) and entry.file_size <= MOST_BYTES:
                    return _read(archive.read(entry).decode("utf-8", "replace"))
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError):
        pass
    return {}


def _read(text: str) -> dict[str, str]:
    import ast

    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return {}
    if not isinstance(found, dict):
        return {}
    plain = {str(k): _numbered(v) for k, v in found.items()}
    return {k: v if isinstance(v, str) else repr(v) for k, v in plain.items()}


def _numbered(value: object) -> object:
    """JSON makes numbers in keys to text."""
    if isinstance(value, dict) and value and all(str(key).isdecimal() for key in value):
        return {int(key): name for key, name in value.items()}
    return value
