"""`build`: the whole way from a trained model to a compiled and verified one, in a folder that remembers it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from vitrify.core.errors import VitrifyError
from vitrify.core.findings import Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.pipeline.building import units
from vitrify.pipeline.building.engine import Context, carry_out
from vitrify.pipeline.building.run import RECORD, Run, open_run
from vitrify.pipeline.building.sources import hash_data, hash_model
from vitrify.pipeline.building.verdict import is_good, sentence
from vitrify.pipeline.endings import RECIPE, refuse_ending
from vitrify.pipeline.files import destination, existing, refuse_overlap
from vitrify.pipeline.options import BuildOptions
from vitrify.pipeline.versions import versions
from vitrify.results import BuildResult, RunRecord

__all__ = ["BuildOptions", "build_run"]

ReportWriter = Callable[[RunRecord, Path, Path], None]
"""Writes the page: the record, the folder with the pictures, the file to write."""

REPORT = "report.html"


def build_run(options: BuildOptions, folder: Path | None, write_report: ReportWriter,
              reporter: Reporter | None = None) -> BuildResult:
    """Build ``options.model`` for ``options.target`` in ``folder`` (default: runs/NAME-TARGET).

    Stages whose inputs have not changed since the last build in the folder are reused. A stage that fails ends the
    build, but its record and a report of what there is are written.

    Raises:
        VitrifyError: the call, the model or the data does not do, or a stage failed.
    """
    from vitrify.targets import base as targets

    targets.load(options.target)
    existing(options.model)
    options.data.check()
    options.quantization.effective()
    place = folder if folder is not None else Path("runs") / f"{options.model.stem}-{options.target}"
    _refuse_overlap(options, place)
    plan = units.plan(options)
    with open_run(place) as run:
        _begin(run, options)
        context = Context(run, options, reporter or Silent())
        with _ending(context, write_report):
            carry_out(context, plan, after=("report",))
        run.forget_earlier()
    return _result(run)


def _refuse_overlap(options: BuildOptions, place: Path) -> None:
    """Refuse a build that would write over the model, the recipe or a sample.

    Raises:
        UsageError: it would.
    """
    quantization = options.quantization
    if quantization.save_recipe is not None:
        destination(options.model, quantization.save_recipe, ".toml")
    written = {name: place / name for name in (RECORD, REPORT, *units.files(options.model))}
    refuse_overlap({"--save-recipe": quantization.save_recipe, **written},
                   {"MODEL": options.model, "--recipe": quantization.recipe}, options.data.path)
    refuse_ending("--save-recipe", quantization.save_recipe, RECIPE)


def _begin(run: Run, options: BuildOptions) -> None:
    record = run.record
    record.name, record.target, record.model = options.model.stem, options.target, str(options.model)
    record.command = options.command or ["vitrify", "build", str(options.model), "--target", options.target]
    record.started = datetime.now(UTC).isoformat(timespec="seconds")
    record.versions = versions()
    record.input_hashes = {"model": hash_model(options.model)}
    if options.data.path is not None:
        record.input_hashes["data"] = hash_data(options.data.path)
    record.seeds = {"random": options.data.seed} if options.data.random else {}
    record.options = msgspec.to_builtins({"data": options.data, "conversion": options.conversion,
                                          "quantization": options.quantization}, enc_hook=str)


@contextmanager
def _ending(context: Context[BuildOptions], write_report: ReportWriter) -> Iterator[None]:
    """Write record and report however the block ends; what ended it is told, not what the writing met then."""
    record = context.run.record
    try:
        yield
        record.status = "done" if is_good(record) else "failed"
        record.verdict = sentence(record)
        _report(context, write_report)
    except VitrifyError:
        record.status = "failed"
        _write_what_there_is(context, write_report)
        raise
    except BaseException:
        record.status = "interrupted"
        _write_what_there_is(context, write_report)
        raise


def _report(context: Context[BuildOptions], write_report: ReportWriter) -> None:
    run = context.run
    with context.stage("report") as stage:
        run.record.seconds, run.record.peak_bytes = context.meter.seconds, context.meter.peak_bytes
        stage.text = REPORT
        stage.status = "done"
        write_report(run.record, run.folder, run.path(REPORT))
        run.keep("report", REPORT)


def _write_what_there_is(context: Context[BuildOptions], write_report: ReportWriter) -> None:
    run = context.run
    run.record.seconds, run.record.peak_bytes = context.meter.seconds, context.meter.peak_bytes
    try:
        run.save()
        run.record.verdict = sentence(run.record)
        run.save()
        write_report(run.record, run.folder, run.path(REPORT))
    except VitrifyError:
        pass          # no room or no right to write: the error on its way up is the one that matters


def _result(run: Run) -> BuildResult:
    record = run.record
    errors = [f for f in record.findings if f.severity is Severity.ERROR]
    return BuildResult(
        ok=record.status == "done" and not errors, run=str(run.folder), target=record.target, findings=record.findings,
        artifacts={name: str(run.path(artifact.file)) for name, artifact in record.artifacts.items()},
        coverage=record.coverage, estimate=record.estimate, stages=record.stages, seconds=record.seconds,
        peak_bytes=record.peak_bytes, verdict=record.verdict, command_line=shlex.join(record.command),
        quality=[row for row in (record.verify_float, record.verify_int8) if row is not None],
        reused=[stage.name for stage in record.stages if stage.status == "reused"])
