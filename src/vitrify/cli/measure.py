"""`vitrify measure`: what a model took on a board corrects later estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

LogOption = Annotated[Path | None, Option(
    "--log", metavar="FILE", help="What benchmark_model printed on the board, or the CSV of its operators; with "
                                  "--enable_op_profiling=true each kind of operator is corrected by itself.")]
MsOption = Annotated[float | None, Option(
    "--ms", metavar="N", help="The latency of one inference in milliseconds, typed in; it goes before the log's.")]
CpuOption = Annotated[bool, Option(
    "--cpu", help="The cores alone ran it, not the NPU; a log of operators says so by itself.")]
ThreadsOption = Annotated[int | None, Option(
    "--threads", metavar="N", min=1, help="Cores that ran (default: as the log says, else 1).")]


def measure(model: o.IntegerModelArgument, target: o.TargetOption, log: LogOption = None, ms: MsOption = None,
            cpu: CpuOption = False, threads: ThreadsOption = None, json: o.JsonOption = False,
            quiet: o.QuietOption = False) -> int:
    """Take in what a model took on a board, so that later estimates are corrected.

    Measurements are kept in vitrify-measurements.json in the working folder (VITRIFY_MEASUREMENTS names another file).
    build, check, compile, profile and sweep use them there, for their target and by kind of operator. The error
    before and after is shown.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.measuring.measure import measure as take_in

        return take_in(model, target, log, ms, "cpu" if cpu else "", threads, reporter)

    return run_command("measure", work, json=json, quiet=quiet)
