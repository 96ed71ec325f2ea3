"""A real SSH server in this process, which runs what it is asked with the system's shell, as a board does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import asyncssh

PASSWORD = "right"


class Server(NamedTuple):
    """Where it listens, and the files that a user needs to log in."""

    port: int
    identity: Path
    stranger: Path
    known_hosts: Path
    other_hosts: Path
    key: Any


class _Doorman(asyncssh.SSHServer):
    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return password == PASSWORD


def shell_in(root: Path) -> Callable[[Any], Any]:
    """Runs each command in a shell whose board lies in ``root``."""

    async def serve(process: Any) -> None:
        child = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", process.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "VITRIFY_PROBE_ROOT": str(root)})
        out, errors = await child.communicate(await process.stdin.read())
        process.stdout.write(out)
        process.stderr.write(errors)
        process.exit(child.returncode)

    return serve


async def endless(process: Any) -> None:
    """Says the same for ever."""
    try:
        while True:
            process.stdout.write(b"y" * 65536)
            await process.stdout.drain()
    except (BrokenPipeError, ConnectionError, asyncssh.Error):
        process.exit(1)


async def sleeping(process: Any) -> None:
    """Never answers."""
    await asyncio.sleep(60)
    process.exit(0)


async def foreign(process: Any) -> None:
    """Is no board."""
    process.stdout.write(b"% Unknown command\r\n\xff\xfe\x00 login disabled\n")
    process.exit(1)


@contextmanager
def serving(handler: Callable[[Any], Any], folder: Path) -> Iterator[Server]:
    """Serve on a free port until the block ends."""
    keys = {name: asyncssh.generate_private_key("ssh-ed25519") for name in ("host", "other", "user", "stranger")}
    for name in ("user", "stranger"):
        keys[name].write_private_key(str(folder / name))
        (folder / name).chmod(0o600)
    allowed = folder / "authorized"
    allowed.write_bytes(keys["user"].export_public_key())
    loop = asyncio.new_event_loop()
    started: Any = None

    async def start() -> Any:
        return await asyncssh.create_server(
            _Doorman, "127.0.0.1", 0, server_host_keys=[keys["host"]], authorized_client_keys=str(allowed),
            process_factory=handler, encoding=None)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        started = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
        port = started.get_port()
        for name, key in (("known", keys["host"]), ("changed", keys["other"])):
            (folder / name).write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
        yield Server(port, folder / "user", folder / "stranger", folder / "known", folder / "changed", keys["host"])
    finally:
        asyncio.run_coroutine_threadsafe(_stop(started), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


async def _stop(started: Any) -> None:
    if started is not None:
        started.close()
    rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.sleep(0.05)


@contextmanager
def saying(data: bytes) -> Iterator[int]:
    """Listen on a free port, say ``data`` to each who comes, and then nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        open_ones: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                open_ones.append(one)
                try:
                    one.sendall(data)
                except OSError:
                    continue

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for one in open_ones:
                one.close()
            thread.join(5)
