"""A run: the folder of one build, its lock, its record and its artifacts.

Everything in it appears whole or not at all. The lock belongs to the process: the system takes it back when the process
dies, however it dies, so there is nothing to clean up after a kill.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.files import look, write_atomically
from vitrify.core.hashing import hash_file
from vitrify.core.text import json_bytes
from vitrify.results import Artifact, RunRecord

RECORD = "run.json"
LOCK = ".lock"
MEMORY = ".stages"
PARTIAL = ".part"
EARLIER = ".earlier"
"""Where the artifacts of an earlier build wait while a new one has not come to them."""


class Memory(msgspec.Struct, kw_only=True):
    """What a unit left: the key of what it read, and a record that holds its part only."""

    key: str
    record: RunRecord


class Run:
    """The folder of one build, held by this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = RunRecord()
        before = _record_in(folder)
        self.earlier = {artifact.file for artifact in before.artifacts.values() if _is_inside(artifact.file)}
        self.earlier_pictures = {file for file in _pictures(before) if _is_inside(file)}

    def path(self, file: str) -> Path:
        """Return the path of a file of the run."""
        return self.folder / file

    def save(self) -> None:
        """Write the record."""
        self.record.findings = list(dict.fromkeys(f for stage in self.record.stages for f in stage.findings))
        text = msgspec.json.format(json_bytes(self.record), indent=1)
        write_atomically(self.path(RECORD), text + b"\n")

    def keep(self, name: str, file: str) -> Path:
        """Enter a finished file into the record as artifact ``name``."""
        path = self.path(file)
        self.record.artifacts[name] = Artifact(file=file, bytes=path.stat().st_size, hash=hash_file(path))
        return path

    def artifact(self, name: str) -> Path:
        """Return the path of an artifact of this run."""
        return self.path(self.record.artifacts[name].file)

    def holds(self, artifact: Artifact) -> bool:
        """True when the artifact's file is still what was entered; one that was set aside comes back."""
        path, aside = self.path(artifact.file), self._aside(artifact.file)
        if _is(aside, artifact):
            os.replace(aside, path)
        return _is(path, artifact)

    def set_aside(self) -> None:
        """Take away the artifacts that the folder's record names, until ``holds`` finds that this build has them too.

        Whatever becomes of this build, no file of an earlier one then stands there as if it were of this one.
        """
        for file in sorted(self.earlier):
            if self.path(file).is_file():
                aside = self._aside(file)
                aside.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self.path(file), aside)

    def forget_earlier(self) -> None:
        """Remove what was set aside: this build has made all that there is to be."""
        kept = {artifact.file for artifact in self.record.artifacts.values()} | _pictures(self.record)
        for file in self.earlier_pictures - kept:
            self.path(file).unlink(missing_ok=True)
        shutil.rmtree(self.path(EARLIER), ignore_errors=True)

    def _aside(self, file: str) -> Path:
        return self.folder / EARLIER / file

    def remember(self, unit: str, memory: Memory) -> None:
        """Keep what a unit left; each has a file of its own, so that none is lost when a later build is stopped."""
        write_atomically(self._memory(unit), json_bytes(memory))

    def recall(self, unit: str) -> Memory | None:
        """Return what a unit left in an earlier build, None when that cannot be used."""
        try:
            return msgspec.json.decode(self._memory(unit).read_bytes(), type=Memory)
        except (OSError, msgspec.MsgspecError):
            return None

    def _memory(self, unit: str) -> Path:
        return self.folder / MEMORY / f"{unit.replace(' ', '-')}.json"


def _is(path: Path, artifact: Artifact) -> bool:
    return path.is_file() and path.stat().st_size == artifact.bytes and hash_file(path) == artifact.hash


def _record_in(folder: Path) -> RunRecord:
    """Return the record that an earlier build left, an empty one when there is none that can be read."""
    look(folder / RECORD)
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=RunRecord)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return RunRecord()


def _is_inside(file: str) -> bool:
    """True for a name that stays in the folder: a record may be edited, and its files are removed."""
    return bool(file) and not os.path.isabs(file) and ".." not in Path(file).parts


def _pictures(record: RunRecord) -> set[str]:
    return {file for row in record.pictures for file in (row.input, row.float_picture, row.int8_picture) if file}


@contextmanager
def open_run(folder: Path) -> Iterator[Run]:
    """Create or open the folder of a run and hold its lock.

    Raises:
        UsageError: the folder cannot be made or written, holds something else, or another build is at work in it.
    """
    with _locked(_prepared(folder)):
        _remove_remains(folder)
        try:
            yield Run(folder)
        finally:
            _remove_remains(folder)       # Ctrl-C may come between making a temporary file and guarding it


def _prepared(folder: Path) -> Path:
    if look(folder) is not None and not folder.is_dir():
        raise UsageError.of("run.folder", f"{folder} is a file, not a folder", where=str(folder),
                            help="name a folder with -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise UsageError.of("run.folder", f"cannot use the folder {folder}: {error.strerror}", where=str(folder),
                            help="choose another folder with -o") from error
    foreign = [name for name in entries if not name.startswith(".")]
    if foreign and RECORD not in entries and LOCK not in entries:
        raise UsageError.of("run.folder", f"{folder} holds {len(foreign)} files and no run", where=str(folder),
                            why="a build would put its files among others",
                            help="choose an empty or new folder with -o")
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UsageError.of("run.folder", f"cannot write in {folder}: {error.strerror}", where=str(folder),
                            help="choose another folder with -o") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise UsageError.of("run.locked", f"another build is at work in {folder} (process {owner})",
                                where=str(folder), help="wait for it, or choose another folder with -o") from error
        os.ftruncate(descriptor, 0)
        with_pid = f"{os.getpid()}\n".encode()
        try:
            os.pwrite(descriptor, with_pid, 0)
        except OSError as error:
            raise UsageError.of("run.folder", f"cannot write in {folder}: {error.strerror}", where=str(folder),
                                help="free space there, or choose another folder with -o") from error
        yield
    finally:
        os.close(descriptor)


def _remove_remains(folder: Path) -> None:
    """Remove what a stopped build left half-written; only its own temporary names."""
    for path in folder.rglob(f".*{PARTIAL}*"):
        path.unlink(missing_ok=True)
