"""`verify`: forms of one model on the same inputs, stage by stage and tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import ProgressCallback, Reporter, Silent
from vitrify.core.words import percent
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.remembered import as_remembered
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.steps import is_tflite, refuse_compiled, runs_on_npusim, step
from vitrify.results import VerifyResult

if TYPE_CHECKING:
    from vitrify.ir import Interface
    from vitrify.pipeline.compiling.verifying import Verified
    from vitrify.runtimes.litert.runtime import Kernels
    from vitrify.verify.compare import Verification

NPUSIM = "npusim"


def verify_files(models: Sequence[Path], data: DataOptions, conversion: ConvertOptions,
                 reporter: Reporter | None = None, *, operators: bool = False, on: str | None = None) -> VerifyResult:
    """Compare each model with the first on the same samples; ``operators``: the last one operator by operator too.

    A form that Vela compiled is run by the model of its NPU (``on``: ``npusim``), and is also compared with the integer
    form before it, bit for bit; for these two alone, random values do.

    Raises:
        VitrifyError: a model cannot be run, the models do not belong together, or there is no data.
    """
    from vitrify.pipeline.verifying.tensors import with_kernels
    from vitrify.verify.recorded import is_recorded

    meter, shown = Meter(), reporter or Silent()
    chosen = [with_kernels(model) for model in models]
    models, kernels = [model for model, _ in chosen], [named for _, named in chosen]
    if len(models) < 2:
        raise UsageError.of("call.models", f"{len(models)} model given, a comparison needs two or more",
                            help="vitrify verify model.onnx model_int8.tflite --data FOLDER")
    recorded = [model for model in models if is_recorded(model)]
    for model in models:
        if model not in recorded:
            existing(model)
    if on not in (None, NPUSIM):
        raise UsageError.of("verify.on", f"nothing here is called '{on}'", help=f"--on {NPUSIM}, or leave it out")
    compiled = [model for model in models if model not in recorded and runs_on_npusim(model)]
    if on is not None and not compiled:
        raise UsageError.of("verify.on", f"no form is compiled for an NPU that {NPUSIM} runs",
                            help="vitrify verify model_int8.tflite model_int8_vela.tflite")
    if len(models) - len(compiled) == 1 and compiled == list(models[1:]) and is_tflite(models[0]) and not data.given:
        return _exactly(models, shown, meter)
    if recorded:
        from vitrify.pipeline.verifying.recorded import verify_recorded

        return verify_recorded(models, kernels, data, conversion, shown, meter)
    data.require("comparison")
    with ExitStack() as stack:
        forms = [stack.enter_context(exchanged(model, conversion, shown)) for model in models]
        files = [file for file, _ in forms]
        names = distinct([f"{model.name}@{named}" if named else model.name
                          for model, named in zip(models, kernels, strict=True)])
        result = _verify(files, names, kernels, data, conversion, shown, meter, [f for _, told in forms for f in told])
        if operators:
            from vitrify.pipeline.quantizing.analysis import analyze_files

            prepared, _ = as_remembered(data, files, names)
            result.analysis = analyze_files(files[0], files[-1], prepared, conversion, shown, (names[0], names[-1]))
            result.seconds = meter.seconds
    return result


def _verify(models: Sequence[Path], names: Sequence[str], kernels: Sequence[Kernels | None], data: DataOptions,
            conversion: ConvertOptions, shown: Reporter, meter: Meter, told: Sequence[Finding]) -> VerifyResult:
    from vitrify.pipeline.verifying.tensors import SAMPLES, Form, locate_forms, tell

    for model in models:
        if not runs_on_npusim(model):
            refuse_compiled(model)
    with step(shown, "open") as note:
        interface = interface_of(models[0], conversion)
        plain = [(model, name) for model, name in zip(models, names, strict=True) if not runs_on_npusim(model)]
        data, as_stored = as_remembered(data, [model for model, _ in plain], [name for _, name in plain])
        note.text = f"{len(interface.inputs)} inputs, {len(interface.outputs)} outputs"
    with step(shown, "verify") as note:
        left: list[Finding] = []
        found = compare_files(models, interface, data, conversion, shown.advance, names=names, left=left,
                              kernels=kernels)
        note.text = summary(found)
    exact = _compiled_forms(models, shown)
    found.stages += [one.row for one in exact if one.row is not None]
    found.findings += [finding for one in exact for finding in one.findings]
    found.first_divergence = found.first_divergence or next(
        (one.first_divergence for one in exact if one.first_divergence), None)
    located, closer = locate_forms([Form(*one) for one in zip(names, models, kernels, strict=True)],
                                   data.open(interface, SAMPLES, purpose="comparison").walk(skipped=[]),
                                   conversion.sizes, conversion.values, shown)
    fault, faults = tell(located)
    found.findings += softened(faults) if data.random else faults
    found.first_divergence = fault or found.first_divergence
    return VerifyResult(
        ok=found.ok and all(f.severity is not Severity.ERROR for f in found.findings), stages=found.stages,
        tensors=[row for one in located for row in one.rows],
        findings=[*told, *closer, *as_stored, *data.findings(interface), *found.findings,
                  *(structs.replace(finding, severity=Severity.WARNING) for finding in left)],
        first_divergence=found.first_divergence, samples=found.samples, seconds=meter.seconds)


def _exactly(models: Sequence[Path], shown: Reporter, meter: Meter) -> VerifyResult:
    """Compare compiled files with the integer file that they were made of, on random values, bit for bit."""
    refuse_compiled(models[0])
    found = _compiled_forms(models, shown)
    rows = [one.row for one in found if one.row is not None]
    findings = [finding for one in found for finding in one.findings]
    return VerifyResult(
        ok=len(rows) == len(found) and all(f.severity is not Severity.ERROR for f in findings), stages=rows,
        findings=findings, first_divergence=next((one.first_divergence for one in found if one.first_divergence), None),
        samples=max((row.samples for row in rows), default=0), seconds=meter.seconds)


def _compiled_forms(models: Sequence[Path], shown: Reporter) -> list[Verified]:
    """Compare each compiled form with the nearest TFLite form before it, which it was made of."""
    from vitrify.pipeline.compiling.simulated import verify_simulated

    found: list[Verified] = []
    names = distinct([model.name for model in models])
    for number, model in enumerate(models):
        before = next((one for one in reversed(models[:number]) if is_tflite(one) and not runs_on_npusim(one)), None)
        if before is None or not runs_on_npusim(model):
            continue
        with step(shown, f"verify on {NPUSIM}") as note:
            found.append(verify_simulated(before, model, stage=f"{names[number]}, bit for bit"))
            note.text = found[-1].words
    return found


def interface_of(model: Path, conversion: ConvertOptions) -> Interface:
    """Return what a model takes and gives, as its runtime tells."""
    from vitrify import runtimes

    values = None if is_tflite(model) else conversion.values
    with runtimes.open(model, shapes=conversion.sizes, values=values) as runtime:
        return runtime.interface


def compare_files(models: Sequence[Path], interface: Interface, data: DataOptions,
                  conversion: ConvertOptions, progress: ProgressCallback, *, limit: int | None = None,
                  names: Sequence[str] = (), kernels: Sequence[str | None] = (),
                  tensors: bool = True, left: list[Finding] | None = None) -> Verification:
    """Run the models and compare each with the first.

    ``names`` is what the answer calls them, ``kernels`` with what each is run, by default as ``Stage`` says.
    Files that cannot be read go to ``left``.
    """
    from vitrify.verify.compare import Stage, compare

    samples = data.open(interface, limit, purpose="comparison")
    called = list(names) or distinct([model.name for model in models])
    stages = [Stage(name=name, path=path, kernels=chosen if is_tflite(path) else None)
              for name, path, chosen in zip(called, models, kernels or [None] * len(models), strict=True)]
    return compare(stages, samples.walk(skipped=[] if left is None else left), shapes=conversion.sizes,
                   values=conversion.values, progress=progress, tensors=tensors, total=len(samples))


def softened(findings: Iterable[Finding]) -> list[Finding]:
    """On random values a bad figure of an int8 model is a warning: nothing was promised."""
    return [f if f.severity is Severity.INFO else structs.replace(f, severity=Severity.WARNING) for f in findings]


def distinct(names: list[str]) -> list[str]:
    """Return the names, numbered where one comes twice."""
    return [name if names.count(name) == 1 else f"{name} ({names[:index].count(name) + 1})"
            for index, name in enumerate(names)]


def summary(found: Verification) -> str:
    """Say in a few words how the comparison ended."""
    parts = []
    for stage in found.stages:
        worst = stage.lowest()
        shares = [row.agreement for row in stage.outputs if row.agreement is not None and not row.equal]
        said = [*([str(worst)] if worst else []), *([f"{percent(min(shares))} agree"] if shares else [])]
        parts.append(f"{stage.name} {', '.join(said) or 'equal'}{'' if stage.ok else ', not good'}")
    return "; ".join(parts)
