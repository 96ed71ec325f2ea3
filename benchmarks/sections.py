"""Pages that several benchmarks write: each has a section between two marks, and leaves the others alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def put_section(page: Path, name: str, lines: Sequence[str]) -> None:
    """Write a section into ``page``, in the place of the one of that name or at the end."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = "\n".join((begin, "", *lines, "", end))
    text = page.read_text() if page.exists() else ""
    if begin in text and end in text:
        before, rest = text.split(begin, 1)
        page.write_text(before + section + rest.split(end, 1)[1])
    else:
        page.write_text("\n\n".join(filter(None, (text.rstrip(), section))) + "\n")
