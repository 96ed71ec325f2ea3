"""`compile --search`: the model rewritten where that wins, and several settings of the compiler; the best is kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.errors import TargetError, UsageError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.pipeline.steps import step
from vitrify.results import TrialRow

if TYPE_CHECKING:
    from vitrify.backends.vela import Setting, Trial
    from vitrify.results.fixes import FixOutcome
    from vitrify.targets import Target

DEFAULT_SECONDS = 60.0
_FIXES_SHARE = 0.35
"""Of the time; the settings have the rest."""


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to search, about how long, and which rewrites that change values may be tried besides the exact ones."""

    wanted: bool = False
    seconds: float | None = None
    approximate: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what cannot be done, before any work.

        Raises:
            UsageError: there is no such rewrite, no such time, or nothing is searched.
        """
        from vitrify.passes.targets import find

        find(self.approximate)
        if self.approximate and not self.wanted:
            raise UsageError.of("search.unwanted", "--approximate names rewrites to search among, and --search is not "
                                "given", help="add --search; or rewrite the model by itself: vitrify check MODEL --fix")
        if self.seconds is None:
            return
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise UsageError.of("search.seconds", f"{self.seconds:g} seconds are no time to search for",
                                help="give a number of seconds, such as 60")
        if not self.wanted:
            raise UsageError.of("search.unwanted", f"{self.seconds:g} seconds to search were given, and --search "
                                "is not given", help="add --search (in Python search=True), or leave them out")

    @property
    def time(self) -> float:
        """About how many seconds to search."""
        return DEFAULT_SECONDS if self.seconds is None else self.seconds


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The best way there was: the file to compile, the setting, the rows of all that was tried, and the rewrites."""

    file: Path
    setting: Setting
    rows: list[TrialRow]
    fixes: FixOutcome | None
    findings: list[Finding]


def search(source: Path, chip: Target, options: SearchOptions, folder: Path, reporter: Reporter) -> Found:
    """Return the fastest of the settings tried on ``source`` and on its rewritten form, which goes to ``folder``.

    Raises:
        TargetError: the compiler gives nothing whatever it is told.
    """
    from vitrify.backends.vela import best, search_settings

    findings: list[Finding] = []
    fixed, outcome = _rewritten(source, chip, options, folder, reporter, findings)
    file = fixed or source
    trials: list[Trial] = []
    with step(reporter, "search") as note:
        def tell(trial: Trial) -> None:
            trials.append(trial)
            reporter.advance(len(trials), _EXPECTED)

        found = search_settings(file, chip, options.time * (1 - _FIXES_SHARE), tell)
        winner = best(found)
        if winner is None:
            raise TargetError([Finding(code="search.nothing", headline=f"the compiler gives nothing for {source.name}, "
                                       f"whatever it is told: {found[0].problem}", where=str(source))])
        first = found[0].latency_ms
        note.text = f"{len(found)} settings, {'' if first is None else f'{first:.4g} -> '}{winner.latency_ms:.4g} ms"
    rows = [_row(trial, fixed is not None, trial is winner) for trial in found]
    return Found(file=file, setting=winner.setting, rows=rows, fixes=outcome, findings=findings)


_EXPECTED = 16
"""Settings that a search tries when it has the time."""


def _rewritten(source: Path, chip: Target, options: SearchOptions, folder: Path, reporter: Reporter,
               findings: list[Finding]) -> tuple[Path | None, FixOutcome | None]:
    """Return the rewritten model's file, where rewriting wins anything, and what was done."""
    from vitrify import tflite
    from vitrify.pipeline.checking.fixes import fix_model

    with step(reporter, "rewrite") as note:
        model = tflite.read(source)
        try:
            outcome = fix_model(model, chip, names=options.approximate)
        except VitrifyError as error:
            findings.extend(msgspec.structs.replace(found, severity=Severity.WARNING) for found in error.findings)
            note.text = "not rewritten"
            return None, None
        if not outcome.changed:
            note.text = "nothing to rewrite"
            return None, outcome
        note.text = f"{len(outcome.rows)} rewrites"
        if outcome.ms_before is not None and outcome.ms_after is not None:
            note.text += f", {outcome.ms_before:.4g} -> {outcome.ms_after:.4g} ms"
        path = folder / "rewritten.tflite"
        tflite.write(model, path)
        return path, outcome


def _row(trial: Trial, fixed: bool, chosen: bool) -> TrialRow:
    return TrialRow(optimise=trial.setting.optimise, arena_bytes=trial.setting.arena_bytes, fixed=fixed,
                    latency_ms=trial.latency_ms, sram_bytes=trial.sram_bytes,
                    dram_traffic_bytes=trial.dram_traffic_bytes, problem=trial.problem, chosen=chosen)
