"""`sweep`: coverage, estimate and memory of a model over sizes, precisions and memory modes, and where they jump."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.files import sweep as sweep_away
from vitrify.core.files import temporary_folder, write_atomically
from vitrify.core.findings import Finding, Severity
from vitrify.core.hashing import fingerprint, hash_file
from vitrify.core.progress import Reporter, Silent
from vitrify.core.text import json_bytes
from vitrify.core.words import counted
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.quantizing.search.kept import Kept
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.steps import refuse_compiled, step
from vitrify.pipeline.sweeping.cells import Task, own_kinds
from vitrify.pipeline.sweeping.cliffs import find_cliffs
from vitrify.pipeline.sweeping.grid import (
    Grid,
    Setting,
    Size,
    checked,
    read_arenas,
    read_precisions,
    read_sizes,
    settings_of,
)
from vitrify.pipeline.sweeping.resizing import Resizable, resizable
from vitrify.pipeline.sweeping.workers import Cells, measure
from vitrify.pipeline.versions import code, versions
from vitrify.results import CellRow, CliffRow, SweepResult

if TYPE_CHECKING:
    from vitrify.targets import Target

_DIGITS = re.compile(r"[0-9]+")
_SHAPES = ("onnx.", "shape.", "graph.")
CELLS, ANSWER = "cells.jsonl", "sweep.json"
DEFAULT_WORKERS, MOST_WORKERS = 2, 64


class SweepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is swept, as it is written on the command line. ``input`` names the picture where that is not plain."""

    target: str
    sizes: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    memory_modes: tuple[str, ...] = ()
    arenas: tuple[str, ...] = ()
    input: str = ""
    workers: int = DEFAULT_WORKERS

    def grid(self, chip: Target, own: Sequence[str]) -> Grid:
        """Return the grid that is meant; ``own`` is the precision that the model has already.

        Raises:
            UsageError: something in it cannot be.
        """
        if not 1 <= self.workers <= MOST_WORKERS:
            raise UsageError.of("sweep.workers", f"--workers must be 1 to {MOST_WORKERS}, got {self.workers}",
                                where="--workers")
        precisions = own if own and not self.precisions else read_precisions(self.precisions)
        return checked(Grid(read_sizes(self.sizes) or (Size(),),
                            settings_of(chip, precisions, self.memory_modes, read_arenas(self.arenas))))


def sweep_file(source: Path, output: Path | None, options: SweepOptions, data: DataOptions = DataOptions(),
               conversion: ConvertOptions = ConvertOptions(), reporter: Reporter | None = None) -> SweepResult:
    """Sweep a model; the answer and what each cell gave stand in the folder ``output``.

    The same call again measures only what is not there yet, also after it was killed.

    Raises:
        UsageError: the grid cannot be, the file is not there, or the folder not written.
        VitrifyError: the file is no model, or its size cannot be changed.
    """
    from vitrify.pipeline.measuring.correcting import load_target

    meter, shown, began = Meter(), reporter or Silent(), _cpu()
    chip = load_target(options.target)
    existing(source)
    data.check()
    with exchanged(source, conversion, shown) as (file, told), temporary_folder("sweep") as work:
        refuse_compiled(file)
        grid = options.grid(chip, own_kinds(file))
        sized = resizable(file, work, options.input) if grid.sizes[0].pixels else Resizable(file, ())
        folder = _folder(output or Path(f"{source.stem}_{options.target}_sweep"))
        kept = Kept(folder / CELLS, _key(source, options, chip, data, conversion))
        with step(shown, "sweep") as note:
            cells, reused = _measure(source, sized, grid, options, data, conversion, kept, shown)
            note.text = f"{counted(len(cells), 'cell')}, {reused} of them from before"
    cliffs = find_cliffs(cells)
    result = SweepResult(
        model=str(source), target=chip.name, sizes=[str(size) for size in grid.sizes],
        precisions=list(dict.fromkeys(one.precision for one in grid.settings)),
        memory_modes=list(dict.fromkeys(one.memory_mode for one in grid.settings if one.memory_mode)),
        cells=cells, cliffs=cliffs, findings=[*told, *_told(source, cells, cliffs)],
        ok=any(not cell.problem for cell in cells))
    result.command = "sweep"
    write_atomically(folder / ANSWER, json_bytes(result))      # what follows differs from call to call
    result.output, result.reused, result.workers = str(folder), reused, options.workers
    result.seconds, result.cpu_seconds = meter.seconds, round(_cpu() - began, 3)
    return result


