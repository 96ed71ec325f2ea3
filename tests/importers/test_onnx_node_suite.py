"""ONNX's own node tests: none fails, most pass, the rest is refused with a reason, and the page in docs says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx_node_page import COMMAND, page

PAGE = Path(__file__).parents[2] / "docs" / "onnx_node_tests.md"
LEAST_PASSED = 0.98
"""Of the tests that are taken."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of every test."""
    output = tmp_path_factory.mktemp("nodes") / "results.json"
    jobs = Path(__file__).with_name("onnx_node_jobs.py")
    done = subprocess.run([sys.executable, str(jobs), str(output)], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    results: dict[str, Any] = json.loads(output.read_text())
    return results


def shown(rows: list[dict[str, Any]]) -> str:
    return "\n".join(f"{row['name']}: {row['reason']}" for row in rows)


def test_every_test_is_run(found: dict[str, Any]) -> None:
    assert len(found["rows"]) == found["tests"] > 1500


def test_none_fails(found: dict[str, Any]) -> None:
    failed = [row for row in found["rows"] if row["outcome"] == "failed"]
    assert not failed, shown(failed)


def test_most_pass(found: dict[str, Any]) -> None:
    passed = [row for row in found["rows"] if row["outcome"] == "passed"]
    refused = [row for row in found["rows"] if row["outcome"] == "refused"]
    assert len(passed) >= LEAST_PASSED * len(found["rows"]), shown(refused)


def test_refusals_say_why(found: dict[str, Any]) -> None:
    refused = [row for row in found["rows"] if row["outcome"] == "refused"]
    assert all(len(row["reason"]) > 20 for row in refused), shown(refused)


def test_page_says_so(found: dict[str, Any]) -> None:
    wanted = page(found, onnx.__version__, onnx.defs.onnx_opset_version())
    if os.environ.get("VITRIFY_WRITE_PAGES"):
        PAGE.write_text(wanted)
    written = PAGE.read_text() if PAGE.exists() else ""
    assert written == wanted, f"the page is out of date; write it anew: {COMMAND}"
