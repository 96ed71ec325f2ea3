"""The child that is forked early: it answers, dies and ends like any other, and is used once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent

BEGIN = f"""
import os, sys, json
os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, {str(HERE)!r})
sys.stdout.write("said before ")
from vitrify.core import isolation
from vitrify.core.errors import VitrifyError
isolation.start_early()
forked = isolation._ready[0].process.pid
worker = isolation.Worker("the work")
"""

SCRIPTS = {
    "answers": ("worker.call('isolated:echo', 5); print(worker.pid == forked)", "said before True\n"),
    "its_output_is_the_log": ("worker.call('isolated:prints', 'x'); print(json.dumps(worker.log))",
                              'said before "C++ says x\\nPython says x\\n"\n'),
    "dies_and_another_starts": ("""
try:
    worker.call('isolated:segfaults')
except VitrifyError as error:
    print(error.findings[0].headline)
print(worker.call('isolated:echo', 5), worker.pid != forked)""", "said before the work died of SIGSEGV\n(5,) True\n"),
    "killed_before_its_use": ("""
import signal
os.kill(forked, signal.SIGKILL)
os.waitid(os.P_PID, forked, os.WEXITED | os.WNOWAIT)
print(worker.call('isolated:echo', 5), worker.pid != forked)""", "said before (5,) True\n"),
    "another_limit_of_memory": ("other = isolation.Worker('x', memory_bytes=1 << 30); other.call('isolated:echo'); "
                                "print(other.pid != forked)", "said before True\n"),
    "used_once": ("""
worker.call('isolated:echo')
other = isolation.Worker('x')
other.call('isolated:echo')
print(other.pid != worker.pid)""", "said before True\n"),
    "no_core_files": ("print(worker.call('isolated:core_limit'))", "said before (0, 0)\n"),
    "not_beside_threads": ("""
import threading
isolation._ready.pop().end()
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
isolation.start_early()
print(isolation._ready)
stop.set()""", "said before []\n"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
@pytest.mark.parametrize("name", SCRIPTS)
def test_forked_child(name: str) -> None:
    script, expected = SCRIPTS[name]
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_ends_with_its_parent() -> None:
    script = BEGIN + "print(json.dumps(forked), flush=True); import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = json.loads(parent.stdout.readline().removeprefix("said before "))
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    for _ in range(200):
        if not Path(f"/proc/{child}").exists() or Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1][1] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {child} is left")
