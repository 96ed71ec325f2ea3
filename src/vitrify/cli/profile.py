"""`vitrify profile`: where the time and the memory of a model go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vitrify.cli import options as o
from vitrify.cli.arguments import Option
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result

HostOption = Annotated[bool, Option("--host", help="Measure on this machine, in LiteRT (the default without a "
                                                   "target).")]
ChipOption = Annotated[str, Option("--target", metavar="NAME", help="Estimate for this chip, for example imx93.")]
CompareOption = Annotated[Path | None, Option(
    "--compare", metavar="B", help="What MODEL is compared with: another model, profiled the same way, or the JSON of "
                                   "an earlier profile.")]
FailOption = Annotated[list[str], Option(
    "--fail-if", metavar="EXPR", help="Exit with 1 when it holds: 'latency_ms>+5%' (against --compare), "
                                      "'npu_coverage<0.99'. Repeatable.")]
RunsOption = Annotated[int | None, Option("--runs", metavar="N", help="Runs that are timed (default: as many as the "
                                                                      "figures take to agree).")]
WarmupOption = Annotated[int, Option("--warmup", metavar="N", help="Runs before those, not timed.")]
ThreadsOption = Annotated[int, Option("--threads", metavar="N", help="Threads of LiteRT.")]
XnnpackOption = Annotated[bool, Option("--xnnpack", help="Run with XNNPACK, as LiteRT does (the default).")]
PlainOption = Annotated[bool, Option("--no-xnnpack", help="Run with LiteRT's own kernels: each node is timed by "
                                                          "itself.")]
Int8Option = Annotated[bool, Option("--int8", help="On this machine: measure the integer form of a float model too, "
                                                   "side by side.")]
ModesOption = Annotated[bool, Option("--memory-modes", help="Compile in each memory mode of the target, and compare.")]
CsvOption = Annotated[Path | None, Option("--csv", metavar="FILE", is_file=True,
                                          help="Write the operators as a table.")]
TraceOption = Annotated[Path | None, Option(
    "--trace", metavar="FILE", is_file=True, help="Write a trace that Perfetto and Chrome open.")]
ExplorerOption = Annotated[Path | None, Option(
    "--model-explorer", metavar="FILE", is_file=True,
    help="Write node data that Google's Model Explorer shows over the profiled file.")]
SaveOption = Annotated[Path | None, Option(
    "--save-model", metavar="FILE", is_file=True,
    help="Write the file that was profiled, to which the data of --model-explorer belong.")]
ReportOption = Annotated[Path | None, Option(
    "--report", metavar="FILE", is_file=True,
    help="Write a page with all of it: tables, graph, charts, in one file that needs no network.")]
OnOption = Annotated[str, Option(
    "--on", metavar="NAME", help="npusim: run a compiled file in the model of its NPU, and count the bytes that each "
                                 "node moves.")]
RandomOption = Annotated[bool, Option("--random-inputs", help="Run on random values (the default without --data).")]


def profile(model: o.ModelArgument, host: HostOption = False, target: ChipOption = "",
            compare: CompareOption = None, fail_if: FailOption = o.NONE, runs: RunsOption = None,
            warmup: WarmupOption = 5, threads: ThreadsOption = 1, xnnpack: XnnpackOption = False,
            no_xnnpack: PlainOption = False, int8: Int8Option = False, memory_modes: ModesOption = False,
            data: o.DataOption = None, samples: o.SamplesOption = None, random_inputs: RandomOption = False,
            shape: o.ShapeOption = o.NONE, dim: o.DimOption = o.NONE, value: o.ValueOption = o.NONE,
            trust: o.TrustOption = False, mean: o.MeanOption = None, std: o.StdOption = None, fit: o.FitOption = None,
            color: o.ColorOption = None, prepare: o.PrepareOption = o.NONE, seed: o.SeedOption = 0,
            csv: CsvOption = None, trace: TraceOption = None, model_explorer: ExplorerOption = None,
            save_model: SaveOption = None, report: ReportOption = None, on: OnOption = "",
            json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Say where the time and the memory of a model go, operator by operator.

    On this machine the operators are measured; for a chip they are estimated, by its compiler's cycles and by models of
    its cores. A float model is profiled in integers for a chip. A file that `compile` or `build` wrote for an Ethos-U
    says itself what its commands cost. Exits with 1 when a --fail-if holds.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.profiling.command import Asked, profile_file
        from vitrify.pipeline.profiling.profile import ProfileOptions
        from vitrify.report.page.html import profile_page

        given = o.data_options(data, samples, random_inputs, seed, fit, color, mean, std, prepare)
        asked = Asked(host=host, xnnpack=xnnpack, no_xnnpack=no_xnnpack, compare=compare, fail_if=tuple(fail_if),
                      exports={"csv": csv, "trace": trace, "model-explorer": model_explorer, "report": report},
                      page=profile_page)
        options = ProfileOptions(target=target, xnnpack=not no_xnnpack, threads=threads, runs=runs, warmup=warmup,
                                 modes=memory_modes, integers=int8, save=save_model, on=on)
        return profile_file(model, options, asked, given, o.conversion(shape, dim, value, trust), reporter)

    return run_command("profile", work, json=json, quiet=quiet)
