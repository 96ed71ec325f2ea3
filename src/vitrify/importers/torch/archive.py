"""The ZIP archive that PyTorch's files are, read entry by entry with limits; nothing in it is loaded or run.

PyTorch stores tensors uncompressed, so an honest archive is hardly smaller than what is in it.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from vitrify.core.errors import ModelError

MOST_ENTRIES = 1 << 20
LARGEST_TEXT = 256 << 20
"""Bytes of one description (JSON, code, pickle) that are read: that of a model with 20,000 nodes has about 60 MB."""
_MOST_PACKED = 1 << 30  # bytes that compressed entries may say they unpack to, all together
_ENCRYPTED = 1


class Archive:
    """An open archive. ``names`` are its entries below the one folder that PyTorch puts everything in."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path = path
        self._file = file
        self._entries = {self._inner(info.filename): info for info in file.infolist() if not info.is_dir()}

    @staticmethod
    def _inner(name: str) -> str:
        return name.partition("/")[2] or name

    @property
    def names(self) -> list[str]:
        """The entries' names, without the folder that they all stand in."""
        return list(self._entries)

    def size(self, name: str) -> int:
        """Bytes of an entry, as the archive's directory says."""
        return self._entries[name].file_size

    def read(self, name: str, limit: int = LARGEST_TEXT) -> bytes:
        """Return an entry's bytes.

        Raises:
            ModelError: it is larger than ``limit``, or damaged.
        """
        info = self._entries[name]
        if info.file_size > limit:
            raise self._damaged(f"its entry '{name}' has {info.file_size} bytes, at most {limit} are read")
        try:
            with self._file.open(info) as stream:
                data = stream.read(limit + 1)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
            raise self._damaged(f"its entry '{name}' cannot be read: {error}") from error
        if len(data) != info.file_size:
            raise self._damaged(f"its entry '{name}' has {len(data)} bytes, its directory says {info.file_size}")
        return data

    def check(self) -> None:
        """Refuse an archive that no version of PyTorch writes: it may be read otherwise than it looks.

        Raises:
            ModelError: names that leave the folder or stand twice, encrypted entries, or more content than fits.
        """
        infos = self._file.infolist()
        counts = Counter(info.filename for info in infos)
        for info in infos:
            parts = PurePosixPath(info.filename.replace("\\", "/"))
            if parts.is_absolute() or ".." in parts.parts or "\0" in info.orig_filename:
                raise self._damaged(f"its entry '{info.filename}' leads out of the archive")
            if counts[info.filename] > 1:
                raise self._damaged(f"its entry '{info.filename}' stands there {counts[info.filename]} times")
            if info.flag_bits & _ENCRYPTED:
                raise self._damaged(f"its entry '{info.filename}' is encrypted")
        if len({info.filename.partition("/")[0] for info in infos}) > 1:
            raise self._damaged("its entries do not stand in one folder")
        stored = sum(info.file_size for info in infos if info.compress_type == zipfile.ZIP_STORED)
        packed = sum(info.file_size for info in infos if info.compress_type != zipfile.ZIP_STORED)
        size = self.path.stat().st_size
        if stored > size:
            raise self._damaged(f"its entries say that they hold {stored} bytes, the file has {size}")
        if packed > _MOST_PACKED:
            raise self._damaged(f"its compressed entries would give {packed} bytes, at most {_MOST_PACKED} are read")

    def _damaged(self, what: str) -> ModelError:
        return ModelError.of(
            "torch.archive",
            f"'{self.path}' is no sound PyTorch archive: {what}",
            where=str(self.path),
            help="fetch or save the model again",
        )


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive.

    Raises:
        ModelError: it is none, cut off, or has too many entries.
    """
    try:
        with zipfile.ZipFile(path) as file:
            if len(file.infolist()) > MOST_ENTRIES:
                raise ModelError.of(
                    "torch.archive",
                    f"'{path}' has {len(file.infolist())} entries, at most {MOST_ENTRIES} are read",
                    where=str(path),
                )
            yield Archive(path, file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelError.of(
            "torch.archive",
            f"'{path}' is no whole ZIP archive: {error}",
            where=str(path),
            why="PyTorch's files are such archives, with their directory at the end",
            help="fetch or save the model again",
        ) from error
