"""Class names as exporters write them into a file's metadata."""

from __future__ import annotations

import ast

MOST_CHARACTERS = 1_000_000


def class_names(text: str) -> tuple[str, ...]:
    """Read ``{0: 'person', 1: 'bicycle'}`` or ``['person', 'bicycle']``; empty when the text is neither.

    Classes that a mapping leaves out are called by their number.
    """
    if not 0 < len(text) <= MOST_CHARACTERS:
        return ()
    try:
        found = ast.literal_eval(text)          # literals only: nothing in the text is run
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return ()
    if isinstance(found, list | tuple):
        found = dict(enumerate(found))
    if not isinstance(found, dict) or not all(isinstance(key, int) and 0 <= key < MOST_CHARACTERS for key in found):
        return ()
    return tuple(str(found.get(index, f"class {index}")) for index in range(max(found, default=-1) + 1))
