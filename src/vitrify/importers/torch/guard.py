"""The last fence around a file that is loaded without trust: the process of its own refuses what no model needs.

``checking`` reads the file beforehand; this holds where PyTorch looks up something that nobody thought of. Python tells
an audit hook of each name that a pickle looks up, of each file opened, process started and connection made.

Source: Python documentation, "Audit events table".
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from vitrify.importers.torch.checking import PLAIN_PICKLES

_OURS = {"vitrify.core.channel": {"Call"}}  # what comes from the parent process
_NEVER = frozenset(
    (
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "os.forkpty",
        "pty.spawn",
        "subprocess.Popen",
        "socket.connect",
        "socket.bind",
        "socket.getaddrinfo",
        "socket.sendto",
        "urllib.Request",
        "ftplib.connect",
        "os.symlink",
        "os.link",
        "os.kill",
        "os.chown",
    )
)
_CHANGES = frozenset(("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate", "shutil.rmtree"))
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class NotTrustedError(PermissionError):
    """A file that was loaded without trust wanted more than to be a model. Code that writes a cache survives it."""


def arm(folder: Path) -> None:
    """From now on this process writes below ``folder`` only, starts nothing and unpickles nothing but tensors.

    It cannot be taken back: call it in a child process.
    """
    root = os.path.realpath(folder)
    tempfile.tempdir = root
    sys.dont_write_bytecode = True

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "pickle.find_class":
            module, name = str(arguments[0]), str(arguments[1])
            if name not in PLAIN_PICKLES.get(module, ()) and name not in _OURS.get(module, ()):
                raise NotTrustedError(f"a pickle in it calls {module}.{name}")
        elif event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITES:
                _refuse_outside(root, arguments[0], "writes")
        elif event in _NEVER:
            raise NotTrustedError(f"it calls {event}")
        elif event in _CHANGES:
            _refuse_outside(root, arguments[0], event)

    sys.addaudithook(audit)


def _refuse_outside(root: str, path: Any, what: str) -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return  # a descriptor that is open already
    real = os.path.realpath(os.fsdecode(path))
    if real != os.devnull and not real.startswith(root + os.sep):
        raise NotTrustedError(f"it {what} {real}")
