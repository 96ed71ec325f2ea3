"""The cells of one size, measured in a child process: imported once, quantized once for each precision, then compiled
in each memory mode.

A cell depends on nothing but its size, its setting and what all share, so neither the number of processes nor a stop
changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Silent
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.keeping import brings_scales, write_integers
from vitrify.pipeline.rows import coverage_row
from vitrify.pipeline.steps import COMPILABLE, is_tflite, kind_of
from vitrify.pipeline.sweeping.grid import PRECISIONS, Setting, Size
from vitrify.results import CellRow

if TYPE_CHECKING:
    from vitrify.backends.base import Backend
    from vitrify.ir import Ledger, Model
    from vitrify.targets import Estimate, Placement, Target

WORK = "vitrify.pipeline.sweeping.cells:measure_here"
_ACTIVATIONS = {"int8": "int8", "int16x8": "int16"}


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What all cells of one size share; picklable. ``source`` is what messages name."""

    file: str
    source: str
    target: str
    size: Size
    conversion: ConvertOptions
    data: DataOptions
    settings: tuple[Setting, ...]


def measure_here(task: Task, progress: Callable[[dict[str, Any]], None]) -> None:
    """Run in a child: measure the settings of a size and hand on each cell."""
    from vitrify.pipeline.measuring.correcting import load_target

    chip = load_target(task.target)
    with temporary_folder() as folder, shared_child():
        try:
            forms = _Forms(task, folder)
        except VitrifyError as error:
            for setting in task.settings:
                progress(msgspec.to_builtins(_refused(task, setting, error)))
            return
        for setting in task.settings:
            try:
                row = _cell(task, setting, forms.integers(setting.precision), chip)
            except VitrifyError as error:
                row = _refused(task, setting, error)
            progress(msgspec.to_builtins(row))


class _Forms:
    """The model at one size: float, and as integers of each precision, each made once."""

    def __init__(self, task: Task, folder: Path) -> None:
        self._task, self._folder = task, folder
        self._made: dict[str, Path | VitrifyError] = {}
        self._float: tuple[Model, Ledger] | None = None
        path = Path(task.file)
        if is_tflite(path):
            from vitrify import tflite

            if (kind := kind_of(tflite.read(path))) in COMPILABLE:
                self._made = self._only(kind, path)
                return
        elif brings_scales(path):
            written = folder / f"{path.stem}_int8.tflite"
            write_integers(path, written, task.conversion, Silent())
            self._made = self._only("int8", written)
            return
        self._float = float_model(path, task.conversion, Silent())

    def _only(self, kind: str, path: Path) -> dict[str, Path | VitrifyError]:
        """What there is of a file that is quantized already."""
        return dict.fromkeys(PRECISIONS, _unequal(self._task.source, kind)) | {kind: path}

    def integers(self, precision: str) -> Path:
        """Return the file in that precision.

        Raises:
            VitrifyError: there is none.
        """
        if precision not in self._made:
            try:
                self._made[precision] = self._quantized(precision)
            except VitrifyError as error:
                self._made[precision] = error
        found = self._made[precision]
        if isinstance(found, VitrifyError):
            raise found
        return found

    def _quantized(self, precision: str) -> Path:
        from vitrify.ir import Ledger
        from vitrify.pipeline.checking.without_data import quantize_on_trial
        from vitrify.quant.copying import copy_model

        assert self._float is not None
        given = self._task.data.given
        recipe = QuantizeOptions(effort=None if given else "fast").effective()
        recipe = msgspec.structs.replace(recipe, activations=_ACTIVATIONS[precision])
        model, ledger = copy_model(self._float[0]), Ledger(list(self._float[1].entries))
        target = self._folder / f"{Path(self._task.source).stem}_{precision}.tflite"
        if given:
            _quantize(model, ledger, target, self._task, recipe)
        else:
            quantize_on_trial(model, ledger, target, self._task.conversion, Silent(), recipe)
        return target


