"""Profiles one model: makes its forms, and measures or estimates."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from vitrify.core.files import atomic_writer, temporary_folder
from vitrify.core.findings import Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing, rename
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.base import Profiled, ProfileOptions
from vitrify.pipeline.profiling.forms import make_forms
from vitrify.pipeline.profiling.on_chip import on_chip
from vitrify.pipeline.profiling.on_commands import on_commands
from vitrify.pipeline.profiling.on_host import on_host
from vitrify.results import ProfileResult

__all__ = ["ProfileOptions", "Profiled", "profile_model"]


def profile_model(source: Path, options: ProfileOptions, data: DataOptions, conversion: ConvertOptions,
                  reporter: Reporter | None = None) -> Profiled:
    """Profile ``source``.

    Raises:
        VitrifyError: it is no model, or cannot be imported; what cannot be run is told in findings.
    """
    from vitrify.pipeline.measuring.correcting import load_target

    shown = reporter or Silent()
    options.check()
    chip = load_target(options.target) if options.target else None
    existing(source)
    data.check()
    compiled = on_commands(source, options, shown)
    if compiled is not None:
        _finish(compiled.result, source)
        return compiled
    with ExitStack() as stack:
        file, told = stack.enter_context(exchanged(source, conversion, shown))
        folder = Path(stack.enter_context(temporary_folder()))
        forms = make_forms(file, folder, data, conversion, shown, integers=chip is not None or options.integers)
        found = on_host(forms, options, data, shown) if chip is None else on_chip(forms, chip, options, shown)
        result = found.result
        result.findings = [*told, *forms.findings, *result.findings]
        for between in (forms.profiled.path, file):
            result.findings = [rename(finding, between, source) for finding in result.findings]
        if options.save is not None:
            _save(forms.profiled.path, options.save)
            result.exports["model"] = str(options.save)
        if forms.profiled.path == file:
            result.bytes = file.stat().st_size
    _finish(result, source)
    return found


def _finish(result: ProfileResult, source: Path) -> None:
    result.model = str(source)
    result.ok = all(finding.severity is not Severity.ERROR for finding in result.findings)


def _save(path: Path, target: Path) -> None:
    """Copy the profiled file, whole or not at all."""
    with path.open("rb") as source, atomic_writer(target) as out:
        shutil.copyfileobj(source, out)
