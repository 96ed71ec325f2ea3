"""Pretrained models of every kind are converted, and what their outputs mean stays the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pretrained_listening
import pretrained_recurrent
import pretrained_seeing
import pretrained_small
import pretrained_text
import pytest
from pretrained_page import COMMAND, holds, line, start, whole, write, written
from pretrained_table import TABLE

Find = Callable[[str], Path]
pytestmark = [pytest.mark.models, pytest.mark.timeout(300)]
FAMILIES = (pretrained_seeing, pretrained_text, pretrained_listening, pretrained_recurrent, pretrained_small)
"""Importing them fills the table."""
ROWS = [pytest.param(name, marks=pytest.mark.slow) if entry.slow else name for name, entry in TABLE.items()]


@pytest.mark.parametrize("name", ROWS)
def test_task_result_is_the_same(name: str, model_file: Find, tmp_path: Path) -> None:
    entry = TABLE[name]
    text = line(entry, entry.outcome(model_file, tmp_path))
    if os.environ.get("VITRIFY_WRITE_PAGES"):
        write(entry, text, [start(e) for e in TABLE.values()])
    assert holds(entry, text), f"the page is out of date; write it anew: {COMMAND}"


def test_page_has_every_model_once() -> None:
    lines = written()
    found = [next((one for one in lines if one.startswith(start(e))), start(e)) for e in TABLE.values()]
    assert sorted(found) == sorted(lines)
    from pretrained_page import PAGE
    assert PAGE.read_text() == whole(lines)
