"""Runs the node tests in processes that may die: ``python onnx_node_jobs.py FILE`` writes all results as JSON.

The tests are read once; workers are forks of that process. LiteRT can end a process on a bad file: the row it was at
has failed, and a fresh fork goes on behind it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

from onnx_node_suite import Result, collected, run

WORKERS = 2


def worked(indices: range, output: Path) -> None:
    """Run the tests of these indices, a line before and a line after each."""
    tests = collected()[0]
    with output.open("a") as lines, tempfile.TemporaryDirectory() as folder:
        for index in indices:
            print(json.dumps({"begun": index}), file=lines, flush=True)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = run(tests[index], Path(folder))
            except Exception as error:  # a row that fails in any way is a failed row, and not the end of the others
                found = Result("failed", f"{type(error).__name__}: {str(error)[:200]}")
            print(json.dumps({"ended": index, **found.__dict__}), file=lines, flush=True)


def forked(indices: range, output: Path) -> int:
    """Start a worker."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            worked(indices, output)
            status = 0
        finally:
            os._exit(status)
    return child


def read(output: Path) -> tuple[dict[int, Result], int | None]:
    """What a worker wrote: its results, and the test that it did not come back from."""
    lines = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    ended = {line.pop("ended"): Result(**line) for line in lines if "ended" in line}
    begun = [line["begun"] for line in lines if "begun" in line]
    return ended, next((index for index in begun if index not in ended), None)


def run_all(folder: Path) -> dict[int, Result]:
    """Run every test, in two workers at a time."""
    count = len(collected()[0])
    running: dict[int, tuple[range, Path]] = {}
    for start in range(WORKERS):
        part = range(start, count, WORKERS)
        output = folder / f"{start}.jsonl"
        running[forked(part, output)] = part, output
    results: dict[int, Result] = {}
    while running:
        child, status = os.wait()
        part, output = running.pop(child)
        ended, lost = read(output)
        results |= ended
        if lost is not None:
            results[lost] = Result("failed", f"the process died (status {status})")
            rest = range(lost + part.step, count, part.step)
            output = output.with_suffix(f".{lost}.jsonl")
            running[forked(rest, output)] = rest, output
    return results


def main() -> None:
    """Write the results of all tests by name."""
    with tempfile.TemporaryDirectory() as folder:
        results = run_all(Path(folder))
    tests, others = collected()
    rows = [
        {"name": test.name, "kind": test.kind, **results[index].__dict__}
        for index, test in enumerate(tests)
        if index in results
    ]
    Path(sys.argv[1]).write_text(json.dumps({"tests": len(tests), "rows": rows, "left_out": others}))


if __name__ == "__main__":
    main()
