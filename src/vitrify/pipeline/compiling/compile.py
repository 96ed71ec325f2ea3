"""`compile`: an int8 TFLite file through the target's own compiler, after LiteRT has taken it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from vitrify.backends.base import CompilerOptions
from vitrify.core.errors import ModelError, TargetError, UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import shell
from vitrify.pipeline.compiling.avoiding import compile_avoiding
from vitrify.pipeline.compiling.search import SearchOptions, search
from vitrify.pipeline.compiling.verifying import VerifyOptions, verify_compiled
from vitrify.pipeline.endings import TFLITE, refuse_ending
from vitrify.pipeline.files import called, destination, existing, refuse_overlap, rename
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.quantizing.keeping import brings_scales, write_integers
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.rows import coverage_row, estimate_row, memory_row, placement_row
from vitrify.pipeline.steps import COMPILABLE, import_model, is_tflite, kind_of, prepare_file, refuse_compiled, step
from vitrify.results import CompileResult, PlacementRow

if TYPE_CHECKING:
    from vitrify.backends.base import Backend, Compiled
    from vitrify.ir import Model
    from vitrify.targets import Target

def compile_file(source: Path, target: str, output: Path | None, reporter: Reporter | None = None,
                 options: SearchOptions = SearchOptions(), compiler: CompilerOptions | None = None,
                 verify: VerifyOptions = VerifyOptions()) -> CompileResult:
    """Compile ``source`` for ``target`` and write ``output``, and compare the two where anything runs the result.

    Where the compiler is not installed, the answer is what the rules know, and not ok.

    Raises:
        VitrifyError: the file is not int8 TFLite, LiteRT or the compiler refuses it, or it cannot be written.
    """
    from vitrify.pipeline.measuring.correcting import load_target

    meter, shown = Meter(), reporter or Silent()
    chip = load_target(target)
    options.check()
    driver, how = driver_for(chip), compiler or CompilerOptions()
    written = destination(existing(source), output, driver.ending)
    refuse_overlap({"-o": written}, {"MODEL": source, "--recorded": verify.recorded})
    refuse_ending("-o", output, TFLITE)
    if brings_scales(source):
        return _with_own_scales(source, target, written, shown, meter, options, how, verify)
    require_integers(source, target)
    if options.wanted and driver.name != "vela":
        raise UsageError.of("search.compiler", f"--search tries settings of Vela, and {chip.name} has another compiler",
                            help="leave --search out; --neutron-option optimization-level=OOpt asks for the exact "
                                 "schedule")
    with step(shown, "prepare") as note:
        findings = prepare_file(source)
        note.text = "LiteRT takes the file"
    if not driver.installations(how):
        return _uncompiled(source, chip, driver.missing(source, chip, how), meter, findings)
    return _compiled(source, chip, driver, written, shown, meter, options, findings, how, verify)


def _compiled(source: Path, chip: Target, driver: Backend, written: Path, reporter: Reporter, meter: Meter,
              options: SearchOptions, findings: list[Finding], how: CompilerOptions,
              verify: VerifyOptions) -> CompileResult:
    with ExitStack() as stack:
        file, told = source, chip
        folder = Path(stack.enter_context(temporary_folder()))
        found = search(source, chip, options, folder, reporter) if options.wanted else None
        if found is not None:
            file, told = found.file, found.setting.of(chip)
        with called(file, source), step(reporter, "compile") as note:
            given = {} if found is None else {"optimise": found.setting.optimise}
            compiled, avoided = compile_avoiding(driver, file, told, written, structs.replace(
                how, options={**how.options, **given}), folder)
            note.text = str(compiled.placement)
        with called(file, source), step(reporter, "verify") as note:
            verified = verify_compiled(file, written, driver, told, how, verify)
            note.text = verified.words
    return CompileResult(
        output=str(written), target=chip.name, compiler=compiled.compiler, compiler_version=compiled.version,
        statistics=dict(compiled.statistics), verification=verified.row, first_divergence=verified.first_divergence,
        ok=verified.row is None or verified.row.ok, seconds=meter.seconds, peak_bytes=meter.peak_bytes,
        coverage=coverage_row(compiled.placement.coverage), placement=placed(compiled),
        estimate=estimate_row(compiled.estimate), memory=memory_row(compiled.memory),
        search=[] if found is None else found.rows, fixes=None if found is None else found.fixes,
        findings=[*findings, *([] if found is None else found.findings), *avoided, *compiled.findings,
                  *verified.findings])


def _with_own_scales(source: Path, target: str, written: Path, reporter: Reporter, meter: Meter,
                     options: SearchOptions, how: CompilerOptions, verify: VerifyOptions) -> CompileResult:
    """Compile a quantized model of another format by way of its TFLite form."""
    with temporary_folder() as folder:
        between = Path(folder) / f"{source.stem}_int8.tflite"
        _, findings = write_integers(source, between, ConvertOptions(), reporter)
        with called(between, source):
            found = compile_file(between, target, written, reporter, options, how, verify)
    found.findings = [*findings, *(rename(f, between, source) for f in found.findings)]
    found.seconds, found.peak_bytes = meter.seconds, meter.peak_bytes
    return found


def driver_for(chip: Target) -> Backend:
    """Return the driver of the target's compiler, installed or not.

    Raises:
        TargetError: the target has none.
    """
    from vitrify.backends.base import driver_of

    driver = driver_of(chip)
    if driver is None:
        raise TargetError.of("compile.no-compiler", f"nothing compiles models for {chip.name} beforehand",
                             where=chip.name, why=f"its '{chip.backend}' backend builds the graph when the model is "
                             "loaded on the board, or its compiler is not driven by Vitrify",
                             help=f"`vitrify check MODEL --target {chip.name}` says what the rules know")
    return driver


def _uncompiled(source: Path, chip: Target, missing: Finding, meter: Meter, findings: list[Finding]) -> CompileResult:
    """What is known without the compiler."""
    from vitrify import tflite
    from vitrify.targets.rules import place
    from vitrify.targets.rules.placing import estimated
    from vitrify.targets.telling import cpu_nodes

    graph = tflite.read(source).main
    placement = place(graph, chip)
    return CompileResult(
        ok=False, target=chip.name, seconds=meter.seconds, peak_bytes=meter.peak_bytes,
        coverage=coverage_row(placement.coverage), placement=placement_row(placement),
        estimate=estimate_row(estimated(graph, chip, placement)),
        findings=[structs.replace(missing, severity=Severity.ERROR), *findings, *cpu_nodes(placement)])


def placed(compiled: Compiled) -> PlacementRow:
    """Turn a compiler's answer into rows, with the cycles of each node where it tells them."""
    cycles = [row.cycles for row in compiled.operators]
    return placement_row(compiled.placement, None if all(one is None for one in cycles) else cycles)