def _quantize(model: Model, ledger: Ledger, target: Path, task: Task, recipe: Any) -> None:
    """Quantize on the samples, as `quantize` does."""
    from vitrify import tflite
    from vitrify.passes import to_integer_forms
    from vitrify.pipeline.quantizing.making import Job, make

    to_integer_forms(model, ledger, steps=recipe.in_steps)
    between = target.with_name(f"{target.stem}_float.tflite")
    tflite.write(model, between)
    goal = QuantizeOptions().goal()
    make(tflite.read(between), between, target,
         Job(data=task.data, recipe=recipe, goal=goal, source=Path(task.source)), Silent())


def _cell(task: Task, setting: Setting, path: Path, chip: Target) -> CellRow:
    from vitrify import tflite
    from vitrify.pipeline.checking.judging import compiler_of, judge_model
    from vitrify.targets.cost import node_macs

    model = tflite.read(path)
    row = _row(task, setting)
    row.macs = sum(node_macs(node) for node in model.main)
    driver = compiler_of(chip)
    if driver is not None:
        return _compiled(row, path, driver, _in_setting(chip, setting))
    judged = judge_model(model, chip)
    _place(row, judged.placement)
    _time(row, judged.estimate)
    row.cautions = {finding.code: finding.headline for finding in judged.findings}
    return row


def _in_setting(chip: Target, setting: Setting) -> Target:
    """The chip with its memory used as the setting says; only Vela is told such."""
    if chip.backend != "vela":
        return chip
    from vitrify.backends.vela.modes import in_mode
    from vitrify.backends.vela.searching import Setting as Arena

    chip = in_mode(chip, setting.memory_mode)
    return chip if setting.arena_bytes is None else Arena(setting.arena_bytes).of(chip)


def _compiled(row: CellRow, path: Path, driver: Backend, chip: Target) -> CellRow:
    answer = driver.check(path, chip)
    _place(row, answer.placement)
    _time(row, answer.estimate)
    memory = answer.memory
    if memory is None:
        return row
    row.near_bytes = memory.sram_bytes + (memory.encoded_weights_bytes if chip.constants == "near" else 0)
    row.near_limit_bytes, row.far_bytes = memory.sram_limit_bytes, memory.dram_bytes
    row.far_traffic_bytes = memory.dram_traffic_bytes
    return row


def _place(row: CellRow, placement: Placement) -> None:
    on_cpu = [verdict for verdict in placement.verdicts if verdict.placement == "cpu"]
    row.nodes, row.cpu_nodes = len(placement.verdicts), len(on_cpu)
    row.cpu_operators = dict(sorted(Counter(verdict.operator for verdict in on_cpu).items()))
    row.rules = dict(sorted(Counter(rule.code for verdict in on_cpu for rule in verdict.rules[:1]).items()))
    row.coverage, row.partitions = coverage_row(placement.coverage), placement.npu_partitions


def _time(row: CellRow, estimate: Estimate | None) -> None:
    if estimate is None:
        return
    row.latency_ms, row.low_ms, row.high_ms = estimate.latency_ms, estimate.low_ms, estimate.high_ms
    row.source = estimate.source


def _row(task: Task, setting: Setting) -> CellRow:
    return CellRow(size=str(task.size), height=task.size.height, width=task.size.width, precision=setting.precision,
                   memory_mode=setting.memory_mode, arena_bytes=setting.arena_bytes)


def _refused(task: Task, setting: Setting, error: VitrifyError) -> CellRow:
    row, first = _row(task, setting), error.findings[0]
    stems = {task.file: task.source, Path(task.file).name: Path(task.source).name}
    headline = first.headline
    for aside, name in stems.items():
        headline = headline.replace(aside, name)
    headline = " ".join(headline.split())
    row.problem, row.code = headline + (f" ({first.where})" if first.where.startswith("node") else ""), first.code
    return row


def _unequal(source: str, kind: str) -> VitrifyError:
    return VitrifyError.of("sweep.precision", f"{Path(source).name} is {kind} already",
                           help="give the float model, or leave --precision out")


def own_kinds(path: Path) -> Sequence[str]:
    """Return the precision that a file has already; empty for a float model."""
    if not is_tflite(path):
        return ()
    from vitrify import tflite

    kind = kind_of(tflite.read(path))
    return (kind,) if kind in COMPILABLE else ()
