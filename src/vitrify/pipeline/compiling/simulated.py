"""A file that Vela compiled against its source, run on the host by the functional model of the NPU, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.pipeline.compiling.comparing import Apart, Array, Limits, Reference, is_beyond, random_samples
from vitrify.pipeline.compiling.reproducing import Reproduction, reproduce
from vitrify.pipeline.compiling.verifying import STAGE, Verified
from vitrify.results import ComparisonRow, ErrorRow

if TYPE_CHECKING:
    from vitrify.ir import Node
    from vitrify.runtimes.npusim import NpuSim, Program
    from vitrify.targets import Target

FAMILY = "ethos_u"
MOST_COMMANDS = 2_000_000
"""Of one run: words of the command streams. A ViT tiny has 465,000, which take 13 s of CPU time; attention is where the
compiler goes wrong most, so no model of that kind is left out."""
_SAMPLES = 1
_HAZARDS = 3
"""Of one NPU operator: one is told."""
_STEPS = 8.0
"""Steps that single values may differ by: a rounding early in a recurrent or deep model grows on its way."""


def can_simulate(target: Target) -> bool:
    """True for chips whose command streams the functional model knows."""
    return target.family == FAMILY and not target.core.startswith("u85")


def verify_simulated(source: Path, compiled: Path, *, samples: Sequence[Sequence[Array]] = (),
                     stage: str = STAGE) -> Verified:
    """Compare the file ``compiled`` with the file ``source`` that it was made of: outputs, and every layer that both
    have. What is wrong is told with the first operator that is, which is cut out and written beside ``compiled``.

    ``samples`` are the file's own input tensors, random ones where none are given.

    Raises:
        VitrifyError: the source cannot be read, or LiteRT refuses it.
    """
    from vitrify import tflite
    from vitrify.runtimes.npusim import NpuSim, oracle

    model = tflite.read(source)
    samples, outputs = list(samples) or random_samples(model)[:_SAMPLES], [t.name for t in model.main.outputs]
    made = {tensor.name for node in model.main for tensor in node.outputs}
    try:
        with NpuSim(compiled) as runtime:
            commands = sum(len(step.commands) for step in runtime.program.npu)
            if commands > MOST_COMMANDS:
                return _unverified(compiled, f"its {commands:,} commands would take minutes to run here")
            inner = [name for name in runtime.tensors if name in made and name not in outputs]
            given = _run(runtime, samples, outputs, inner)
            excess, unordered = runtime.excess, _unordered(compiled, runtime.program)
    except VitrifyError as error:
        return _unverified(compiled, f"{error.findings[0].headline} ({error.findings[0].where})")
    with temporary_folder() as folder:
        changed = oracle(model)
        path = Path(folder) / source.name
        tflite.write(model, path)
        reference = Reference(path, samples)
        reference.look([*outputs, *(name for name in given if name not in outputs)])
    found = _Judging(source, compiled, reference, given, outputs, changed, stage, excess).verified()
    found.findings = [*found.findings, *unordered]
    return found


def _unordered(compiled: Path, program: Program) -> list[Finding]:
    """Tell what may run at the same time and touches the same bytes: the model runs one command after the other."""
    from vitrify.runtimes.npusim.ordering import hazards

    found = [hazard for step in program.npu for hazard in islice(hazards(step), _HAZARDS)]
    if not found:
        return []
    return [Finding(code="compile.unordered", severity=Severity.WARNING, where=str(compiled),
                    headline=f"the command stream may not wait where it must: {found[0]}",
                    why="a transfer and a kernel run at the same time unless a wait stands between them; which waits "
                        "are needed follows Vela's own rules (docs/npusim.md)",
                    help="compile with another setting (--search), or tell the compiler's maker")]


def _run(runtime: NpuSim, samples: Sequence[Sequence[Array]], outputs: Sequence[str],
         inner: Sequence[str]) -> dict[str, list[Array]]:
    """The file's outputs and inner tensors by the source's names, each for all samples; inner ones only if whole."""
    found: dict[str, list[Array]] = {}
    for sample in samples:
        raw, traced = runtime.observe_raw(sample, inner)
        for name, value in [*zip(outputs, raw, strict=True), *traced.items()]:
            found.setdefault(name, []).append(value)
    return {name: arrays for name, arrays in found.items() if len(arrays) == len(samples)}


class _Judging:
    """Tensors of a compiled file beside the reference's: what is equal, what is a rounding, what is wrong."""

    def __init__(self, source: Path, compiled: Path, reference: Reference, given: Mapping[str, list[Array]],
                 outputs: Sequence[str], changed: Sequence[str], stage: str,
                 excess: Mapping[str, int]) -> None:
        from vitrify import tflite

        self.source, self.compiled, self.reference, self.changed = source, compiled, reference, changed
        self.stage, self.limits = stage, Limits()
        self.graph = tflite.read(source).main
        self.makers = {tensor.name: node for node in self.graph for tensor in node.outputs}
        self.rows = {name: self._row(name, arrays, name in outputs) for name, arrays in given.items()}
        self.outputs = [self.rows[name] for name in outputs if name in self.rows]
        order = {name: number for number, name in enumerate(self.makers)}
        more = [ErrorRow(tensor=name, ok=False, operator=self._kind(name), reason="has more values stored than it has: "
                         f"{count:,}") for name, count in excess.items() if name not in self.rows]
        self.inner = sorted((row for name, row in [*self.rows.items(), *((one.tensor, one) for one in more)]
                             if name not in outputs),
                            key=lambda row: order.get(row.tensor, 0))

    def _row(self, name: str, arrays: list[Array], is_output: bool) -> ErrorRow:
        wanted = self.reference.value(0, name)
        if any(array.size != wanted.size for array in arrays):
            return ErrorRow(tensor=name, ok=False, operator=self._kind(name), reason="has another number of values")
        found = self.reference.against(name, [np.reshape(array, wanted.shape) for array in arrays])
        allowed = self.limits.allowed(self.reference.floor(name))
        allowed = Apart(max(allowed.largest, _STEPS), allowed.mean) if is_output else allowed
        wrong = is_beyond(found, allowed)
        return ErrorRow(tensor=name, max_lsb=found.largest, equal=found.largest == 0, ok=not wrong,
                        operator=self._kind(name), reason=_words(found, allowed) if wrong else "")

    def _kind(self, name: str) -> str:
        return self.makers[name].op.kind if name in self.makers else ""

    def verified(self) -> Verified:
        """Return the rows, what is said of them, and the smallest reproduction of what is wrong."""
        wrong = [row for row in self.outputs if not row.ok]
        row = ComparisonRow(name=self.stage, reference=self.source.name, samples=len(self.reference.samples),
                            ok=not wrong, outputs=self.outputs, tensors=self.inner)
        found = Verified(row=row, runs=1)
        if not wrong:
            found.findings = [self._good()]
            return found
        first = next((one for one in [*self.inner, *wrong] if not one.ok), wrong[0])
        node = self.makers.get(first.tensor)
        found.first_divergence = f"{self.stage}: {_title(node)} {first.reason}" if node is not None else \
            f"{self.stage}: output '{first.tensor}' {first.reason}"
        told, found.files = (Reproduction(), []) if node is None else self._reproduced(node)
        found.findings = [self._damaged(wrong[0], first, node, told)]
        return found

    def _reproduced(self, node: Node) -> tuple[Reproduction, list[str]]:
        told = reproduce(self.compiled, node)
        return told, [str(told.model)] if told.model is not None else []

    def _how(self) -> str:
        dense = "".join(f"; {one}" for one in self.changed)
        equal = sum(row.equal for row in self.inner)
        layers = f"{equal} of {counted(len(self.inner), 'inner tensor')} that both have are equal bit for bit; " \
            if self.inner else ""
        return (f"{layers}the command streams were run on the host, on "
                f"{counted(len(self.reference.samples), 'sample')}, against {self.source.name} in "
                f"{self.reference.name}{dense}. This follows the documented numerics and the reference kernels; it was "
                "not compared with silicon")

    def _damaged(self, output: ErrorRow, first: ErrorRow, node: Node | None, told: Reproduction) -> Finding:
        headline = f"the stage 'compile' is the first that changes the answers: output '{output.tensor}' " \
                   f"{output.reason}"
        if node is not None and first is not output:
            headline += f"; the first operator that differs is {_title(node)}, which {first.reason}"
        elif node is not None:
            headline += f"; {_title(node)} makes it"
        return Finding(code="compile.damaged", where=f"node '{_names(node)}'" if node is not None else
                       str(self.compiled), why=". ".join(filter(None, (self._how(), told.words))), headline=headline,
                       help=told.way_round or "do not ship this file; compile with another setting (--search), or tell "
                       "the compiler's maker")

    def _good(self) -> Finding:
        worst = max((row.max_lsb or 0.0 for row in self.outputs), default=0.0)
        first = next((row for row in [*self.inner, *self.outputs] if not row.equal), None)
        if first is None or not worst:
            return Finding(code="compile.verified", severity=Severity.INFO, where=str(self.compiled), why=self._how(),
                           headline="the compiled file gives what its source gives, bit for bit")
        node = self.makers.get(first.tensor)
        begins = "" if node is None else f"; the first that differs is {_title(node)}, by up to {first.max_lsb or 0:g}"
        return Finding(code="compile.verified", severity=Severity.INFO, where=str(self.compiled),
                       why=f"{self._how()}. Tables that the compiler makes, as that of HARD_SWISH, may be off by a "
                       "step, which later layers carry on",
                       headline=f"the compiled file gives what its source gives, within {worst:g} steps{begins}")


def _title(node: Node | None) -> str:
    return "" if node is None else f"{node.op.kind} '{_names(node)}'"


def _names(node: Node | None) -> str:
    """The node's name in the user's file; of several that became one, the last."""
    if node is None:
        return ""
    return node.origin.sources[-1].name if node.origin.sources else node.name


def _words(found: Apart, allowed: Apart) -> str:
    return (f"is off by up to {found.largest:.3g} steps, {found.mean:.3g} on average; {allowed.largest:.3g} and "
            f"{allowed.mean:.3g} are allowed")


def _unverified(compiled: Path, why: str) -> Verified:
    return Verified(findings=[Finding(code="compile.not-verified", severity=Severity.WARNING, where=str(compiled),
                                      headline=f"not verified after compilation: {why}")])
