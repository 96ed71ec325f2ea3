"""Silence around PyTorch, which prints and warns a lot, and the first words of its long errors."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator

_LONGEST = 400
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_REASON = re.compile(r"<class '(?:[\w.]*\.)?(\w+)'>: (.+)")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what PyTorch prints, logs and warns of away from the user's terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def first_line(error: BaseException) -> str:
    """What an error says, in one line: of an exporter's page of advice, the reason at its end."""
    text = _COLOUR.sub("", str(error))
    reason = _REASON.search(text)
    if reason is not None:
        return f"{reason[1]}: {reason[2]}"[:_LONGEST]
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)[:_LONGEST]
