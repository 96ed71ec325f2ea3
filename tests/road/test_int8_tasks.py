"""What pretrained models do, they do in int8: each task's result against what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import int8_listening
import int8_seeing
import int8_small
import pytest
from int8_tasks import TASKS

Find = Callable[[str], Path]
pytestmark = [pytest.mark.models, pytest.mark.timeout(900)]
FAMILIES = (int8_seeing, int8_listening, int8_small)
"""Importing them fills the table."""

PAGE = Path(__file__).parents[2] / "docs" / "tasks_int8.md"
QUICK = ("keyword_spotting_alexa",)
ROWS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name, task in TASKS.items()
        if task.met]
"""What is not met is on the page, and would only fail here."""


@pytest.mark.parametrize("name", ROWS)
def test_int8_keeps_the_task(name: str, model_file: Find, tmp_path: Path) -> None:
    found = TASKS[name].measure(model_file, tmp_path)
    assert found.holds, found


def test_the_page_tells_of_every_task_once() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    told = [(line.split(" | ")[0][2:], line.split(" | ")[1]) for line in lines]
    assert told == [(task.title, task.measured) for task in TASKS.values()]
    refused = {task.title for task, line in zip(TASKS.values(), lines, strict=True) if line.endswith("**no** |")}
    assert refused == {task.title for task in TASKS.values() if not task.met}
