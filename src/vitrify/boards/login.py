"""Where a board is and who logs in: `[USER@]HOST[:PORT]`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from vitrify.core.errors import UsageError

PASSWORD = "VITRIFY_BOARD_PASSWORD"
"""The environment variable that a password is taken from: on a command line everybody could read it."""

_ADDRESS = re.compile(r"(?:(?P<user>[\w.$-]+)@)?(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[\w.-]+)(?::(?P<port>\d+))?")
_PORTS = 65536


class Login(NamedTuple):
    """How to reach a board. ``port`` 0: 22, or as ~/.ssh/config says; ``password`` None: keys only."""

    host: str
    port: int = 0
    user: str = "root"
    identity: Path | None = None
    known_hosts: Path | None = None
    password: str | None = None

    @property
    def shown(self) -> str:
        """The board's address as a person writes it."""
        return f"{self.user}@{self.host}{f':{self.port}' if self.port else ''}"

    @property
    def hosts_file(self) -> Path:
        """The file of host keys that are trusted."""
        return self.known_hosts or Path.home() / ".ssh" / "known_hosts"


def read_address(text: str, identity: Path | None = None, known_hosts: Path | None = None,
                 password: str | None = None) -> Login:
    """Read an address.

    Raises:
        UsageError: it is none, or a file that is named is not there.
    """
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"] or 0) if found else 0
    if not found or found["host"].startswith("-") or port >= _PORTS or (found["port"] and not port):
        raise UsageError.of("board.address", f"{text!r} is no address of a board", where="--board",
                            help="write it like --board root@192.168.1.20 or --board imx93evk.local:2222")
    for name, path in (("--identity", identity), ("--known-hosts", known_hosts)):
        if path is not None and not path.is_file():
            raise UsageError.of("board.file", f"{name} {path}: there is no such file", where=name)
    return Login(found["host"].strip("[]"), port, found["user"] or "root", identity, known_hosts, password)
