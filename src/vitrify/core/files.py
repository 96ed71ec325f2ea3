"""Files appear whole or not at all: written aside, synced, renamed. Only regular files are read or replaced.

What is written aside, and folders for temporary files, carry the number of their process in their names, so that what
a killed process left can be told from what one at work needs (``sweep``).
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from vitrify.core.errors import UsageError

_SPECIAL = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
            (stat.S_ISSOCK, "a socket"))
_LONGEST = 160         # bytes of a name, of the 255 that file systems take
_ASIDE = re.compile(r"\..+\.(\d+)-([0-9a-f]{8})\.(?:\w{8}\.)?part(?:\.\w+)?")
_FOLDER = re.compile(r"vitrify-(?:\w+-)?(\d+)-([0-9a-f]{8})-\w{8}")


def look(path: Path | str) -> os.stat_result | None:
    """Return what stands at ``path``, None when nothing does.

    Raises:
        UsageError: the system does not let us look, or it is neither a file nor a folder: to open a pipe would wait for
            its other end, to read a device may never end, and to replace one would break the machine.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UsageError.of("file.read", f"cannot use {path}: {getattr(error, 'strerror', None) or error}",
                            where=str(path)) from error
    for is_kind, name in _SPECIAL:
        if is_kind(found.st_mode):
            raise UsageError.of("file.special", f"{path} is {name}, not a file", where=str(path),
                                help="name a regular file")
    return found


@contextmanager
def atomic_writer(path: Path | str) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces ``path`` when the block ends well, and leaves nothing when it does not.

    Raises:
        UsageError: what stands there is no regular file, the folder cannot be written, or the disk is full.
    """
    target = Path(path)
    look(target)
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{short(target.name)}.{owner()}."
        descriptor, temporary = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=target.parent)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        take_place(temporary, target)
        temporary = None
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def take_place(finished: Path | str, target: Path) -> None:
    """Rename a finished file to ``target``; it gets the permissions of the file that stood there.

    Raises:
        OSError: it cannot.
        UsageError: what stands there is no regular file.
    """
    standing = look(target)
    if standing is not None and stat.S_ISDIR(standing.st_mode):
        raise IsADirectoryError(21, "is a folder", str(target))
    os.chmod(finished, 0o666 & ~_umask() if standing is None else stat.S_IMODE(standing.st_mode) & 0o777)
    os.replace(finished, target)


def cannot_write(target: Path, error: OSError) -> UsageError:
    """The error of a file that cannot be written, with what helps where it was to stand."""
    reason = error.strerror or str(error)
    if _is_temporary(target):
        return no_temporary_room(reason)
    return UsageError.of("file.write", f"cannot write {target}: {reason}", where=str(target),
                         help="choose another place with -o, or free space and permissions there")


def no_temporary_room(reason: str) -> UsageError:
    """The error of a folder for temporary files that cannot be written."""
    return UsageError.of("file.write", f"cannot work in the folder for temporary files: {reason}", where=_temporary(),
                         help="free space there, or name another folder in TMPDIR")


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "")


def _is_temporary(target: Path) -> bool:
    beginning = os.path.join(_temporary(), "vitrify-")
    return os.path.abspath(target).startswith(beginning)


@contextmanager
def temporary_folder(kind: str = "") -> Iterator[Path]:
    """Yield a new folder for temporary files, and remove it afterwards.

    Raises:
        UsageError: there is no room for it.
    """
    folder = make_temporary_folder(kind)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_temporary_folder(kind: str = "") -> Path:
    """Make a folder for temporary files that the caller removes.

    Raises:
        UsageError: there is no room for it.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=f"vitrify-{f'{kind}-' if kind else ''}{owner()}-"))
    except OSError as error:
        raise no_temporary_room(error.strerror or str(error)) from error


def write_atomically(path: Path | str, data: bytes | bytearray | memoryview) -> None:
    """Write ``data`` to ``path``, whole or not at all (see ``atomic_writer``)."""
    with atomic_writer(path) as stream:
        stream.write(data)


def short(name: str) -> str:
    """Return a name, or its beginning where what is added to it would make it longer than file systems take."""
    return name if len(os.fsencode(name)) <= _LONGEST else name[:_LONGEST // 4]


def owner() -> str:
    """Return what names of unfinished files carry: the process, and the machine or container that its number is of."""
    return f"{os.getpid()}-{_machine()}"


@lru_cache(maxsize=1)
def _machine() -> str:
    numbers = ""
    if sys.platform == "linux":
        with suppress(OSError):      # no /proc: the name of the machine has to do
            numbers = os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(f'{os.uname().nodename} {numbers}'.encode()):08x}"


def sweep(folder: Path | str) -> None:
    """Remove what killed processes of this user left unfinished in ``folder``; what cannot be removed stays."""
    _sweep(folder, _ASIDE)


def sweep_temporary() -> None:
    """Remove the folders for temporary files of killed processes of this user."""
    _sweep(_temporary(), _FOLDER)


def _sweep(folder: Path | str, names: re.Pattern[str]) -> None:
    try:
        with os.scandir(folder) as entries:
            found = [(entry, match) for entry in entries if (match := names.fullmatch(entry.name))]
    except OSError:
        return            # whoever wants to write there is told
    for entry, match in found:
        try:
            is_ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        except OSError:
            continue      # gone meanwhile
        if match[2] != _machine() or not is_ours or _lives(int(match[1])):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.is_file(follow_symlinks=False):
            Path(entry.path).unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
