"""A compiled file against its source, on the same values, wherever anything runs it; and which part of it is wrong.

What runs it is the backend's own runner, or a board whose inputs and outputs were recorded. Where the outputs differ by
more than roundings, the parts on the NPU are looked at: all of their outputs in one run, then the first that differs by
itself, fed with the source's values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify import tflite
from vitrify.core.errors import DataError, TargetError, VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import shared_child
from vitrify.core.words import counted
from vitrify.ir import Graph, Model
from vitrify.ir.cutting import cut_out
from vitrify.pipeline.compiling.comparing import (
    NOTHING,
    Apart,
    Array,
    Limits,
    Reference,
    is_beyond,
    random_samples,
    recorded_samples,
)
from vitrify.results import ComparisonRow, ErrorRow

if TYPE_CHECKING:
    from vitrify.backends.base import Backend, CompilerOptions, NpuPart
    from vitrify.targets import Target

STAGE = "compile"


class VerifyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a compiled file is compared: with the inputs and outputs ``recorded`` on a board, or where it can be run.

    ``steps`` is what values may differ by; None: what LiteRT's own kernels differ by says it.
    """

    recorded: Path | None = None
    steps: float | None = None


class Verified(msgspec.Struct, kw_only=True):
    """What came of it. ``row`` is None where nothing could run the file; ``runs`` counts those of the compiled file."""

    row: ComparisonRow | None = None
    findings: list[Finding] = []
    runs: int = 0
    guilty: int | None = None
    first_divergence: str | None = None
    files: list[str] = []

    @property
    def words(self) -> str:
        """What a line of progress says."""
        if self.row is None or any(finding.code == "compile.not-verified" for finding in self.findings):
            return "not verified after compilation"
        return "as its source" if self.row.ok else "not as its source"


def verify_compiled(source: Path, compiled: Path, driver: Backend, target: Target, how: CompilerOptions,
                    options: VerifyOptions = VerifyOptions()) -> Verified:
    """Compare the file ``compiled`` with the file ``source`` that it was made of; a wrong part is written beside it.

    Raises:
        DataError: the recorded values cannot be read, or do not fit.
        VitrifyError: LiteRT refuses the source.
    """
    if options.recorded is None and not driver.must_verify:
        return Verified()
    with shared_child():
        return _Verifying(source, compiled, driver, target, how, options).run()


