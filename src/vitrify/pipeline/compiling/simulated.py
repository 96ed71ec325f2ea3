"""A file that Vela compiled against its source, run on the host by the functional model of the NPU, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.pipeline.compiling.comparing import Apart, Array, Limits, Reference, is_beyond, random_samples
from vitrify.pipeline.compiling.verifying import STAGE, Verified
from vitrify.results import ComparisonRow, ErrorRow

if TYPE_CHECKING:
    from vitrify.runtimes.npusim import Program
    from vitrify.targets import Target

FAMILY = "ethos_u"
MOST_COMMANDS = 100_000
"""Of one run; 40,000 take half a minute of CPU time."""
_SAMPLES = 1
_STEPS = 8.0
"""Steps that single values may differ by: a rounding early in a recurrent or deep model grows on its way."""


def can_simulate(target: Target) -> bool:
    """True for chips whose command streams the functional model knows."""
    return target.family == FAMILY and not target.core.startswith("u85")


def verify_simulated(source: Path, compiled: Path) -> Verified:
    """Compare the file ``compiled`` with the file ``source`` that it was made of.

    Raises:
        VitrifyError: the source cannot be read, or LiteRT refuses it.
    """
    from vitrify import tflite
    from vitrify.runtimes.npusim import oracle, read_program

    model = tflite.read(source)
    samples, names = random_samples(model)[:_SAMPLES], [tensor.name for tensor in model.main.outputs]
    try:
        program = read_program(compiled)
        commands = sum(len(step.commands) for step in program.npu)
        if commands > MOST_COMMANDS:
            return _unverified(compiled, f"its {commands:,} commands would take minutes to run here")
        given = _run(program, samples)
    except VitrifyError as error:
        return _unverified(compiled, f"{error.findings[0].headline} ({error.findings[0].where})")
    with temporary_folder() as folder:
        changed = oracle(model)
        path = Path(folder) / source.name
        tflite.write(model, path)
        reference = Reference(path, samples)
        reference.look(names)
    return _judged(compiled, source, reference, dict(zip(names, given, strict=True)), changed)


def _run(program: Program, samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The file's outputs, each for all samples."""
    from vitrify.runtimes.npusim import Simulator, outputs_of

    simulator = Simulator(program)
    try:
        answers = [outputs_of(simulator.run(sample), program) for sample in samples]
    finally:
        simulator.close()
    return [list(column) for column in zip(*answers, strict=True)]


def _judged(compiled: Path, source: Path, reference: Reference, given: dict[str, list[Array]],
            changed: int) -> Verified:
    limits, rows = Limits(), []
    for name, arrays in given.items():
        shaped = [np.reshape(array, reference.value(i, name).shape) for i, array in enumerate(arrays)]
        found, allowed = reference.against(name, shaped), limits.allowed(reference.floor(name))
        allowed = Apart(max(allowed.largest, _STEPS), allowed.mean)
        wrong = is_beyond(found, allowed)
        rows.append(ErrorRow(tensor=name, max_lsb=found.largest, equal=found.largest == 0, ok=not wrong,
                             reason=_words(found, allowed) if wrong else ""))
    row = ComparisonRow(name=STAGE, reference=source.name, samples=len(reference.samples),
                        ok=all(one.ok for one in rows), outputs=rows)
    return Verified(row=row, runs=1, findings=[_finding(compiled, source, reference, rows, changed)],
                    first_divergence=next((f"{STAGE}: output '{one.tensor}' {one.reason}" for one in rows
                                           if not one.ok), None))


def _finding(compiled: Path, source: Path, reference: Reference, rows: Sequence[ErrorRow], changed: int) -> Finding:
    dense = f"; {counted(changed, 'dense layer')} as a 1x1 convolution, which rounds as the NPU does" if changed else ""
    why = (f"the command streams were run on the host, on {counted(len(reference.samples), 'random sample')}, against "
           f"{source.name} in {reference.name}{dense}. This follows the documented numerics and the reference kernels; "
           "it was not compared with silicon")
    wrong = [row for row in rows if not row.ok]
    if wrong:
        return Finding(code="compile.damaged", where=str(compiled), why=why,
                       headline="the stage 'compile' is the first "
                       f"that changes the answers: output '{wrong[0].tensor}' {wrong[0].reason}",
                       help="do not ship this file; compile with another setting (--search), or tell the compiler's "
                            "maker")
    worst = max((row.max_lsb or 0.0 for row in rows), default=0.0)
    if not worst:
        return Finding(code="compile.verified", severity=Severity.INFO, where=str(compiled), why=why,
                       headline="the compiled file gives what its source gives, bit for bit")
    return Finding(code="compile.verified", severity=Severity.INFO, where=str(compiled), why=f"{why}. Tables that the "
                   "compiler makes, as that of HARD_SWISH, may be off by a step, which later layers carry on",
                   headline=f"the compiled file gives what its source gives, within {worst:g} steps")


def _words(found: Apart, allowed: Apart) -> str:
    return (f"is off by up to {found.largest:.3g} steps, {found.mean:.3g} on average; {allowed.largest:.3g} and "
            f"{allowed.mean:.3g} are allowed")


def _unverified(compiled: Path, why: str) -> Verified:
    return Verified(findings=[Finding(code="compile.not-verified", severity=Severity.WARNING, where=str(compiled),
                                      headline=f"not verified after compilation: {why}")])