def require_integers(source: Path, target: str, conversion: ConvertOptions = ConvertOptions()) -> None:
    """Refuse a file whose operators an int8 NPU cannot take.

    Raises:
        ModelError: it is not TFLite, or computes in float; says what to run first.
    """
    from vitrify import tflite

    refuse_compiled(source)
    if not is_tflite(source):
        model = import_model(source, conversion)          # refuses what is no model at all
        raise _refusal(source, model, target, f"{source} is not a TFLite file")
    model = tflite.read(source)
    kind = kind_of(model)
    if kind not in COMPILABLE:
        raise _refusal(source, model, target, f"{source} is {kind}: its operators compute in float")


def _refusal(source: Path, model: Model, target: str, headline: str) -> ModelError:
    """Say what to run first, and that something is lost where values are rounded to integers already."""
    from vitrify.quant.engine import refuse_quantized

    why = f"the NPU of {target} computes in integers only"
    help = f"vitrify quantize {shell(source)} --data FOLDER -o {shell(f'{source.stem}_int8.tflite')}"
    try:
        refuse_quantized(model.main)
    except ModelError:
        return ModelError.of("model.half-quantized", headline, where=str(source),
                             why=f"{why}, and some of the file's values are rounded to integers already: the float "
                             "model that it was made from would give a better one", help=help)
    return ModelError.of("model.float", headline, where=str(source), why=why, help=help)
