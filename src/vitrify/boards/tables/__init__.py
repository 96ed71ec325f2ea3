"""Which releases fit together on a board: a TOML file per chip beside this one, each row with its source."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from vitrify.boards.facts import Facts, order, version_in

Weight = Literal["error", "warning", "info"]


class Component(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part that has a version: where a board shows it, and what a wrong one causes."""

    title: str
    severity: Weight
    causes: str
    packages: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    folder: str = ""
    bytes: str = ""

    def seen(self, facts: Facts) -> str:
        """Return the version on a board; empty when the board does not tell it."""
        if self.bytes:
            size = facts.bytes_of(self.bytes)
            return "" if size is None else str(size)
        packages = facts.named("package")
        named = [*(facts.named(self.folder) if self.folder else ()),
                 *(packages[name] for name in self.packages if name in packages),
                 *(facts.python[name] for name in self.python if name in facts.python)]
        return next(filter(None, map(version_in, named)), "")


class Need(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file or device without which the NPU does not work; any of several names serves. ``since``: a kernel.

    ``module`` and ``node``: the driver that makes a device, and a part of the name of its node in the device tree.
    """

    name: str
    any: tuple[str, ...]
    severity: Weight
    causes: str
    help: str
    source: str
    since: str = ""
    module: str = ""
    node: str = ""

    def cause_in(self, facts: Facts) -> str:
        """Why a device may be absent, as far as a whole answer tells; else empty."""
        if not facts.whole:
            return ""
        if self.node and not any(self.node in name for name in facts.named("node")):
            return f"; its device tree has no node called {self.node}"
        if self.module and self.module not in facts.text("modules").split():
            return f"; the kernel module {self.module} is not loaded (or is built into the kernel)"
        return ""

    def is_absent(self, facts: Facts) -> bool | None:
        """True when the board has none of them, None when it does not say."""
        answers = [_is_absent(path, facts) for path in self.any]
        return False if False in answers else None if None in answers else True


def _is_absent(path: str, facts: Facts) -> bool | None:
    if not path.endswith("*"):
        return facts.is_absent(path)
    if any(fnmatchcase(name, path) and value != "-" for name, value in facts.named("file").items()):
        return False
    return facts.is_absent(path[:-1])


class Compiler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which compiler makes files for the chip, and what another version than the board's causes."""

    column: str
    title: str
    package: str
    command: str
    newer: Weight
    newer_causes: str
    older: Weight
    older_causes: str
    same: str
    source: str


class Silicon(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first revision of the chip whose NPU works."""

    least: str
    name: str
    causes: str
    source: str


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory that the NPU's buffers come from."""

    cma_least_bytes: int = 0
    cma_causes: str = ""
    cma_source: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One release of a board's software; ``versions`` by the names of components, and the compiler's."""

    release: str
    kernel: str
    source: str
    versions: dict[str, str]


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is known of a chip's releases."""

    target: str
    title: str
    chips: tuple[str, ...]
    components: dict[str, Component]
    needs: tuple[Need, ...]
    rows: tuple[Row, ...]
    compiler: Compiler | None = None
    silicon: Silicon | None = None
    memory: Memory = Memory()

    def row_of(self, kernel: str) -> tuple[Row, bool]:
        """Return the row of a kernel and True, or else the last row before it (or the first of all) and False."""
        exact = next((row for row in self.rows if row.kernel == kernel), None)
        if exact is not None:
            return exact, True
        before = [row for row in self.rows if order(row.kernel) <= order(kernel)]
        return (max(before, key=lambda row: order(row.kernel)) if before else self.rows[0]), False

    def compiler_of(self, row: Row) -> str:
        """Return the compiler's version that fits a release; empty when it is not known."""
        return row.versions.get(self.compiler.column, "") if self.compiler else ""


@cache
def tables() -> dict[str, Table]:
    """Return the tables by target."""
    files = (file for file in resources.files(__name__).iterdir() if file.name.endswith(".toml"))
    found = [_read(file.read_text(encoding="utf-8")) for file in sorted(files, key=lambda file: file.name)]
    return {table.target: table for table in found}


def table_of(facts: Facts) -> Table | None:
    """Return the table of the chip that a board has, None when it has none that we know."""
    said = " ".join((facts.text("soc.soc_id"), facts.text("dt.compatible"), facts.text("soc.machine"),
                     facts.text("dt.model"))).lower()
    words = said.replace(",", " ").replace("-", " ").split()
    for table in tables().values():
        if any(chip.lower() in words for chip in table.chips):
            return table
    return None


def _read(text: str) -> Table:
    content = msgspec.toml.decode(text)
    plain = ("release", "kernel", "source")
    content["rows"] = [{**{name: row[name] for name in plain},
                        "versions": {name: value for name, value in row.items() if name not in plain}}
                       for row in content["rows"]]
    return msgspec.convert(content, Table)
