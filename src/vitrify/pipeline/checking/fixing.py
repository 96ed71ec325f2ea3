"""`check --fix`: the fixes of a target applied to an integer file, proved, and the file that comes of it written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.errors import UsageError
from vitrify.core.progress import Reporter
from vitrify.pipeline.checking.judging import has_compiler
from vitrify.pipeline.convert import write_checked
from vitrify.pipeline.endings import TFLITE, refuse_ending
from vitrify.pipeline.files import destination, refuse_overlap
from vitrify.pipeline.steps import step
from vitrify.results import LedgerRow

if TYPE_CHECKING:
    from vitrify.core.findings import Finding
    from vitrify.results.fixes import FixOutcome
    from vitrify.targets import Target


class FixOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whether and how a model is fixed. ``only``: these fixes and no others; ``approximate``: these besides the exact
    ones. ``output`` is the file to write."""

    wanted: bool = False
    output: Path | None = None
    only: tuple[str, ...] = ()
    approximate: tuple[str, ...] = ()
    seed: int = 0

    def check(self, source: Path, data: Path | None) -> None:
        """Refuse what cannot be done, before any work.

        Raises:
            UsageError: there is no such fix, nothing is to be fixed, or the file cannot be written.
        """
        if not self.wanted:
            given = {"--fix-only": self.only, "--approximate": self.approximate, "-o": self.output}
            told = [option for option, value in given.items() if value]
            if told:
                raise UsageError.of("fix.unwanted", f"{' and '.join(told)} {'belongs' if len(told) == 1 else 'belong'} "
                                    "to --fix, which is not given", help="add --fix; without it a check writes nothing")
            return
        from vitrify.passes.targets import find

        find((*self.only, *self.approximate))
        refuse_overlap({"-o": self.target(source)}, {"MODEL": source}, data)
        refuse_ending("-o", self.output, TFLITE)

    def target(self, source: Path) -> Path:
        """The file to write."""
        return destination(source, self.output, "_fixed.tflite")


def fix_to(file: Path, source: Path, chip: Target, options: FixOptions, reporter: Reporter,
           rules_only: bool) -> tuple[FixOutcome, list[Finding]]:
    """Fix the integer model ``file``, which the user knows as ``source``, and write it.

    Raises:
        VitrifyError: LiteRT refuses the result, or it cannot be written.
    """
    from vitrify import tflite
    from vitrify.pipeline.checking.fixes import fix_model

    model = tflite.read(file)
    with step(reporter, "fix") as note:
        outcome = fix_model(model, chip, names=options.approximate, only=options.only or None, seed=options.seed,
                            compiler=not rules_only and has_compiler(chip))
        note.text = f"{outcome.cpu_before} nodes on the CPU before, {outcome.cpu_after} after"
    return outcome, write_checked(model, options.target(source), reporter)


def fix_ledger(outcome: FixOutcome) -> list[LedgerRow]:
    """The same as lines of the ledger that all commands share."""
    return [LedgerRow(name=row.name, summary=row.says, changes=row.places, exactness=row.exactness,
                      largest_error=None if row.largest_error_lsb is None else float(row.largest_error_lsb),
                      examples=row.examples, note="; ".join(row.undone)) for row in outcome.rows]
