"""What can go wrong on the way to a board, in words: each has its finding."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from vitrify.boards.login import PASSWORD, Login
from vitrify.core.errors import TargetError, UsageError
from vitrify.core.findings import Finding

_LONGEST = 200


def no_asyncssh() -> UsageError:
    """Say that the package for SSH is not installed."""
    return UsageError.of("board.no-asyncssh", "boards are reached with the package asyncssh, which is not installed",
                         help="pip install 'vitrify[board]'; or run the script of `vitrify doctor --print-probe` on "
                              "the board and give what it prints to `vitrify doctor --from-file FILE`")


def unreadable_hosts(login: Login, error: Exception) -> TargetError:
    """Say that the file of host keys cannot be read."""
    return TargetError.of("board.known-hosts", f"the host keys in {login.hosts_file} cannot be read: {_short(error)}",
                          where=str(login.hosts_file), help="name another file with --known-hosts, or mend the line")


def as_finding(error: Exception, login: Login, what: str, shown: Sequence[str] | None) -> Finding | None:
    """Return what an error of the connection means, None for what is none; ``shown``: keys, None once it stands."""
    import asyncssh

    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _host_key(login, shown or ())
    if isinstance(error, asyncssh.PermissionDenied):
        tried = f"the key {login.identity}" if login.identity else "the keys of ~/.ssh and of the agent"
        tried += " and the password" if login.password is not None else ""
        return Finding(code="board.login", headline=f"{login.shown} refuses the login", where=login.shown,
                       why=f"tried: {tried}", help=f"name a key with --identity FILE, or put the password into the "
                                                   f"environment variable {PASSWORD}")
    if isinstance(error, asyncssh.KeyImportError | asyncssh.KeyEncryptionError):
        return Finding(code="board.identity", headline=f"the key {login.identity} cannot be read: {_short(error)}",
                       where=str(login.identity), help="name a private key without a passphrase, or load it into "
                                                       "ssh-agent and leave --identity away")
    if isinstance(error, asyncssh.Error):
        return Finding(code="board.protocol", headline=f"{what} on {login.shown} broke off: {_short(error)}",
                       where=login.shown, help="look whether an SSH server answers there: "
                                               f"`ssh -v {login.user}@{login.host}`")
    if isinstance(error, OSError) and shown is None:
        return Finding(code="board.broken", headline=f"the connection to {login.shown} broke while {what}: "
                                                     f"{_short(error)}", where=login.shown,
                       help="look whether the board is still up, and try again")
    if isinstance(error, OSError):
        return Finding(code="board.unreachable", headline=f"{login.shown} cannot be reached: {_short(error)}",
                       where=login.shown, help="look whether the board is up, its address is right, and an SSH server "
                                               "runs on it")
    if isinstance(error, ValueError | UnicodeError):
        return Finding(code="board.protocol", headline=f"{what} on {login.shown} broke off: {_short(error)}")
    return None


def _host_key(login: Login, shown: Sequence[str]) -> Finding:
    """The key is not known, or not the one that is: these are very different things."""
    key = shown[-1] if shown else "of a kind that the file does not name for it"
    name = f"[{login.host}]:{login.port}" if login.port not in (0, 22) else login.host
    if _is_named(login, name):
        return Finding(
            code="board.host-key-changed", where=str(login.hosts_file),
            headline=f"{login.shown} shows another key than the one that is trusted: {key}",
            why="the board was set up anew, or something else answers in its place",
            help=f"compare the fingerprint on the board (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`); when it "
                 f"is right: ssh-keygen -f {login.hosts_file} -R '{name}'")
    port = f"-p {login.port} " if login.port not in (0, 22) else ""
    return Finding(
        code="board.host-key-unknown", where=str(login.hosts_file),
        headline=f"the key of {login.shown} is not known: {key}",
        why="nothing is sent to a host that is not known",
        help=f"compare the fingerprint on the board (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then: "
             f"ssh-keyscan {port}{login.host} >> {login.hosts_file}")


def _is_named(login: Login, name: str) -> bool:
    import asyncssh

    try:
        known = asyncssh.read_known_hosts(str(login.hosts_file))
        keys = asyncssh.match_known_hosts(known, login.host, "", login.port or 22)
    except (OSError, ValueError):
        return False
    return bool(keys[0])


def _short(error: Exception) -> str:
    text = str(getattr(error, "reason", "") or getattr(error, "strerror", "") or error)
    if isinstance(error, OSError) and error.errno and error.errno > 0 and not isinstance(error, socket.gaierror):
        text = os.strerror(error.errno)      # asyncio puts its own words there
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
