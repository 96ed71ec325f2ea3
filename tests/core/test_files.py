"""Files appear whole or not at all, keep their permissions, and replace regular files only."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vitrify.core.errors import UsageError
from vitrify.core.files import owner, sweep, sweep_temporary, take_place, temporary_folder, write_atomically


def _socket(path: Path) -> None:
    place = os.open(path.parent, os.O_RDONLY)       # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{place}/{path.name}")
    os.close(place)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo, "socket": _socket,
    "device": lambda path: os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 7)),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_what_is_no_regular_file_is_not_replaced(name: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    try:
        SPECIAL[name](target)
    except PermissionError:
        pytest.skip("only root can make a device")
    before = target.stat().st_mode
    (tmp_path / "link").symlink_to(target)
    for path in (target, tmp_path / "link"):
        with pytest.raises(UsageError, match=f"is a {name}, not a file"):
            write_atomically(path, b"x")
        (tmp_path / "made").write_bytes(b"x")
        with pytest.raises(UsageError, match=f"is a {name}, not a file"):
            take_place(tmp_path / "made", path)
    assert target.stat().st_mode == before
    assert not list(tmp_path.glob("*.part"))


def test_long_names(tmp_path: Path) -> None:
    for name in ("n" * 255, "ä" * 127, "n" * 161 + ".tflite"):
        write_atomically(tmp_path / name, b"x")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o755, None])
def test_permissions_stay(mode: int | None, tmp_path: Path) -> None:
    target = tmp_path / "out"
    if mode is not None:
        target.write_bytes(b"old")
        target.chmod(mode)
    old = os.umask(0o027)
    try:
        write_atomically(target, b"new")
    finally:
        os.umask(old)
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == (0o640 if mode is None else mode)


KILLED = """
import os, signal
from vitrify.core.files import atomic_writer, temporary_folder
with temporary_folder("some"), atomic_writer({target!r}) as stream:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    line = [sys.executable, "-c", KILLED.format(target=str(tmp_path / "out.tflite"))]
    assert subprocess.run(line).returncode < 0
    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) == 2
    elsewhere = left[0].replace(owner().split("-")[1], "00000000")       # of a machine that shares the folder
    kept = {elsewhere, f".out.{owner()}.part.tflite", "vitrify-1-00000000-abcdefgh", ".out.part", "vitrify-mine"}
    for name in kept:
        (tmp_path / name).write_bytes(b"x")
    with temporary_folder() as folder:
        sweep(tmp_path)
        sweep_temporary()
        assert {path.name for path in tmp_path.iterdir()} == {*kept, folder.name}
