"""`vitrify compile`: an int8 TFLite file through the target's own compiler."""

from __future__ import annotations

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result


def compile(model: o.IntegerModelArgument, target: o.TargetOption, output: o.OutputOption = None,
            search: o.SearchOption = False, search_seconds: o.SearchSecondsOption = None,
            approximate: o.ApproximateOption = o.NONE, json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Compile an int8 TFLite file for a target.

    With --search the compiler is run with several settings, and the model rewritten where that is exact; the file is
    never slower, by the compiler's estimate, than without.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.pipeline.compiling.compile import compile_file
        from vitrify.pipeline.compiling.search import SearchOptions

        names = tuple(name for given in approximate for name in given.split(",") if name)
        wanted = SearchOptions(wanted=search, seconds=search_seconds, approximate=names)
        return compile_file(model, target, output, reporter, wanted)

    return run_command("compile", work, json=json, quiet=quiet)
