"""Judges an integer TFLite file for a target: by the rules, and by what the target's own compiler does with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.core.errors import TargetError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.ir import Model
from vitrify.pipeline.steps import step

if TYPE_CHECKING:
    from vitrify.backends.base import Backend, Compiled
    from vitrify.targets import Estimate, Placement, Target

RULES = "rules"


@dataclass
class Judged:
    """Where the nodes of a model run. ``cycles`` and ``estimate`` are the compiler's; ``judges`` says who was asked.

    ``refusals`` are what LiteRT or the compiler would not take.
    """

    model: Model
    placement: Placement
    judges: list[str] = field(default_factory=lambda: [RULES])
    findings: list[Finding] = field(default_factory=list)
    refusals: list[Finding] = field(default_factory=list)
    estimate: Estimate | None = None
    cycles: list[int | None] | None = None


def judge_model(model: Model, target: Target) -> Judged:
    """Judge a model as it is, by the rules alone."""
    from vitrify.targets.rules import cautions, estimated, place

    placement = place(model.main, target)
    return Judged(model, placement, findings=cautions(model.main, target),
                  estimate=estimated(model.main, target, placement))


def judge_file(path: Path, target: Target, reporter: Reporter, rules_only: bool, model: Model | None = None) -> Judged:
    """Judge an integer TFLite file; LiteRT and the compiler, where it is installed, are asked unless ``rules_only``.

    What they refuse is told, and the rules' verdicts stand. ``model`` is what the file holds, where it is read already.

    Raises:
        VitrifyError: the file is no model.
    """
    from vitrify import tflite

    with step(reporter, "judge") as note:
        judged = judge_model(model or tflite.read(path), target)
        note.text = str(judged.placement)
    if rules_only:
        return judged
    with step(reporter, "prepare") as note:
        taken = _prepare(path, judged)
        note.text = "LiteRT takes the file" if taken else "LiteRT refuses the file"
    driver = compiler_of(target)
    if taken and driver is not None:
        with step(reporter, "place") as note:
            note.text = _compile(path, target, driver, judged)
    return judged


def has_compiler(target: Target) -> bool:
    """True when the compiler that serves the target's NPU is installed."""
    return compiler_of(target) is not None


def compiler_of(target: Target) -> Backend | None:
    """Return the driver of the target's compiler, None where that is not installed."""
    from vitrify.backends.base import driver_of

    driver = driver_of(target)
    return driver if driver is not None and driver.installations() else None


def _prepare(path: Path, judged: Judged) -> bool:
    """Let LiteRT run the file once: a compiler takes files that the runtime refuses or dies of."""
    from vitrify.runtimes.prepare import prepare

    try:
        told = prepare(path)
    except VitrifyError as error:
        told = list(error.findings)
    judged.findings += told
    judged.refusals += [finding for finding in told if finding.severity is Severity.ERROR]
    judged.judges.append("LiteRT, which refuses the file" if judged.refusals else "LiteRT")
    return not judged.refusals


def _compile(path: Path, target: Target, driver: Backend, judged: Judged) -> str:
    """Put the compiler's result in the place of the rules'; returns what came of it in words."""
    try:
        answer = driver.check(path, target)
    except TargetError as error:
        judged.findings += error.findings
        judged.refusals += error.findings
        return "the compiler refuses the file"
    _take(judged, answer)
    return str(judged.placement)


def _own_estimate(judged: Judged, answer: Compiled) -> Estimate | None:
    """What the target's facts say where the compiler says nothing of time."""
    from vitrify.pipeline.measuring.correcting import load_target
    from vitrify.targets.rules import estimated

    return estimated(judged.model.main, load_target(answer.target), answer.placement)


def compile_later(path: Path, target: Target) -> Finding | None:
    """Say how a file is compiled where that is not possible here; None where the compiler is installed."""
    from vitrify.backends.base import driver_of

    driver = driver_of(target)
    headline = f"verdict by rules; compile not possible here for {target.name}"
    if driver is None:
        return Finding(code="check.not-compiled", severity=Severity.INFO, where=str(path), headline=headline,
                       why=target.where_compiled)
    if driver.installations():
        return None
    told = driver.missing(path, target)
    return Finding(code="check.not-compiled", severity=Severity.INFO, where=str(path), headline=headline,
                   why=told.headline, help=told.help)


def _take(judged: Judged, answer: Compiled) -> None:
    """The nodes that stay on the CPU are told once, by whom they concern."""
    from vitrify.targets.telling import cpu_nodes

    judged.placement = answer.placement
    retold = {finding.code for finding in cpu_nodes(answer.placement)}
    judged.findings += [f for f in answer.findings if f.code not in retold]
    judged.estimate = answer.estimate or _own_estimate(judged, answer)
    judged.cycles = [row.cycles for row in answer.operators]
    judged.judges.append(answer.maker)
