"""Runs the program as a user does: another process, no terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vitrify.results import RESULTS, FailureResult, Result

PROGRAM = [sys.executable, "-m", "vitrify"]
PLAIN = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}


class Ran(NamedTuple):
    """What came out."""

    status: int
    out: str
    err: str


def run(*arguments: str | Path, cwd: Path | None = None, **more: Any) -> Ran:
    done = subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300,
                          env=os.environ | PLAIN, **more)
    return Ran(done.returncode, done.stdout, done.stderr)


def answer(*arguments: str | Path, cwd: Path | None = None, **more: Any) -> tuple[int, Result]:
    """Run with ``--json`` and read the one object on standard output as the type that the schema is made from."""
    ran = run(*arguments, "--json", cwd=cwd, **more)
    return ran.status, parsed(ran.out)


def parsed(out: str) -> Result:
    """Read what ``--json`` printed."""
    plain = msgspec.json.decode(out)
    assert isinstance(plain, dict), out
    assert list(plain)[:3] == ["schema_version", "command", "ok"]
    kind = RESULTS.get(plain["command"], FailureResult)
    if not plain["ok"] and "seconds" not in plain and plain["command"] in ("convert", "quantize", "build", "compile"):
        kind = FailureResult
    result = msgspec.json.decode(out, type=kind)
    assert set(msgspec.to_builtins(result)) >= set(plain), "the answer has keys that its schema does not"
    return result
