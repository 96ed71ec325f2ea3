"""One table of pretrained models: what is compared on real input before and after conversion, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import vitrify as vt
from vitrify.runtimes import open as open_model
from vitrify.runtimes.base import Runtime
from vitrify.verify.metrics import sqnr_db

Array = np.ndarray[Any, np.dtype[Any]]
Find = Callable[[str], Path]
Outputs = dict[str, Array]


@dataclass(frozen=True)
class Pair:
    """The source in its own runtime, and what it was converted to in LiteRT."""

    source: Runtime
    ours: Runtime
    source_file: Path
    our_file: Path

    def run(self, inputs: Mapping[str, Array]) -> tuple[Outputs, Outputs]:
        """Both on the same input, by the source's names."""
        return self.source.run(inputs), self.ours.run(inputs)

    def first(self, inputs: Mapping[str, Array]) -> tuple[Array, Array]:
        """The first output of both."""
        before, after = self.run(inputs)
        name = next(iter(before))
        return before[name], after[name]


Compare = Callable[[Find, Pair], str]


@dataclass(frozen=True)
class Row:
    """A model file, what is fixed in it, and a function that compares and says what came out.

    The outcome holds counts and decisions, not figures that differ by a rounding between machines; what is
    ``trained_here``, when it is fetched, has percentages of its own on each machine.
    """

    title: str
    file: str
    task: str
    compare: Compare
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, int | float | list[int | float]] = field(default_factory=dict)
    slow: bool = False
    source_kernels: str = "optimized"
    trained_here: bool = False

    def outcome(self, find: Find, folder: Path) -> str:
        """Convert the model, open both and compare."""
        source, target = find(self.file), folder / "converted.tflite"
        vt.convert(source, target, shapes=self.shapes, values=self.values)
        fixed: dict[str, Any] = {} if source.suffix == ".tflite" else {"shapes": self.shapes, "values": self.values}
        with (open_model(source, kernels=self.source_kernels, **fixed) as before,
              open_model(target, kernels="optimized") as after):
            return self.compare(find, Pair(before, after, source, target))


@dataclass(frozen=True)
class Refused:
    """A model file that cannot be converted, and the words that say why."""

    title: str
    file: str
    words: str
    task: str = "the refusal"
    slow: bool = False

    def outcome(self, find: Find, folder: Path) -> str:
        """Try to convert; the refusal's headline."""
        try:
            vt.convert(find(self.file), folder / "converted.tflite")
        except vt.VitrifyError as error:
            (finding,) = error.findings
            assert self.words in finding.headline
            assert finding.why
            assert finding.help
            return f"refused: {finding.headline}"
        raise AssertionError("it was converted")


Entry = Row | Refused
TABLE: dict[str, Entry] = {}


def row(name: str, title: str, file: str, task: str, *, slow: bool = False,
        shapes: dict[str, tuple[int, ...]] | None = None,
        values: dict[str, int | float | list[int | float]] | None = None,
        source_kernels: str = "optimized", trained_here: bool = False) -> Callable[[Compare], Compare]:
    """Enter the decorated comparison under ``name``."""
    def enter(compare: Compare) -> Compare:
        assert name not in TABLE
        TABLE[name] = Row(title, file, task, compare, shapes or {}, values or {}, slow, source_kernels, trained_here)
        return compare

    return enter


LEAST_DB = 90
"""The least signal to error of two outputs that differ by rounding only."""
TO_ROUNDING = f"outputs to {LEAST_DB} dB or more"


def close(before: Array, after: Array, least_db: float = LEAST_DB) -> None:
    """Demand that two outputs differ by rounding only."""
    assert before.shape == after.shape
    assert np.array_equal(before, after) or (sqnr_db(before, after) or 0.0) >= least_db
