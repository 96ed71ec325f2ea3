"""A board over SSH: run commands, bring files up and down; limits of time and size, host keys checked.

    with connect(read_address("root@10.0.0.7")) as board:
        ran = board.run(["uname", "-a"])
        board.put(Path("model.tflite"), "/tmp/model.tflite")

Commands are lists and are quoted here. A host whose key is not known is refused with its fingerprint. When the block
ends the connection closes; a command that is given up is killed, where the board's server passes signals on.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vitrify.boards.login import Login
from vitrify.boards.refusals import as_finding, no_asyncssh, unreadable_hosts
from vitrify.core.errors import TargetError
from vitrify.core.files import atomic_writer

if TYPE_CHECKING:
    import asyncssh

CONNECT_SECONDS = 15.0
RUN_SECONDS = 60.0
OUTPUT_BYTES = 4 << 20
"""What is taken of a command's output; more is refused."""
FILE_BYTES = 4 << 30

_CHUNK = 1 << 16
_CLOSE_SECONDS = 3.0
_WHY_LONGEST = 300
T = TypeVar("T")


class Ran(NamedTuple):
    """What came of a command: ``status`` None when a signal ended it."""

    status: int | None
    out: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are none are replaced."""
        return self.out.decode("utf-8", "replace")


class Board:
    """A connection to a board; made by ``connect``."""

    def __init__(self, login: Login, connection: asyncssh.SSHClientConnection, runner: asyncio.Runner) -> None:
        self.login = login
        self._connection = connection
        self._runner = runner

    def run(self, command: Sequence[str], *, given: bytes = b"", seconds: float = RUN_SECONDS,
            output_bytes: int = OUTPUT_BYTES) -> Ran:
        """Run a command, with ``given`` as its standard input.

        Raises:
            TargetError: it takes longer than ``seconds``, says more than ``output_bytes``, or the connection breaks.
        """
        what = command[0] if command else ""
        return self._do(self._run(shlex.join(command), given, output_bytes), seconds, f"running `{what}`")

    def put(self, local: Path, remote: str, *, seconds: float = RUN_SECONDS) -> None:
        """Copy a file to the board; what is half there when it fails is removed.

        Raises:
            TargetError: the board refuses, or it takes longer than ``seconds``.
        """
        aside = f"{remote}.part"
        try:
            self._do(self._put(local, aside, remote), seconds, f"copying {local.name}")
        except BaseException:
            with suppress(TargetError):
                self.remove(aside)
            raise

    def get(self, remote: str, local: Path, *, seconds: float = RUN_SECONDS, most_bytes: int = FILE_BYTES) -> None:
        """Copy a file from the board; ``local`` appears whole or not at all.

        Raises:
            TargetError: there is none, it is larger than ``most_bytes``, or it takes longer than ``seconds``.
        """
        with atomic_writer(local) as stream:
            self._do(self._get(remote, stream, most_bytes), seconds, f"copying {remote}")

    def remove(self, *remote: str) -> None:
        """Remove files from the board; those that are not there are no fault.

        Raises:
            TargetError: the connection is broken.
        """
        self.run(["rm", "-f", "--", *remote], seconds=_CLOSE_SECONDS)

    def close(self) -> None:
        """End the connection."""
        async def end() -> None:
            self._connection.close()
            await asyncio.wait_for(self._connection.wait_closed(), _CLOSE_SECONDS)

        with suppress(Exception):      # the other side may be gone: then there is nothing to end
            self._runner.run(end())
        with suppress(Exception):
            self._connection.abort()

    def _do(self, work: Coroutine[Any, Any, T], seconds: float, what: str) -> T:
        return _limited(self._runner, work, seconds, self.login, what)

    async def _run(self, command: str, given: bytes, limit: int) -> Ran:
        process: Any = await self._connection.create_process(command, encoding=None)
        try:
            out, errors, _ = await asyncio.gather(
                _read(process.stdout, limit), _read(process.stderr, limit), _feed(process.stdin, given))
            await process.wait_closed()
        finally:
            with suppress(OSError):
                process.kill()
            process.close()
        return Ran(process.exit_status, out, errors)

    async def _put(self, local: Path, aside: str, remote: str) -> None:
        """Through a shell, since small SSH servers have no SFTP."""
        process: Any = await self._connection.create_process(
            shlex.join(["sh", "-c", 'cat > "$1" && mv -f -- "$1" "$2"', "sh", aside, remote]), encoding=None)
        try:
            with local.open("rb") as stream, suppress(BrokenPipeError, ConnectionError):
                while chunk := stream.read(_CHUNK):
                    process.stdin.write(chunk)
                    await process.stdin.drain()
                process.stdin.write_eof()
            await self._done(process, f"{remote} cannot be written")
        finally:
            process.close()

    async def _get(self, remote: str, stream: Any, limit: int) -> None:
        process: Any = await self._connection.create_process(
            shlex.join(["sh", "-c", 'cat < "$1"', "sh", remote]), encoding=None)
        try:
            process.stdin.write_eof()
            taken = 0
            while chunk := await process.stdout.read(_CHUNK):
                taken += len(chunk)
                if taken > limit:
                    raise _TooMuchError(limit)
                stream.write(chunk)
            await self._done(process, f"{remote} cannot be read")
        finally:
            process.close()

    async def _done(self, process: Any, what: str) -> None:
        """Wait for the end of a copy, which must be a good one."""
        said = await _read(process.stderr, _CHUNK)
        await process.wait_closed()
        if process.exit_status != 0:
            raise TargetError.of(
                "board.file-refused", f"{what} on {self.login.shown}",
                why=" ".join(said.decode("utf-8", "replace").split())[:_WHY_LONGEST] or
                f"the board's shell ended with status {process.exit_status}")


class Connection:
    """Opens a board when a block begins and closes it when that ends."""

    def __init__(self, login: Login, seconds: float) -> None:
        self._login, self._seconds = login, seconds
        self._runner: asyncio.Runner | None = None
        self._board: Board | None = None

    def __enter__(self) -> Board:
        try:
            import asyncssh
        except ImportError as error:
            raise no_asyncssh() from error
        runner = asyncio.Runner()
        try:
            client = _client_of(asyncssh)
            connection = _limited(runner, _open(asyncssh, self._login, client), self._seconds, self._login,
                                  "connecting", client)
        except BaseException:
            runner.close()
            raise
        self._runner, self._board = runner, Board(self._login, connection, runner)
        return self._board

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._board is not None and self._runner is not None:
            self._board.close()
            self._runner.close()


def connect(login: Login, seconds: float = CONNECT_SECONDS) -> Connection:
    """Return a block in which the board is open.

    Raises (when the block begins):
        TargetError: ``board.*``: it cannot be reached, its key is not known or another, or it refuses the user.
    """
    return Connection(login, seconds)


class _TooMuchError(Exception):
    """More came than is taken."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes came")


