"""Export the models of the table that the cache does not have; goes on where it stopped.

    python build.py [NAME ...]

Each model is built in a process of its own. One that fails is reported, and the others are built all the same.
"""

from __future__ import annotations

import subprocess
import sys
import time

from table import CACHE, HERE, Entry, entries

SECONDS = 900
"""The limit for one model."""


def current(entry: Entry) -> bool:
    """True when the cache holds what the table and the builders describe."""
    stamp = entry.onnx.with_suffix(".recipe")
    return (entry.onnx.exists() and entry.samples.exists() and stamp.exists()
            and stamp.read_text() == entry.recipe)


def build(entry: Entry) -> str:
    """Export one model; return what went wrong, empty when nothing did."""
    python = CACHE / "venv" / "bin" / "python"
    try:
        child = subprocess.run([str(python), str(HERE / "export.py"), entry.name], capture_output=True, text=True,
                               timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    if child.returncode:
        lines = [line for line in child.stderr.splitlines() if line.strip()]
        return lines[-1] if lines else f"ended with status {child.returncode}"
    entry.onnx.with_suffix(".recipe").write_text(entry.recipe)
    return ""


def main() -> int:
    """Build what is missing among the models named on the command line, all without names."""
    CACHE.mkdir(parents=True, exist_ok=True)
    failed = 0
    for entry in entries(sys.argv[1:]):
        if current(entry):
            continue
        start = time.monotonic()
        reason = build(entry)
        failed += bool(reason)
        size = "" if reason else f"{entry.onnx.stat().st_size / 1e6:.1f} MB"
        said = f"FAILED {reason}" if reason else size
        print(f"{entry.name:28} {time.monotonic() - start:6.1f} s  {said}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
