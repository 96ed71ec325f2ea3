"""`check`: where each node would run on a target, why, and what mends it.

A float model is judged as it is, and as it would be once it is quantized.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vitrify.core.errors import VitrifyError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.pipeline.checking.compiled import check_compiled
from vitrify.pipeline.checking.diagnosing import Case, diagnose, kinds
from vitrify.pipeline.checking.fixing import FixOptions, fix_ledger, fix_to
from vitrify.pipeline.checking.judging import Judged, compile_later, judge_file, judge_model
from vitrify.pipeline.checking.without_data import quantize_on_trial, refused_anew
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import called, existing, rename
from vitrify.pipeline.inspecting.quantization import contract_rows
from vitrify.pipeline.options import ConvertOptions, DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.keeping import UNUSED, brings_scales, write_integers
from vitrify.pipeline.quantizing.quantize import quantize_to
from vitrify.pipeline.rows import coverage_row, estimate_row, placement_row
from vitrify.pipeline.steps import COMPILABLE, import_model, is_tflite, kind_of, refuse_compiled, step
from vitrify.pipeline.verifying.verify import softened
from vitrify.results import CheckResult, DiagnosisRow, LedgerRow

if TYPE_CHECKING:
    from vitrify.ir import Ledger, Model
    from vitrify.targets import Target


def check_file(source: Path, target: str, data: DataOptions, conversion: ConvertOptions,
               reporter: Reporter | None = None, rules_only: bool = False,
               fix: FixOptions = FixOptions()) -> CheckResult:
    """Say for each node of ``source`` whether it runs on the NPU of ``target``.

    Args:
        source: a model of any format, float or quantized, or one that is compiled already.
        target: the chip.
        data: samples to quantize a float model with; without any, random values do, as placement does not depend on
            them.
        conversion: how the model is imported.
        reporter: is told of the steps.
        rules_only: neither LiteRT nor the target's compiler is asked about an integer file.
        fix: whether the fixes of the target are applied, and where the result is written.

    Raises:
        VitrifyError: the file is no model, or cannot be imported, or not be fixed.
    """
    from vitrify.pipeline.measuring.correcting import load_target

    shown = reporter or Silent()
    chip = load_target(target)
    existing(source)
    data.check()
    fix.check(source, data.path)
    with exchanged(source, conversion, shown) as (file, told):
        found = _check(_Call(file, source, chip, data, conversion, shown, rules_only, fix))
    found.findings = [*told, *(rename(finding, file, source) for finding in found.findings)]
    later = compile_later(_integer_file(found, source), chip) if found.form != "compiled" else None
    found.findings += [] if later is None else [later]
    return found


def _integer_file(result: CheckResult, source: Path) -> Path:
    """The file that a compiler takes: the source, or what quantizing or fixing it writes."""
    if result.output:
        return Path(result.output)
    as_it_is = result.form == "as it is" and source.suffix == ".tflite"
    return source if as_it_is else Path(f"{source.stem}_int8.tflite")


class _Call:
    """What a check was asked: the file to read, the file as the user names it, and how."""

    def __init__(self, file: Path, source: Path, chip: Target, data: DataOptions, conversion: ConvertOptions,
                 shown: Reporter, rules_only: bool, fix: FixOptions) -> None:
        self.file, self.source, self.chip, self.data = file, source, chip, data
        self.conversion, self.shown, self.rules_only, self.fix = conversion, shown, rules_only, fix
        self.made: Literal["", "quantized", "scales"] = ""

    def case(self, judged: Judged, kind: str) -> Case:
        """What diagnoses look at."""
        return Case(judged.model, judged.placement, self.chip, kind, self.source, is_tflite=is_tflite(self.file),
                    data=str(self.data.path or "FOLDER"), refusals=judged.refusals, made=self.made)


def _check(call: _Call) -> CheckResult:
    from vitrify import tflite

    if not is_tflite(call.file):
        return _own_scales(call) if brings_scales(call.file) else _float(call)
    compiled = check_compiled(call.file, call.chip)
    if compiled is not None:
        if call.fix.wanted:
            refuse_compiled(call.file)
        return compiled
    model = tflite.read(call.file)
    kind = kind_of(model)
    if kind not in COMPILABLE:
        return _float(call, model)
    if call.conversion.sizes or call.conversion.values:
        import_model(call.file, call.conversion)             # refuses what does not fit the file
    told = []
    if call.data.path is not None or call.data.random:
        call.data.require("calibration")
        told.append(Finding(code="check.unused", severity=Severity.INFO, where=str(call.file),
                            headline="the samples were not used: the model is quantized already"))
    return _integers(call, call.file, told, [], model)


def _integers(call: _Call, file: Path, told: list[Finding], ledger: list[LedgerRow],
              model: Model | None = None) -> CheckResult:
    """Judge an integer TFLite file, and what the fixes make of it where they are wanted."""
    if not call.fix.wanted:
        judged = judge_file(file, call.chip, call.shown, call.rules_only, model)
        kind = kind_of(judged.model)
        if kind == "mixed" and file == call.file and not call.rules_only:
            judged.refusals += refused_anew(file, call.conversion, call.shown)
        return _answer(judged, kind, diagnose(call.case(judged, kind)), told, ledger)
    from vitrify import tflite

    first = judge_model(tflite.read(file), call.chip)
    outcome, findings = fix_to(file, call.source, call.chip, call.fix, call.shown, call.rules_only)
    written = call.fix.target(call.source)
    judged = judge_file(written, call.chip, call.shown, call.rules_only)
    kind = kind_of(judged.model)
    fixed = replace(call.case(judged, kind), source=written, is_tflite=True, made="")
    result = _answer(judged, kind, diagnose(fixed), [*told, *findings], [*ledger, *fix_ledger(outcome)])
    result.form, result.fixes, result.output = "fixed", outcome, str(written)
    result.as_it_is = coverage_row(first.placement.coverage)
    return result


def _own_scales(call: _Call) -> CheckResult:
    """Judge a quantized model of another format by its TFLite form."""
    with temporary_folder() as folder:
        between = Path(folder) / f"{call.file.stem}_int8.tflite"
        ledger, findings = write_integers(call.file, between, call.conversion, call.shown)
        with called(between, call.file):
            call.made = "scales"
            found = _integers(call, between, [*findings, *([UNUSED] if call.data.given else [])], ledger)
    found.findings = [rename(finding, between, call.file) for finding in found.findings]
    return found


def _float(call: _Call, stored: Model | None = None) -> CheckResult:
    """Judge a float model as it is, and by its integer form; ``stored`` is the model of a TFLite file.

    Raises:
        UsageError: it is to be fixed, and there are no samples to quantize it with.
    """
    from vitrify.pipeline.convert import float_model

    if call.fix.wanted:
        call.data.require("calibration")
    model, ledger = float_model(call.file, call.conversion, call.shown)
    seen = stored or model
    with step(call.shown, "judge") as note:
        first = judge_model(seen, call.chip)
        note.text = f"as it is: {first.placement}"
    kind = kind_of(seen)
    with temporary_folder() as folder:
        between = Path(folder) / f"{call.file.stem}_int8.tflite"
        with called(between, call.file):
            try:
                rows, told, first.refusals = _integer_form(call, model, ledger, between)
            except VitrifyError as error:
                if call.data.given:
                    raise
                return _without_form(call, first, kind, error)
            diagnosed = [] if call.fix.wanted else diagnose(call.case(first, kind))
            call.made = "quantized"
            result = _integers(call, between, told, rows)
    call.made = ""
    result.findings = [rename(finding, between, call.file) for finding in result.findings]
    _join(result, diagnosed, stored is None)
    result.kind = kind
    result.form = ("quantized" if _has_data(call) else "quantized on random values") + \
        (" and fixed" if call.fix.wanted else "")
    result.as_it_is = coverage_row(first.placement.coverage)
    if stored is not None and not _has_data(call) and not call.fix.wanted:
        result.findings = [_as_it_stands(call, first, result), *result.findings]
        result.ok = False
    return result


def _without_form(call: _Call, first: Judged, kind: str, error: VitrifyError) -> CheckResult:
    """Judge a float model that cannot be quantized as it is, beside what keeps it from that."""
    first.refusals = list(error.findings)
    first.findings += error.findings
    return _answer(first, kind, diagnose(call.case(first, kind)), [], [])


def _join(result: CheckResult, diagnosed: list[DiagnosisRow], is_source: bool) -> None:
    """Put the diagnoses of the float file before those of its integer form, each kind once."""
    known = {row.code for row in diagnosed}
    later = [row for row in result.diagnoses if row.code not in known]
    result.diagnoses = [*diagnosed, *later]
    result.findings = [*(_finding(row, is_source, set()) for row in diagnosed),
                       *(f for f in result.findings if f.code not in known)]


def _has_data(call: _Call) -> bool:
    return call.data.given and not call.data.random


def _integer_form(call: _Call, model: Model, ledger: Ledger,
                  between: Path) -> tuple[list[LedgerRow], list[Finding], list[Finding]]:
    """Write the integer form of a float model: with the samples given, else on random values."""
    headline = "the model is float; the verdicts are those of its int8 form"
    if call.data.given:
        made = quantize_to(call.file, between, call.data, QuantizeOptions(), call.conversion, call.shown)
        judged = Finding(code="check.quantized", severity=Severity.INFO, where=str(call.file), headline=headline)
        return made.ledger, [judged, *made.findings, *softened(made.judged)], []
    rows, told, refused = quantize_on_trial(model, ledger, between, call.conversion, call.shown)
    judged = Finding(code="check.quantized", severity=Severity.INFO, where=str(call.file),
                     headline=f"{headline}, quantized on random values",
                     why="where a node runs depends on operators, types and shapes, not on the scales")
    return rows, [judged, *told], refused


def _as_it_stands(call: _Call, first: Judged, result: CheckResult) -> Finding:
    """Say first what runs of the file as it is, and which command makes the form that was judged."""
    total, on_npu = len(first.placement.verdicts), first.placement.count("npu")
    commands = [row.command for row in result.diagnoses if row.command]
    return Finding(code="model.float", where=str(call.source),
                   headline=f"{on_npu} of {total} operators of {call.source} run on the NPU of {call.chip.name} as it "
                            f"is: the file is {result.kind}", why="the NPU computes with integers only",
                   help=commands[0] if commands else call.case(first, result.kind).quantize)


def _answer(judged: Judged, kind: str, diagnoses: list[DiagnosisRow], told: list[Finding],
            ledger: list[LedgerRow]) -> CheckResult:
    """Put the answer together; what a diagnosis explains is not told again rule by rule."""
    from vitrify.targets.telling import cpu_nodes

    rows = placement_row(judged.placement, judged.cycles)
    explained = {code for row in diagnoses for code in row.rules}
    errors = {finding.code for finding in judged.refusals if finding.severity is Severity.ERROR}
    told += [f for f in (*judged.findings, *cpu_nodes(judged.placement)) if f.code not in explained]
    found = [*(_finding(row, False, errors) for row in diagnoses), *told]
    return CheckResult(
        ok=all(f.severity is not Severity.ERROR for f in found), target=judged.placement.target, kind=kind,
        judges=judged.judges, findings=found, coverage=coverage_row(judged.placement.coverage), diagnoses=diagnoses,
        verdicts=rows.verdicts, partitions=rows.partitions, ledger=ledger,
        estimate=estimate_row(judged.estimate) if judged.estimate is not None else None,
        contract=contract_rows(judged.model))


def _finding(row: DiagnosisRow, is_source: bool, errors: set[str]) -> Finding:
    """A source model computes in float by nature; a file that is to be deployed does not."""
    weight = Severity.INFO if row.time_ms is None or is_source else Severity.WARNING
    weight = Severity.ERROR if errors & set(row.rules) else weight
    return Finding(code=row.code, severity=weight, headline=row.headline,
                   where=row.where, why=row.why, help=row.command or _help(row.code))


def _help(code: str) -> str:
    """What helps in words; a command that could not be given for this file is not given for any."""
    found = next((kind.help for kind in kinds() if kind.code == code), "")
    return "" if found.startswith("vitrify ") else found