def _client_of(asyncssh: Any) -> Any:
    """Return a client class that remembers the key that the host showed when it is not trusted."""

    class Client(asyncssh.SSHClient):  # type: ignore[misc]
        shown: list[str] = []

        def validate_host_public_key(self, host: str, address: str, port: int, key: Any) -> bool:
            self.shown.append(f"{key.get_algorithm()} {key.get_fingerprint()}")
            return False

    return Client


async def _open(asyncssh: Any, login: Login, client: Any) -> Any:
    more: dict[str, Any] = {}
    if login.identity is not None:
        more.update(client_keys=[str(login.identity)], agent_path=None)
    if login.password is not None:
        more["password"] = login.password
    if login.port:
        more["port"] = login.port
    hosts = login.hosts_file
    try:
        known: Any = asyncssh.read_known_hosts(str(hosts)) if hosts.is_file() else ([], [], [])
    except (OSError, ValueError) as error:
        raise unreadable_hosts(login, error) from error
    return await asyncssh.connect(
        login.host, username=login.user, known_hosts=known, client_factory=client, connect_timeout=None,
        login_timeout=0, **more)


def _limited(runner: asyncio.Runner, work: Coroutine[Any, Any, T], seconds: float, login: Login, what: str,
             client: Any = None) -> T:
    async def limited() -> T:
        return await asyncio.wait_for(work, seconds)

    try:
        return runner.run(limited())
    except TimeoutError as error:
        raise TargetError.of(
            "board.timeout", f"{what} took longer than {seconds:g} s on {login.shown} and was given up",
            help="look whether the board is up and not busy") from error
    except _TooMuchError as error:
        raise TargetError.of("board.output", f"{what} on {login.shown}: {error}; no more is taken",
                             why="a board that answers without end would fill this machine's memory") from error
    except TargetError:
        raise
    except Exception as error:
        found = as_finding(error, login, what, client.shown if client is not None else None)
        if found is None:
            raise
        raise TargetError(found) from error


async def _read(stream: Any, limit: int) -> bytes:
    """Read to the end, or to the limit."""
    parts: list[bytes] = []
    size = 0
    while chunk := await stream.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise _TooMuchError(limit)
        parts.append(chunk)
    return b"".join(parts)


async def _feed(stream: Any, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionError):      # a command need not read what it is given
        stream.write(given)
        await stream.drain()
        stream.write_eof()
