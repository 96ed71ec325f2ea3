"""Boards over SSH: a real server that runs the real probe, and all that can go wrong on the way."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from board_trees import lay_out
from ssh_server import PASSWORD, Server, endless, foreign, saying, serving, shell_in, sleeping

from vitrify.boards import tables
from vitrify.boards.login import Login, read_address
from vitrify.boards.ssh import connect
from vitrify.core.errors import TargetError, UsageError
from vitrify.core.progress import Silent
from vitrify.pipeline.doctor import Questions, examine_board

QUICK = 10.0


@pytest.fixture(scope="module")
def board_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tables()["imx93"]
    return lay_out(tmp_path_factory.mktemp("board"), table, table.rows[-2])


@pytest.fixture(scope="module")
def server(board_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(shell_in(board_root), tmp_path_factory.mktemp("keys")) as running:
        yield running


def login(server: Server, **more: object) -> Login:
    given = {"identity": server.identity, "known_hosts": server.known_hosts, **more}
    return Login("127.0.0.1", server.port, **given)  # type: ignore[arg-type]


def refusal(board: Login, seconds: float = QUICK) -> tuple[str, str]:
    with pytest.raises(TargetError) as told, connect(board, seconds):
        pass
    return told.value.findings[0].code, str(told.value)


def test_a_board_is_examined(server: Server) -> None:
    result = examine_board(login(server), Questions(), Silent())
    assert result.board is not None
    assert (result.board.target, result.board.release, result.board.whole) == ("imx93", "LF6.6.36-2.1.0", True)
    assert result.board.compiler_version == "3.12.0"
    assert result.ok
    assert [f.code for f in result.findings if "compiler" not in f.code] == []


def test_a_password_serves_too(server: Server) -> None:
    with connect(login(server, identity=None, password=PASSWORD)) as board:
        assert board.run(["echo", "well"]).text == "well\n"


def test_commands_are_lists(server: Server) -> None:
    words = ["a b", "$(id)", "`id`", "; exit 7", "'\"", "*", "-n", ""]
    with connect(login(server)) as board:
        assert board.run(["printf", "%s\\n", *words]).text.splitlines() == words
        assert board.run(["sh", "-c", "exit 7"]).status == 7
        ran = board.run(["sh", "-c", "cat; echo wrong >&2"], given=b"\x00\xff")
        assert (ran.out, ran.errors) == (b"\x00\xff", b"wrong\n")


def test_files_go_up_and_down_whole(server: Server, tmp_path: Path) -> None:
    source, back, far = tmp_path / "model.tflite", tmp_path / "back", tmp_path / "-far $(id) 'side'.bin"
    source.write_bytes(bytes(range(256)) * 2000)
    with connect(login(server)) as board:
        board.put(source, str(far))
        assert far.read_bytes() == source.read_bytes()
        board.get(str(far), back)
        assert back.read_bytes() == source.read_bytes()
        with pytest.raises(TargetError, match=r"more than 1000 bytes"):
            board.get(str(far), tmp_path / "small", most_bytes=1000)
        with pytest.raises(TargetError, match=r"board.file-refused"):
            board.put(source, str(tmp_path / "no" / "folder" / "x"))
        with pytest.raises(TargetError, match=r"board.file-refused"):
            board.get(str(tmp_path / "none"), tmp_path / "none here")
        board.remove(str(far), str(far))
        assert not far.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "model.tflite"]


def test_a_key_that_is_not_known_is_refused_with_its_fingerprint(server: Server, tmp_path: Path) -> None:
    empty = tmp_path / "hosts"
    for _ in range(2):
        code, text = refusal(login(server, known_hosts=empty))
        assert code == "board.host-key-unknown"
        assert server.key.get_fingerprint() in text
        assert f"ssh-keyscan -p {server.port} 127.0.0.1 >> {empty}" in text
        empty.write_text(server.other_hosts.read_text().replace("[127.0.0.1]", "[other.host]"))


def test_a_key_that_has_changed_is_refused(server: Server) -> None:
    code, text = refusal(login(server, known_hosts=server.other_hosts))
    assert code == "board.host-key-changed"
    assert server.key.get_fingerprint() in text
    assert f"-R '[127.0.0.1]:{server.port}'" in text


@pytest.mark.parametrize("wrong", ["key", "password"])
def test_a_wrong_login_is_told(server: Server, wrong: str) -> None:
    given = {"identity": server.stranger} if wrong == "key" else {"identity": server.stranger, "password": "wrong"}
    code, text = refusal(login(server, **given))
    assert code == "board.login"
    assert str(server.stranger) in text
    assert ("and the password" in text) is (wrong == "password")


def test_a_key_that_is_none_is_told(server: Server, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key at all\n")
    assert refusal(login(server, identity=tmp_path / "key"))[0] == "board.identity"


def test_nobody_there(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    code, text = refusal(login(server)._replace(port=port))
    assert code == "board.unreachable"
    assert "Connection refused" in text
    assert refusal(login(server)._replace(host="no-such-board.invalid"))[0] == "board.unreachable"


@pytest.mark.parametrize(("data", "code"), [
    (b"", "board.timeout"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "board.timeout"),
    (b"SSH-2.0-x\r\n" + b"\xff" * 70000, "board.protocol"), (b"SSH-1.5-old\r\n", "board.protocol"),
    (b"\x00" * 200000, "board.protocol"), (b"SSH-2.0-half\r\n\x00\x00", "board.timeout")],
    ids=["silent", "http", "garbage", "old", "zeros", "half"])
def test_what_is_no_ssh_server_ends_in_a_finding(server: Server, data: bytes, code: str) -> None:
    with saying(data) as port:
        began = time.monotonic()
        assert refusal(login(server)._replace(port=port), 0.5)[0] == code
        assert time.monotonic() - began < QUICK


def test_an_endless_answer_is_cut(tmp_path: Path) -> None:
    with serving(endless, tmp_path) as running, connect(login(running)) as board:
        with pytest.raises(TargetError, match=r"board.output.*more than 4194304 bytes"):
            board.run(["yes"])
        with pytest.raises(TargetError, match=r"more than 100000 bytes"):
            board.run(["yes"], output_bytes=100_000)


def test_a_command_that_hangs_is_given_up(tmp_path: Path) -> None:
    with serving(sleeping, tmp_path) as running, connect(login(running)) as board, \
            pytest.raises(TargetError, match=r"board.timeout.*longer than 0.3 s"):
        board.run(["sleep", "60"], seconds=0.3)


async def leaving(process: Any) -> None:
    """Hangs up in the middle of an answer."""
    process.stdout.write(b"half")
    process.channel.get_connection().abort()


def test_a_connection_that_breaks_is_told(tmp_path: Path) -> None:
    with serving(leaving, tmp_path) as running, connect(login(running)) as board, \
            pytest.raises(TargetError, match=r"error\[board\.(broken|protocol)\].*(broke|status None)"):
        board.run(["uname"])


def test_what_is_no_board_is_told(tmp_path: Path) -> None:
    with serving(foreign, tmp_path) as running, pytest.raises(TargetError) as told:
        examine_board(login(running), Questions(), Silent())
    (finding,) = told.value.findings
    assert finding.code == "doctor.no-answer"
    assert "% Unknown command" in finding.why


@pytest.mark.parametrize(("text", "expected"), [
    ("imx93", ("root", "imx93", 0)), ("me@10.0.0.7:2222", ("me", "10.0.0.7", 2222)), ("[fe80::1]:22", (
        "root", "fe80::1", 22)), ("a.b-c.local", ("root", "a.b-c.local", 0))])
def test_addresses(text: str, expected: tuple[str, str, int]) -> None:
    found = read_address(text)
    assert (found.user, found.host, found.port) == expected


@pytest.mark.parametrize("text", ["-oProxyCommand=x", "a b", "h:0", "h:99999", "h:x", "@h", "u@", "h;id", "a/b", "::1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"board.address"):
        read_address(text)


@pytest.mark.parametrize("data", [b"\x00\xff garbage\n", b"|1|bad|bad ssh-rsa AAAA\n"], ids=["bytes", "hash"])
def test_host_keys_that_cannot_be_read_are_told(server: Server, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "hosts").write_bytes(data)
    code, text = refusal(login(server, known_hosts=tmp_path / "hosts"))
    assert code in ("board.known-hosts", "board.host-key-unknown")
    assert str(tmp_path / "hosts") in text
