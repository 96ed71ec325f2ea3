"""Which pass brings an error to the float form: the passes run up to one, and what comes out is compared."""

from __future__ import annotations

from pathlib import Path

from vitrify.ir import Ledger
from vitrify.ir.naming import make_names_unique
from vitrify.pipeline.bisecting.halving import first_bad
from vitrify.pipeline.bisecting.judging import Ruler, figure, told
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.steps import import_model
from vitrify.results import BisectRow

LEAST_FLOAT_DB = 60.0
"""What a float form keeps at least of its source where nothing is wrong; rounding leaves 90 dB and more."""

SOURCE_KERNELS = (None, "xnnpack")


def form_after(source: Path, folder: Path, conversion: ConvertOptions, most: int) -> tuple[Path, Ledger]:
    """Write the float form of ``source`` after the first ``most`` passes that change it."""
    from vitrify import tflite
    from vitrify.passes import optimize, to_integer_forms

    model = import_model(source, conversion)
    ledger = optimize(model, input_layout=conversion.input_layout, output_layout=conversion.output_layout, most=most)
    to_integer_forms(model, ledger, steps=True, most=most)
    for graph in model.graphs:
        make_names_unique(graph)
    path = folder / f"after_{most}.tflite"
    tflite.write(model, path)
    return path, ledger


def guilty_pass(source: Path, folder: Path, conversion: ConvertOptions, ledger: Ledger, whole_db: float,
                ruler: Ruler) -> BisectRow:
    """Find the pass after which the float form keeps less than ``LEAST_FLOAT_DB``, with the figures before and after.

    Args:
        source: the model, which its own runtime runs.
        folder: for the forms.
        conversion: how it is imported.
        ledger: what all passes did.
        whole_db: what the form after all of them keeps.
        ruler: measures.
    """
    seen: dict[int, float] = {len(ledger.entries): whole_db}

    def kept(most: int) -> float:
        if most not in seen:
            path, _ = form_after(source, folder, conversion, most)
            seen[most] = ruler.measure(source, path, SOURCE_KERNELS)
            path.unlink()
        return seen[most]

    if kept(0) < LEAST_FLOAT_DB:
        return BisectRow(kind="import", name="import", all_db=figure(whole_db), after_db=figure(kept(0)),
                         words=f"{told(kept(0))} before any pass has run: an operator is imported wrongly, or the "
                               "runtimes compute it differently")
    number = first_bad(len(ledger.entries), lambda most: kept(most) < LEAST_FLOAT_DB)
    entry = ledger.entries[number - 1]
    where = ", ".join(entry.examples)
    return BisectRow(kind="pass", name=entry.name, source=where, all_db=figure(whole_db),
                     before_db=figure(kept(number - 1)), after_db=figure(kept(number)),
                     words=f"{told(kept(number - 1))} before it, {told(kept(number))} behind it: pass {number} of "
                           f"{len(ledger.entries)}, {entry.summary[0].lower()}{entry.summary[1:].rstrip('.')}"
                           + (f", at {where}" if where else ""))