class _Verifying:
    """One comparison on its way."""

    def __init__(self, source: Path, compiled: Path, driver: Backend, target: Target, how: CompilerOptions,
                 options: VerifyOptions) -> None:
        self.source, self.compiled = tflite.read(source), tflite.read(compiled)
        self.path, self.place = source, compiled
        self.driver, self.target, self.how = driver, target, how
        self.options, self.limits = options, Limits(steps=options.steps)
        self.parts = driver.parts(self.source.main, self.compiled)
        self.recorded = {} if options.recorded is None else _load(options.recorded)
        self.reference = Reference(source, self._samples())
        self.found = Verified()
        self._seen: dict[str, list[Array]] | None = None

    def _samples(self) -> list[list[Array]]:
        """The inputs: those of the board, or random ones."""
        inputs = self.source.main.inputs
        if self.options.recorded is None:
            return random_samples(self.source)
        try:
            given = dict(recorded_samples(inputs, self.recorded))
        except (ValueError, TypeError) as error:
            raise self._unfit(str(error)) from error
        missing = [tensor.name for tensor in inputs if tensor.name not in given]
        if missing:
            raise self._unfit(f"it lacks the input '{missing[0]}'")
        samples = [list(one) for one in zip(*(given[tensor.name] for tensor in inputs), strict=False)]
        if not samples or any(one.shape != tensor.shape for sample in samples
                              for one, tensor in zip(sample, inputs, strict=True)):
            raise self._unfit("the shape of an input is another")
        return samples

    def _unfit(self, why: str) -> DataError:
        names = ", ".join(f"'{t.name}'" for t in (*self.source.main.inputs, *self.source.main.outputs))
        return DataError.of("recorded.unfit", f"the recorded values do not fit the model: {why}",
                            where=str(self.options.recorded),
                            help="save inputs and outputs with numpy.savez under the names of the file's "
                                 f"tensors: {names}")

    def run(self) -> Verified:
        outputs = [tensor.name for tensor in self.source.main.outputs]
        ends = [name for part in self.parts for name in (*part.inputs, *part.outputs)]
        self.reference.look([*outputs, *ends])
        try:
            given = self._given()
        except TargetError as error:
            self.found.findings = [self._unverified(error.findings[0].headline)]
            return self.found
        if given is None:
            self.found.findings = [self._unverified("nothing on this machine runs such a file")]
            return self.found
        self._judge(dict(zip(outputs, given, strict=True)))
        if self._is_good and self.options.recorded is None and len(self.parts) > 1:
            self._look_inside()
        elif self.found.row is not None and not self.found.row.ok:
            self._search()
        return self.found

    @property
    def _is_good(self) -> bool:
        return self.found.row is not None and self.found.row.ok

    def _look_inside(self) -> None:
        """Compare what the parts give each other, too: later layers may hide what an early one does wrongly."""
        try:
            with temporary_folder() as folder:
                seen = self._exposed(folder)
        except VitrifyError as error:
            self.found.findings.append(self._unsearched(error))
            return
        self._seen = seen
        inner = {name: arrays for name, arrays in seen.items() if not any(
            name == tensor.name for tensor in self.source.main.outputs)}
        wrong = [name for name, arrays in inner.items() if is_beyond(*self._apart(name, arrays))]
        if wrong:
            self._judge(seen)
            self._search()

    def _given(self) -> list[list[Array]] | None:
        """The compiled file's outputs, each for all samples."""
        if self.options.recorded is None:
            return self._run(self.place, self.reference.samples)
        outputs = self.source.main.outputs
        given = dict(recorded_samples(outputs, self.recorded))
        missing = [tensor.name for tensor in outputs if tensor.name not in given]
        if missing or any(len(one) != len(self.reference.samples) for one in given.values()):
            raise self._unfit(f"it lacks the output '{missing[0]}'" if missing else
                              "there are more inputs than outputs, or less")
        return [given[tensor.name] for tensor in outputs]

    def _run(self, path: Path, samples: Sequence[Sequence[Array]]) -> list[list[Array]] | None:
        answers = self.driver.run(path, self.target, samples, self.how)
        self.found.runs += 1
        return None if answers is None else [list(column) for column in zip(*answers, strict=True)]

    def _judge(self, given: dict[str, list[Array]]) -> None:
        rows, is_sure = [], True
        for name, arrays in given.items():
            found, allowed = self._apart(name, arrays)
            wrong = is_beyond(found, allowed)
            is_sure = is_sure and not is_beyond(found, self.limits.allowed(NOTHING))
            rows.append(ErrorRow(tensor=name, max_lsb=_finite(found.largest), equal=found.largest == 0, ok=not wrong,
                                 reason=self._words(found, allowed) if wrong else ""))
        by = "a board" if self.options.recorded is not None else f"the runner of the {self.driver.title}"
        self.found.row = ComparisonRow(name=STAGE, reference=self.path.name, samples=len(self.reference.samples),
                                       ok=all(row.ok for row in rows), outputs=rows)
        worst = max(rows, key=lambda row: (not row.ok, math.inf if row.max_lsb is None else row.max_lsb))
        floor = self.reference.floor(worst.tensor)
        compared = (f"{counted(len(self.reference.samples), 'sample')}, run by {by}, against {self.path.name} in "
                    f"{self.reference.name}, whose own kernels differ by up to {floor.largest:.3g} steps")
        if worst.ok and not is_sure:
            self.found.findings = [Finding(
                code="compile.not-verified", severity=Severity.WARNING, where=str(self.place), why=compared,
                headline="not verified after compilation: answers are off by up to "
                         f"{worst.max_lsb or 0:g} steps ('{worst.tensor}'), which may be roundings or a fault",
                help="judge its accuracy on a board, on real samples; --tolerance-lsb N allows N steps")]
            return
        if worst.ok:
            self.found.findings = [Finding(
                code="compile.verified", severity=Severity.INFO, where=str(self.place),
                headline=f"the compiled file gives what its source gives, within {worst.max_lsb or 0:g} steps",
                why=compared)]
            return
        self.found.first_divergence = f"{STAGE}: output '{worst.tensor}' {worst.reason}"
        self.found.findings = [Finding(
            code="compile.damaged", where=str(self.place), why=compared,
            headline=f"the stage 'compile' is the first that changes the answers: output '{worst.tensor}' "
                     f"{worst.reason}",
            help="do not ship this file; another release of the compiler may do better. Where the chip only rounds "
                 "otherwise, --tolerance-lsb N allows N steps")]

    def _apart(self, name: str, arrays: Sequence[Array]) -> tuple[Apart, Apart]:
        return self.reference.against(name, arrays), self.limits.allowed(self.reference.floor(name))

    def _words(self, found: Apart, allowed: Apart) -> str:
        return (f"is off by up to {found.largest:.3g} steps, {found.mean:.3g} on average; {allowed.largest:.3g} and "
                f"{allowed.mean:.3g} are allowed")

    def _unverified(self, why: str) -> Finding:
        return Finding(
            code="compile.not-verified", severity=Severity.WARNING, where=str(self.place),
            headline=f"not verified after compilation: {why}",
            why="compilers for this NPU have changed answers without a word: a published model fell from 0.336 AP to "
                "0.064",
            help="install the SDK with its neutron-runner; or run the file on a board, save its inputs and outputs "
                 "with numpy.savez, and compile again with --recorded FILE.npz")

    def _search(self) -> None:
        """Find the part that is wrong, in as few runs as halving would take."""
        budget = math.ceil(math.log2(max(1, len(self.parts)))) + 2
        try:
            with temporary_folder() as folder:
                for number in self._suspects(folder):
                    if self.found.runs >= budget or self.options.recorded is not None:
                        return self._guilty(number, "among all that were seen")
                    if self._is_wrong_alone(number, folder):
                        return self._guilty(number, "also by itself, fed with the source's own values")
        except VitrifyError as error:
            self.found.findings.append(self._unsearched(error))

    def _unsearched(self, error: VitrifyError) -> Finding:
        return Finding(code="compile.search", severity=Severity.INFO, where=str(self.place),
                       headline=f"the parts on the NPU cannot be compared one by one: {error.findings[0].headline}")

    def _suspects(self, folder: Path) -> list[int]:
        """The parts whose outputs differ in a run of the whole file, the first in running order first."""
        if self._seen is not None:
            seen = self._seen
        elif self.options.recorded is not None:
            seen = dict(recorded_samples(self.source.main.tensors(), self.recorded))
        elif len(self.parts) == 1:
            return [0]
        else:
            seen = self._exposed(folder)
        found = [number for number, part in enumerate(self.parts)
                 if any(name in seen and is_beyond(*self._apart(name, seen[name])) for name in part.outputs)]
        before = [name for part in self.parts[:found[0]] for name in part.outputs] if found else []
        return found if all(name in seen for name in before) else []      # else an unseen one may be to blame

    def _exposed(self, folder: Path) -> dict[str, list[Array]]:
        """Run the compiled file with the outputs of all parts given out."""
        model = tflite.read(self.place)
        by_name = {tensor.name: tensor for tensor in model.main.tensors()}
        names = dict.fromkeys([*(tensor.name for tensor in model.main.outputs),
                               *(name for part in self.parts for name in part.outputs)])
        model.main.set_outputs([by_name[name] for name in names if name in by_name])
        path = folder / "exposed.tflite"
        _write(model.main, path)
        given = self._run(path, self.reference.samples) or []
        return dict(zip((tensor.name for tensor in model.main.outputs), given, strict=True))

    def _is_wrong_alone(self, number: int, folder: Path) -> bool:
        part = self.parts[number]
        wanted = [tensor for tensor in part.node.outputs if tensor.name in part.outputs]
        alone = cut_out([part.node], outputs=wanted)
        path = folder / f"alone-{number}.tflite"
        _write(alone, path)
        samples = [[self.reference.value(sample, tensor.name) for tensor in alone.inputs]
                   for sample in range(len(self.reference.samples))]
        given = self._run(path, samples) or []
        return any(is_beyond(*self._apart(tensor.name, arrays)) for tensor, arrays in zip(wanted, given, strict=True))

    def _guilty(self, number: int, how: str) -> None:
        """Name the part, and write its nodes as a model of their own, with inputs and right answers."""
        part = self.parts[number]
        self.found.guilty = number
        names = [node.name for node in part.nodes]
        where = f"nodes '{names[0]}' to '{names[-1]}'" if len(names) > 1 else f"node '{names[0]}'" if names else ""
        model, values = self._hand_over(part)
        self.found.files = [str(model), str(values)]
        self.found.findings.append(Finding(
            code="compile.guilty-part", headline=f"part {number + 1} of {len(self.parts)} on the NPU is computed "
            f"wrongly: {counted(len(names), 'node')}, {how}", where=where,
            why=f"found in {counted(self.found.runs, 'run')} of the compiled file; its nodes stand alone, before "
                f"compilation, in {model.name}, with inputs and right answers in {values.name}",
            help=f"report {model.name} to the compiler's maker; or try another release of it"))

    def _hand_over(self, part: NpuPart) -> tuple[Path, Path]:
        nodes = Graph.in_order(part.nodes)
        graph = cut_out(nodes, outputs=[t for node in nodes for t in node.outputs if t.name in part.outputs])
        model = self.place.with_name(f"{self.place.stem}_guilty.tflite")
        values = self.place.with_name(f"{self.place.stem}_guilty.npz")
        _write(graph, model)
        np.savez(values, **{name: np.stack([self.reference.value(n, name) for n in range(len(self.reference.samples))])
                            for name in dict.fromkeys([*part.inputs, *part.outputs])})      # type: ignore[arg-type]
        return model, values


def _write(graph: Graph, path: Path) -> None:
    tflite.write(Model(graphs=[graph]), path)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _load(path: Path) -> dict[str, Any]:
    """Read recorded tensors.

    Raises:
        DataError: it is no .npz file.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, AttributeError, KeyError) as error:
        raise DataError.of("recorded.unreadable", f"{path} is no .npz file of plain arrays: {error}", where=str(path),
                           help="save inputs and outputs with numpy.savez") from error

