"""`bisect`: the pass, or the operators' quantization, that brings a model's error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vitrify.core.errors import UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import shared_child
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import counted
from vitrify.ir import Model
from vitrify.pipeline.bisecting.judging import Ruler, figure, told
from vitrify.pipeline.bisecting.operators import guilty_operators, open_toggles
from vitrify.pipeline.bisecting.passes import LEAST_FLOAT_DB, SOURCE_KERNELS, form_after, guilty_pass
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.keeping import refuse_integers
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.steps import step
from vitrify.results import BisectResult

LEAST_DB = 20.0
"""What 8 bits are to keep of the worst output where nothing else is asked for."""

ALL_PASSES = 1 << 30


def bisect_file(source: Path, data: DataOptions, quantization: QuantizeOptions = QuantizeOptions(),
                conversion: ConvertOptions = ConvertOptions(), reporter: Reporter | None = None, *,
                least_db: float = LEAST_DB, most_samples: int | None = None) -> BisectResult:
    """Say which pass, or which operators in 8 bits, take away what the outputs should keep.

    First the float form is compared with the source, and where it is off, the passes are run up to one until the guilty
    one is found. Then the model is quantized, and operators are left in float, until the fewest are found with which
    every output keeps ``least_db``.

    Args:
        source: a float model in any format.
        data: the samples, for calibration and for the comparison.
        quantization: the recipe.
        conversion: how it is imported.
        reporter: is told of the steps.
        least_db: what each output is to keep.
        most_samples: on how many samples forms are compared; None: few, by what one inference costs.

    Raises:
        UsageError: there is no data, or the model is quantized already.
        VitrifyError: the model cannot be read, run or quantized.
    """
    existing(source)
    data.require("calibration")
    if not 0 < least_db < LEAST_FLOAT_DB:
        raise UsageError.of("bisect.least_db", f"{least_db:g} dB are asked for", where="--least-db",
                            help=f"more than 0 and less than {LEAST_FLOAT_DB:g} dB: 8 bits keep 50 dB at most")
    refuse_integers(source)
    shown, meter = reporter or Silent(), Meter()
    with exchanged(source, conversion, shown) as (file, told_before), temporary_folder("bisect") as folder, \
            shared_child():
        result = _bisect(file, folder, data, quantization, conversion, shown, least_db, most_samples)
    result.model, result.findings = str(source), [*told_before, *result.findings]
    result.seconds = meter.seconds
    return result


def _bisect(source: Path, folder: Path, data: DataOptions, quantization: QuantizeOptions, conversion: ConvertOptions,
            shown: Reporter, least_db: float, most: int | None) -> BisectResult:
    from vitrify import tflite
    from vitrify.data.binding import identity_interface
    from vitrify.pipeline.quantizing.making import samples_judged

    result = BisectResult(least_db=least_db)
    with step(shown, "passes") as note:
        path, ledger = form_after(source, folder, conversion, ALL_PASSES)
        model = tflite.read(path)
        ruler = Ruler(model.interface or identity_interface(model), data, conversion,
                      most or samples_judged(model), shown)
        float_db = ruler.measure(source, path, SOURCE_KERNELS)
        result.float_db, result.output = figure(float_db), ruler.worst
        if float_db < LEAST_FLOAT_DB:
            result.culprits.append(guilty_pass(source, folder, conversion, ledger, float_db, ruler))
        note.text = f"{told(float_db)} behind {len(ledger.entries)} passes"
    _operators(result, model, path, folder, ruler, data, quantization, shown)
    result.samples, result.runs = ruler.samples, ruler.runs
    result.findings += _findings(result)
    return result


def _operators(result: BisectResult, model: Model, path: Path, folder: Path, ruler: Ruler, data: DataOptions,
               quantization: QuantizeOptions, shown: Reporter) -> None:
    with step(shown, "calibrate"):
        toggles = open_toggles(model, path, folder, data, quantization.effective(), ruler, shown)
    with step(shown, "operators") as note:
        whole = toggles.quantize((), "int8.tflite")
        whole_db = ruler.measure(path, whole)
        result.integer_db, result.output = figure(whole_db), ruler.worst or result.output
        note.text = f"{told(whole_db)} in 8 bits"
        if whole_db >= result.least_db:
            return
        rows, enough = guilty_operators(toggles, whole, whole_db, result.least_db, data, shown)
        result.culprits += rows
        note.text += f", {counted(len(rows), 'operator')} of {len(model.main)}"
        if not enough:
            result.findings.append(Finding(
                code="bisect.not-enough", severity=Severity.WARNING, where=result.output,
                headline=f"with all operators in float that can be, the worst output keeps less than "
                         f"{result.least_db:g} dB", why="the most costly operator is named alone",
                help="the types of the file's own inputs and outputs bring the rest: look at their ranges"))


def _findings(result: BisectResult) -> list[Finding]:
    if not result.culprits:
        kept = told(_or_equal(result.integer_db))
        return [Finding(code="bisect.nothing", severity=Severity.INFO, where=result.output,
                        help="--least-db asks for more",
                        headline=f"nothing is wrong: the worst output keeps {kept} in 8 bits, "
                                 f"{result.least_db:g} dB are asked for")]
    say: dict[str, Callable[[str, str], tuple[str, str]]] = {
        "operator": lambda name, words: (f"the quantization of '{name}' brings the error", words),
        "pass": lambda name, words: (f"the pass '{name}' brings an error", words),
        "import": lambda name, words: ("the import brings an error", words)}
    found = []
    for row in result.culprits:
        headline, why = say[row.kind](row.name, row.words)
        found.append(Finding(code=f"bisect.{row.kind}", severity=Severity.WARNING, where=row.source or row.name,
                             headline=headline, why=why, help=_HELP[row.kind]))
    return found


_HELP = {"operator": "keep it in float or 16 bits with an override of the recipe, or change its range in the model",
         "pass": "`vitrify reduce` makes the model small that shows it",
         "import": "`vitrify trace` says which tensor is the first that is off"}


def _or_equal(decibels: float | None) -> float:
    return float("inf") if decibels is None else decibels
