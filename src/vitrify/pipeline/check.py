"""`check`: where each node would run on a target, and why. A float model is judged by its int8 form."""

from __future__ import annotations

from pathlib import Path

from vitrify.core.errors import ModelError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.pipeline.compile import placed, require_integers
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import called, existing, rename
from vitrify.pipeline.keeping import UNUSED, brings_scales, write_integers
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantize import quantize_to
from vitrify.pipeline.rows import coverage_row, estimate_row
from vitrify.pipeline.steps import import_model, prepare_file, step
from vitrify.pipeline.verify import softened
from vitrify.results import CheckResult, LedgerRow


def check_file(source: Path, target: str, data: DataOptions, conversion: ConvertOptions,
               reporter: Reporter | None = None) -> CheckResult:
    """Say for each node of ``source`` whether it runs on the NPU of ``target``.

    Raises:
        ModelError: the model is float and there is no data to quantize it with.
        VitrifyError: the file is no model, or LiteRT or the compiler refuses it.
    """
    from vitrify import targets

    shown = reporter or Silent()
    targets.load(target)
    existing(source)
    data.check()
    with exchanged(source, conversion, shown) as (file, told):
        found = _check(file, target, data, conversion, shown)
    found.findings = [*told, *(rename(finding, file, source) for finding in found.findings)]
    return found


def _check(source: Path, target: str, data: DataOptions, conversion: ConvertOptions, shown: Reporter) -> CheckResult:
    told: list[Finding] = []
    if brings_scales(source):
        return _with_own_scales(source, target, data, conversion, shown)
    try:
        require_integers(source, target, conversion)
    except ModelError as error:
        if any(finding.code != "model.float" for finding in error.findings):
            raise
        if not data.given:
            raise ModelError(_with_data(error.findings[0], source, target)) from error
        with temporary_folder() as folder:
            between = Path(folder) / f"{source.stem}_int8.tflite"
            with called(between, source):
                made = quantize_to(source, between, data, QuantizeOptions(), conversion, shown)
            judged = Finding(code="check.quantized", severity=Severity.INFO, where=str(source),
                             headline="the model is float; the verdicts are those of its int8 form")
            with called(between, source):
                found = _judge(between, target, shown, made.ledger, [judged, *made.findings, *softened(made.judged)])
            found.findings = [rename(finding, between, source) for finding in found.findings]
            return found
    if conversion.sizes or conversion.values:
        import_model(source, conversion)             # refuses what does not fit the file
    if data.path is not None or data.random:
        data.require("calibration")
        told.append(Finding(code="check.unused", severity=Severity.INFO, where=str(source),
                            headline="the samples were not used: the model is quantized already"))
    with step(shown, "prepare") as note:
        findings = [*told, *prepare_file(source)]
        note.text = "LiteRT takes the file"
    return _judge(source, target, shown, [], findings)


def _with_own_scales(source: Path, target: str, data: DataOptions, conversion: ConvertOptions,
                     reporter: Reporter) -> CheckResult:
    """Judge a quantized model of another format by its TFLite form."""
    with temporary_folder() as folder:
        between = Path(folder) / f"{source.stem}_int8.tflite"
        ledger, findings = write_integers(source, between, conversion, reporter)
        with called(between, source):
            found = _judge(between, target, reporter, ledger, [*findings, *([UNUSED] if data.given else [])])
    found.findings = [rename(finding, between, source) for finding in found.findings]
    return found


def _with_data(finding: Finding, source: Path, target: str) -> Finding:
    return Finding(code=finding.code, headline=finding.headline, where=finding.where, why=finding.why,
                   help=f"vitrify check {source} --target {target} --data FOLDER (quantizes it on the way)")


def _judge(source: Path, target: str, reporter: Reporter, ledger: list[LedgerRow],
           findings: list[Finding]) -> CheckResult:
    from vitrify.backends.vela import check_model

    with step(reporter, "place") as note:
        answer = check_model(source, target)
        note.text = str(answer.placement)
    rows = placed(answer)
    found = [*findings, *answer.findings]
    return CheckResult(
        ok=all(f.severity is not Severity.ERROR for f in found), target=target, findings=found,
        coverage=coverage_row(answer.placement.coverage), verdicts=rows.verdicts, partitions=rows.partitions,
        ledger=ledger, estimate=estimate_row(answer.estimate))
