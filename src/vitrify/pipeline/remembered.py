"""How files become inputs: what a model remembers of its calibration, so that nobody has to say it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.core.findings import Finding, Severity
from vitrify.pipeline.options import DataOptions
from vitrify.pipeline.steps import is_tflite, runs_on_npusim

if TYPE_CHECKING:
    from vitrify.data.preprocess import Preprocess


def remembered_in(path: Path) -> Preprocess | None:
    """What a file says of how pictures or recordings become its input, None where it says nothing."""
    from vitrify import tflite
    from vitrify.data.preprocess import remembered
    from vitrify.ir import Model
    from vitrify.tflite.streams import metadata_in

    if not is_tflite(path):
        return None
    if runs_on_npusim(path):           # what Vela makes is no graph in every case
        return remembered(Model(metadata=dict(metadata_in(path))))
    return remembered(tflite.read(path))


def as_remembered(data: DataOptions, models: Sequence[Path],
                  names: Sequence[str]) -> tuple[DataOptions, list[Finding]]:
    """Let files become inputs as the first model says that remembers it, unless the call says how; and tell so."""
    if data.random or data.path is None:
        return data, []
    for path, name in zip(models, names, strict=True):
        how = remembered_in(path)
        if how is None:
            continue
        if not data.told:
            changed = words(how)
            told = [Finding(code="data.remembered", severity=Severity.INFO, where=name,
                            headline=f"files become inputs as in calibration: {changed}")] if changed else []
            return data.prepared_as(how), told
        if data.how() != how:
            return data, [Finding(
                code="data.prepared", severity=Severity.WARNING, where=name,
                headline=f"the model was calibrated with {words(how) or 'the defaults'}, this run has "
                         f"{words(data.how()) or 'the defaults'}",
                why="its ranges fit the values that it was calibrated with",
                help="leave the options out: what the model remembers is taken then")]
    return data, []


def words(how: Preprocess) -> str:
    """What differs from the defaults."""
    from msgspec import to_builtins

    from vitrify.data.preprocess import Preprocess

    plain, usual = to_builtins(how), to_builtins(Preprocess())
    parts = [f"{key} {_word(value)}" for key, value in plain.items() if value != usual[key]]
    return ", ".join(parts)


def _word(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(f"{item:.6g}" for item in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()
