"""Write the tables into a page, after the line that names this program.

    python -m vitrify.boards.tables docs/boards.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from vitrify.boards.tables import Table, tables

MARK = "<!-- tables: python -m vitrify.boards.tables docs/boards.md -->"


def page(text: str) -> str:
    """Return a page's text with the tables as they are now."""
    head, mark, _ = text.partition(MARK)
    assert mark, f"the page lacks the line {MARK}"
    return "\n".join([f"{head}{mark}", *(line for table in tables().values() for line in _section(table))]) + "\n"


def _section(table: Table) -> Iterator[str]:
    names = {name: part.title for name, part in table.components.items()}
    if table.compiler is not None:
        names = {table.compiler.column: f"{table.compiler.title} that fits", **names}
    yield f"\n### {table.title}\n"
    yield f"| release | {' | '.join(names.values())} | source |"
    yield "|---" * (len(names) + 2) + "|"
    for row in table.rows:
        yield f"| {row.release} | {' | '.join(row.versions.get(name, '') for name in names)} | {row.source} |"
    yield "\n| needed | as | without it | source |\n|---|---|---|---|"
    for need in table.needs:
        since = f" (since kernel {need.since})" if need.since else ""
        yield f"| {need.name}{since} | {', '.join(f'`{path}`' for path in need.any)} | {need.causes} | {need.source} |"
    yield "\n| of another release | causes |\n|---|---|"
    for part in table.components.values():
        yield f"| {part.title} ({part.severity}) | {part.causes} |"
    if table.compiler is not None:
        compiler = table.compiler
        yield f"| {compiler.title}, newer ({compiler.newer}) | {compiler.newer_causes} |"
        yield f"| {compiler.title}, older ({compiler.older}) | {compiler.older_causes} |"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(page(target.read_text(encoding="utf-8")), encoding="utf-8")
