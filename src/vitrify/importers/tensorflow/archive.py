"""A Keras 3 archive (.keras): its config, after everything that a hostile archive could do has been looked at."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from vitrify.core.errors import ModelError
from vitrify.importers.tensorflow.kinds import CONFIG_FILE

MOST_CONFIG = 1 << 26
MOST_GROWTH = 64
FREE_GROWTH = 1 << 28
"""A whole archive may unpack to 64 times its size, and always to 256 MB: weights hardly compress."""


def read_config(path: Path) -> dict[str, Any]:
    """Return the config of a .keras file.

    Raises:
        ModelError: the archive is damaged or hostile, or its config is none.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check(path, archive)
            with archive.open(CONFIG_FILE) as stream:
                text = stream.read(MOST_CONFIG + 1)
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, NotImplementedError, RuntimeError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if len(text) > MOST_CONFIG:
        raise _damaged(path, f"{CONFIG_FILE} has more than {MOST_CONFIG:,} bytes")
    return parsed(path, text)


def parsed(path: Path, text: bytes | str) -> dict[str, Any]:
    """Read a config's JSON.

    Raises:
        ModelError: it is none.
    """
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its config is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise _damaged(path, "its config is no JSON object")
    return config


def _check(path: Path, archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    for entry in entries:
        place = PurePosixPath(entry.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or ":" in entry.filename:
            raise ModelError.of("tf.archive", f"'{path}' holds an entry that leaves the archive: '{entry.filename}'",
                                where=str(path), help="do not use this file; fetch or save the model again")
    size, whole = path.stat().st_size, sum(entry.file_size for entry in entries)
    if whole > max(FREE_GROWTH, MOST_GROWTH * size):
        raise ModelError.of("tf.archive", f"'{path}' unpacks to {whole:,} bytes, {MOST_GROWTH} times its {size:,} are "
                            "the limit", where=str(path),
                            help="save the model again without compression, as Keras does")


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError.of("tf.damaged", f"'{path}' is no whole Keras model: {why}", where=str(path),
                         help="fetch or save the model again")
