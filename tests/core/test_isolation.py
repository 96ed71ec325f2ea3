"""Every way a child may end, and that nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.core.errors import ModelError, VitrifyError
from vitrify.core.isolation import Worker, run_isolated, shared_child

HERE = Path(__file__).parent

ENDINGS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str, str]] = {
    "segfault": ("segfaults", (), {}, "process.died", r"(?s)the work died of SIGSEGV.*about to read address 0"),
    "abort": ("aborts", (), {}, "process.died", r"(?s)the work died of SIGABRT.*check failed: scale < 1"),
    "exit": ("exits", (3,), {}, "process.died", "the work ended with status 3 and no answer"),
    "exit_0": ("exits", (0,), {}, "process.died", "the work ended with status 0 and no answer"),
    "timeout": ("sleeps", (60.0,), {"seconds": 0.3}, "process.timeout", r"the work took longer than 0\.3 s"),
    "memory_slowly": ("eats", (4000,), {"memory_bytes": 300 << 20}, "process.memory", r"more than 0\.293 GB of memory"),
    "memory_at_once": ("eats", (600, 600), {"memory_bytes": 300 << 20}, "process.memory", r"more than 0\.293 GB"),
    "memory_in_cpp": ("aborts", ("what(): std::bad_alloc",), {}, "process.memory", r"more than [0-9.]+ GB of memory"),
    "their_error": ("raises_theirs", (), {}, "process.raised", "the work raised KeyError: 'inner'"),
    "no_function": ("nothing_here", (), {}, "process.raised", "has no attribute 'nothing_here'"),
    "not_picklable": ("lambda_back", (), {}, "process.raised", "cannot cross between processes"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_ending(ending: str) -> None:
    function, args, limits, code, text = ENDINGS[ending]
    with pytest.raises(VitrifyError, match=text) as caught:
        run_isolated(f"isolated:{function}", *args, what="the work", **limits)
    assert [finding.code for finding in caught.value.findings] == [code]


def test_our_errors_cross_over_whole() -> None:
    with pytest.raises(ModelError) as caught:
        run_isolated("isolated:raises_ours")
    assert [finding.headline for finding in caught.value.findings] == ["first", "second"]


ARRAYS = {
    "float": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "int8": np.arange(-8, 8, dtype=np.int8),
    "strided": np.arange(24, dtype=np.float64).reshape(4, 6)[:, ::2].T,
    "empty": np.zeros((0, 4), np.float32),
    "one": np.array([2.5]),
    "large": np.arange(1 << 21, dtype=np.float32),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_cross_both_ways(name: str) -> None:
    sent = ARRAYS[name]
    got = run_isolated("isolated:double", sent)
    assert got.dtype == sent.dtype
    assert got.flags.writeable
    np.testing.assert_array_equal(got, sent * 2)


def test_progress_is_called_here() -> None:
    seen: list[tuple[int, int]] = []
    assert run_isolated("isolated:count", 3, on_progress=lambda *values: seen.append(values)) == 3
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_worker_stays_and_starts_again_after_death() -> None:
    with Worker("the work") as worker:
        assert [worker.call("isolated:remember", i) for i in (1, 2)] == [[1], [1, 2]]
        with pytest.raises(ModelError):
            worker.call("isolated:raises_ours")
        assert worker.call("isolated:remember", 3) == [1, 2, 3]
        with pytest.raises(VitrifyError, match="SIGSEGV"):
            worker.call("isolated:segfaults")
        assert worker.pid is None
        assert worker.call("isolated:remember", 4) == [4]
    assert worker.pid is None


def test_worker_killed_between_calls_starts_again() -> None:
    with Worker("the work") as worker:
        worker.call("isolated:remember", 1)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        assert worker.call("isolated:remember", 2) == [2]


def test_log_holds_what_outside_code_printed() -> None:
    with Worker("the work") as worker:
        worker.call("isolated:prints", "hello")
        assert worker.log == "C++ says hello\nPython says hello\n"
        worker.call("isolated:echo")
        assert worker.log == ""
        worker.call("isolated:floods", 12)
        assert len(worker.log) <= 5 << 20
        assert worker.log.endswith("the end\n")


def test_limits_of_the_child() -> None:
    assert run_isolated("isolated:core_limit") == (0, 0)


def test_a_mapped_file_larger_than_the_limit_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    with path.open("wb") as stream:
        stream.truncate(400 << 20)
    assert run_isolated("isolated:maps", str(path), memory_bytes=200 << 20) == 0


def test_threads_take_turns() -> None:
    got: list[int] = []
    with Worker("the work") as worker:
        threads = [threading.Thread(target=lambda i=i: got.extend(worker.call("isolated:echo", i))) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(got) == list(range(8))


def test_worker_made_in_a_thread_outlives_it() -> None:
    worker = Worker("the work")
    thread = threading.Thread(target=worker.call, args=("isolated:remember", 1))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert worker.call("isolated:remember", 2) == [1, 2]
    worker.close()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if Path("/proc").exists() else True
    except (ProcessLookupError, FileNotFoundError):
        return False


def _gone(pids: list[int], seconds: float = 3.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(_alive, pids))


def _pids(path: Path) -> list[int]:
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return [int(word) for word in path.read_text().split()]


PARENT = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)      # children of a run in the background ignore it
sys.path.insert(0, {here!r})
from vitrify.core.isolation import run_isolated
def work():
    run_isolated("isolated:sleeps", 60.0, {pids!r}, what="the work")
{start}
"""


@pytest.mark.parametrize("start", ["work()", "t = threading.Thread(target=work); t.start(); t.join()"],
                         ids=["main_thread", "other_thread"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_nothing_outlives_the_parent(tmp_path: Path, how: signal.Signals, start: str) -> None:
    if how is signal.SIGINT and start != "work()":
        pytest.skip("Ctrl-C reaches the main thread, which decides what becomes of others")
    pids = tmp_path / "pids"
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(here=str(HERE), pids=str(pids), start=start)],
                              stderr=subprocess.DEVNULL)
    children = _pids(pids)
    assert len(children) == 2
    assert all(map(_alive, children))
    parent.send_signal(how)
    parent.wait(10)
    assert _gone(children)


def test_timeout_stops_grandchildren_too(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(VitrifyError, match="took longer"):
        run_isolated("isolated:sleeps", 60.0, str(pids), seconds=2.0)
    assert _gone(_pids(pids))


def test_descriptors_are_given_back() -> None:
    run_isolated("isolated:echo")
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        run_isolated("isolated:echo")
        with pytest.raises(VitrifyError):
            run_isolated("isolated:exits", 1)
    assert len(os.listdir("/dev/fd")) == before


def test_workers_in_a_block_share_one_child() -> None:
    with Worker("outside") as outside, shared_child():
        with Worker("first") as first, Worker("small", memory_bytes=1 << 30) as small:
            pids = [worker.call("os:getpid") for worker in (outside, first, small)]
        with Worker("second") as second:
            assert second.call("os:getpid") == pids[1]
        assert run_isolated("os:getpid") == pids[1]
        assert len(set(pids)) == 3
        assert outside.call("os:getpid") == pids[0]
    assert not _alive(pids[1])


def test_a_shared_child_that_died_is_replaced() -> None:
    with shared_child(), Worker("first") as first, Worker("second") as second:
        before = second.call("os:getpid")
        with pytest.raises(VitrifyError, match="first died of SIGABRT"):
            first.call("isolated:aborts")
        after = second.call("os:getpid")
        assert after != before
    assert not _alive(after)
