"""`vitrify compile`: an int8 TFLite file through the target's own compiler."""

from __future__ import annotations

from vitrify.cli import options as o
from vitrify.cli.running import run_command
from vitrify.core.progress import Reporter
from vitrify.results import Result


def compile(model: o.IntegerModelArgument, target: o.TargetOption, output: o.OutputOption = None,
            search: o.SearchOption = False, search_seconds: o.SearchSecondsOption = None,
            approximate: o.ApproximateOption = o.NONE, neutron_sdk: o.NeutronSdkOption = "",
            neutron_option: o.NeutronOption = o.NONE, recorded: o.RecordedOption = None,
            tolerance_lsb: o.ToleranceOption = None, ignore_ops: o.IgnoreOpsOption = "",
            as_it_is: o.AsItIsOption = False, json: o.JsonOption = False, quiet: o.QuietOption = False) -> int:
    """Compile an int8 TFLite file for a target.

    With --search the compiler is run with several settings, and the model rewritten where that is exact; the file is
    never slower, by the compiler's estimate, than without. For NPUs with a closed compiler the result is compared with
    the model wherever anything can run it.
    """

    def work(reporter: Reporter) -> Result:
        from vitrify.backends.base import CompilerOptions
        from vitrify.pipeline.compiling.compile import compile_file
        from vitrify.pipeline.compiling.search import SearchOptions
        from vitrify.pipeline.compiling.verifying import VerifyOptions
        from vitrify.pipeline.options import plain_options

        names = tuple(name for given in approximate for name in given.split(",") if name)
        wanted = SearchOptions(wanted=search, seconds=search_seconds, approximate=names)
        compiler = CompilerOptions(where=neutron_sdk, options=plain_options(neutron_option) | (
            {"ignore-ops": ignore_ops} if ignore_ops else {}), as_it_is=as_it_is)
        verify = VerifyOptions(recorded=recorded, steps=tolerance_lsb)
        return compile_file(model, target, output, reporter, wanted, compiler, verify)

    return run_command("compile", work, json=json, quiet=quiet)