def _folder(path: Path) -> Path:
    """Make the folder, and remove what killed processes left half-written in it.

    Raises:
        UsageError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError.of("file.write", f"cannot make the folder {path}: {error.strerror}", where=str(path),
                            help="choose another place with -o") from error
    sweep_away(path)
    return path


def _key(source: Path, options: SweepOptions, chip: Target, data: DataOptions, conversion: ConvertOptions) -> Any:
    """What a cell depends on besides its place in the grid."""
    samples = "" if data.path is None else _content(data.path)
    return [_content(source), options.input, msgspec.to_builtins(chip), samples, data.random, data.samples, data.seed,
            data.preprocess(), msgspec.to_builtins(conversion), versions(), code()]


def _content(path: Path) -> str:
    """A hash of a file, or of the state of all files in a folder."""
    return hash_file(path) if path.is_file() else fingerprint(sorted(p for p in path.rglob("*") if p.is_file()))


def _measure(source: Path, sized: Resizable, grid: Grid, options: SweepOptions, data: DataOptions,
             conversion: ConvertOptions, kept: Kept, shown: Reporter) -> tuple[list[CellRow], int]:
    """Return all cells in the order of the grid, and how many of them were there before."""
    cells = Cells([(size, setting) for size in grid.sizes for setting in grid.settings], kept, shown.advance)
    reused = len(cells.found)
    tasks = [Task(file=str(sized.file), source=str(source), target=options.target, size=size, data=data,
                  conversion=sized.at(size, conversion), settings=missing)
             for size in reversed(grid.sizes)      # the large ones first: what is left at the end is short
             if (missing := cells.missing(size, grid.settings))]
    try:
        measure(tasks, cells, options.workers)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{counted(len(cells.found), 'cell')} of {len(cells.names)} stay in {kept.path}, and "
                                "the same call goes on from there") from None
    return cells.in_order(), reused


def _told(source: Path, cells: Sequence[CellRow], cliffs: Sequence[CliffRow]) -> list[Finding]:
    """Tell of each cliff once, with all settings that it holds for, and of each reason for missing figures."""
    steps: dict[tuple[str, str, str], list[CliffRow]] = {}
    for cliff in cliffs:
        steps.setdefault((cliff.kind, cliff.size_before, cliff.size_after), []).append(cliff)
    found = [_cliff(source, rows) for rows in steps.values()]
    problems: dict[tuple[str, str], list[CellRow]] = {}
    for cell in cells:
        if cell.problem:
            problems.setdefault((cell.code, _DIGITS.sub("#", cell.problem)), []).append(cell)
    return [*found, *map(_problem, problems.values()), *_cautions(cells)]


def _cautions(cells: Sequence[CellRow]) -> list[Finding]:
    """Tell once of each caution, with the smallest size that it holds for."""
    first: dict[str, tuple[str, list[str]]] = {}
    for cell in cells:
        for name, headline in cell.cautions.items():
            first.setdefault(name, (headline, []))[1].append(cell.size)
    return [Finding(code=name, severity=Severity.INFO, where=f"from {sizes[0]} on", headline=headline,
                    why="no figure of the sweep counts it") for name, (headline, sizes) in first.items()]


def _problem(rows: Sequence[CellRow]) -> Finding:
    """Tell once of cells that have no figures for one reason, whatever numbers are in it."""
    first, code = rows[0], rows[0].code
    return Finding(
        code=code, severity=Severity.WARNING, where=", ".join(dict.fromkeys(row.size for row in rows)),
        headline=f"no figures for {counted(len(rows), 'cell')}: {first.problem}",
        help="" if not code.startswith(_SHAPES) or first.size == str(Size()) else "the graph holds numbers that were "
             "made for one size: export it with open height and width, or once for each size")


def _cliff(source: Path, rows: Sequence[CliffRow]) -> Finding:
    first = rows[0]
    settings = "; ".join(str(Setting(row.precision, row.memory_mode, row.arena_bytes)) for row in rows)
    return Finding(code=f"sweep.{first.kind}", severity=Severity.WARNING, where=f"{source.name}: {settings}",
                   headline=f"a cliff between {first.size_before} and {first.size_after}: {first.headline}",
                   help=f"stay at {first.recommended}, the largest size before it")


def _cpu() -> float:
    return sum(os.times()[:4])
