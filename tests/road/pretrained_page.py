"""The page that tells what became of pretrained models; a line of it for each row of the table."""

from __future__ import annotations

import fcntl
import re
import tempfile
from pathlib import Path

from pretrained_table import Entry, Row

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
COMMAND = "VITRIFY_WRITE_PAGES=1 pytest tests/road/test_pretrained.py"
HEAD = f"""# Pretrained models

Models with their published weights, converted to float TFLite and compared with the source on real photos, sounds and
texts. A model runs in ONNX Runtime, or in LiteRT where it is a TFLite file, and its conversion in LiteRT; what their
outputs mean must be the same. Beside each figure stands what the test demands; dB are those of the worst single output,
signal to error.

Each line is generated and compared by a test. To write them anew:

    {COMMAND}

| model | file | compared | came out |
|---|---|---|---|
"""


def line(entry: Entry, outcome: str) -> str:
    """The line of one model."""
    return f"| {entry.title} | `{Path(entry.file).name}` | {entry.task} | {outcome} |"


def written() -> list[str]:
    """The lines of the page as it is."""
    return [text for text in (PAGE.read_text() if PAGE.exists() else "").splitlines() if re.match(r"\| .*`", text)]


def holds(entry: Entry, text: str) -> bool:
    """True when the page has this line; of a model that each machine trains itself, with other percentages."""
    if not isinstance(entry, Row) or not entry.trained_here:
        return text in written()
    return blurred(text) in map(blurred, written())


def blurred(text: str) -> str:
    """A line without its percentages."""
    return re.sub(r"\d+\.\d+%", "%", text)


def whole(lines: list[str]) -> str:
    """The page with these lines."""
    return HEAD + "\n".join(lines) + "\n"


def write(entry: Entry, text: str, order: list[str]) -> None:
    """Put a line in the place of the model's own; ``order`` gives the beginnings of all lines."""
    with (Path(tempfile.gettempdir()) / "pretrained_page.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)    # rows run side by side
        own = start(entry)
        lines = [old for old in written() if not old.startswith(own)] + [text]
        known = {begin: next((one for one in lines if one.startswith(begin)), "") for begin in order}
        PAGE.write_text(whole([one for one in known.values() if one]))


def start(entry: Entry) -> str:
    """How the line of a model begins."""
    return f"| {entry.title} | "
