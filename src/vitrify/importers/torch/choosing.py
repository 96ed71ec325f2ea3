"""Which exporter's file is kept: the one that gives the cleaner graph, found without waiting longer than it is worth.

Tracing takes a second, torch.export five to ten and more. So a module is traced first, and exported the other way only
when that failed or left TRANSPOSEs, which the other way may not have. An exported program goes the other way round: it
keeps the names of its modules only when it is not traced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from vitrify.core.errors import UnsupportedError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import ProgressCallback
from vitrify.importers.torch.exporting import WORDS, Export

LEAST_DB = 60.0
"""Below this an exported model is not the module any more: two float computations agree to 90 dB and more."""
FIRST_SECONDS = 900.0
"""The largest models of the field export in a few minutes."""
_SECOND_SECONDS, _SECOND_TIMES = 120.0, 8.0
"""The other exporter may take this long, or so many times as long as the first, whichever is more."""

Attempt = Callable[[str, float], Export]
"""Exports by the exporter of that name within so many seconds; raises VitrifyError when it cannot."""


def best_export(
    label: str, order: Sequence[str], attempt: Attempt, progress: ProgressCallback | None = None
) -> tuple[Path, list[Finding]]:
    """Try the exporters in order until nothing can be gained; return the best file and what was seen.

    Raises:
        UnsupportedError: no exporter can write the model, or none writes it right; says what each met.
    """
    made: list[Export] = []
    problems: list[Finding] = []
    seconds = FIRST_SECONDS
    for number, exporter in enumerate(order):
        if any(map(_needs_no_other, made)):
            break
        begin = time.monotonic()
        try:
            made.append(attempt(exporter, seconds))
        except VitrifyError as error:
            problems += error.findings
        if made:
            spent = time.monotonic() - begin
            seconds = min(FIRST_SECONDS, max(_SECOND_SECONDS, _SECOND_TIMES * spent))
        if progress is not None:
            progress(number + 1, len(order))
    good = [export for export in made if export.decibels >= LEAST_DB]
    problems += [_wrong(label, export) for export in made if export not in good]
    if not good:
        raise UnsupportedError(problems)
    best = min(good, key=lambda export: (not export.is_supported, export.transposes, export.operators))
    return best.path, [_told(label, best, made, problems, len(order) > len(made) + len(problems))]


def _needs_no_other(export: Export) -> bool:
    return export.decibels >= LEAST_DB and export.is_supported and not export.transposes


def _told(label: str, best: Export, made: Sequence[Export], problems: Sequence[Finding], skipped: bool) -> Finding:
    seen = [_seen(export) for export in made]
    seen += [f"{finding.headline} ({finding.why})" if finding.why else finding.headline for finding in problems]
    seen += ["no TRANSPOSE is left that another way could save"] if skipped else []
    return Finding(
        code="torch.exported",
        severity=Severity.INFO,
        where=label,
        why="; ".join(seen),
        headline=f"{label} was exported {WORDS[best.exporter]}, {best.decibels:.0f} dB to PyTorch",
    )


def _seen(export: Export) -> str:
    if not export.is_supported:
        return f"{WORDS[export.exporter]}: something in it is not supported"
    return f"{WORDS[export.exporter]}: {export.operators} nodes, {export.transposes} of them TRANSPOSE"


def _wrong(label: str, export: Export) -> Finding:
    return Finding(
        code="torch.export-wrong",
        where=label,
        headline=f"{label} exported {WORDS[export.exporter]} gives other values than PyTorch: "
        f"{export.decibels:.0f} dB, {LEAST_DB:.0f} are needed",
        why="Python control flow that depends on values (a trace holds one way through it), random numbers, or "
        "an operator that the exporter writes wrong",
        help="choose with torch.where instead of if; call module.eval(), and leave random numbers out",
    )
