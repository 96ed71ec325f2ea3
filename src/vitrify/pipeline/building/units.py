"""The units of a build in order: what each reads (its key), does, and leaves behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.pipeline.building.engine import Context, Unit
from vitrify.pipeline.building.sources import external_files
from vitrify.pipeline.compiling.compile import placed
from vitrify.pipeline.describing import describe
from vitrify.pipeline.exchange import exchange_to, needs_exchange
from vitrify.pipeline.files import rename, staged
from vitrify.pipeline.inspecting.interface import binding_rows
from vitrify.pipeline.options import BuildOptions
from vitrify.pipeline.quantizing.answers import answers_agree
from vitrify.pipeline.quantizing.forecasting import beforehand
from vitrify.pipeline.quantizing.keeping import brings_scales, refuse_float
from vitrify.pipeline.quantizing.search import How, quantize_well
from vitrify.pipeline.rows import coverage_row, estimate_row, ledger_rows, memory_row, model_facts, placement_row
from vitrify.pipeline.steps import (
    INTEGER_KINDS,
    calibrate_model,
    has_equal_runs,
    import_findings,
    import_model,
    is_tflite,
    kind_of,
    optimize_model,
    prepare_file,
    refuse_compiled,
)
from vitrify.pipeline.verifying.verify import compare_files, softened, summary
from vitrify.results import ComparisonRow, ModelFacts, PictureRow, ProfileResult, ScoreRow

if TYPE_CHECKING:
    from vitrify.backends.base import Compiled
    from vitrify.ir import Interface
    from vitrify.targets import Target
    from vitrify.tasks.illustration import Illustration

Build = Context[BuildOptions]

FLOAT_SAMPLES, INT8_SAMPLES = 2, 8
"""Most samples that are compared: float forms differ by roundings alike on all; int8 needs a few."""
LOOKED_AT, PICTURES = 8, 3
"""Samples looked at for the page, and the most of them that are shown: those with most found in them."""
CHECKPOINT, SEARCH = ".calibration.npz", ".search"
EXPORTED = "exported"
"""The artifact that a training framework's exporter made of its model."""
PROFILED = 1
"""Another number when profiles hold more than those of earlier builds, which are then made again."""
HEAVY_MACS = 400_000_000
"""Above this LiteRT's reference kernels take a second or more for a sample, so its quick ones stand in for them."""


def plan(options: BuildOptions) -> list[Unit[BuildOptions]]:
    """Return the units for a model: all of them, or those after quantization for an integer file.

    Raises:
        DataError: the model needs calibration and there is no data.
    """
    compiling = _compiling(options)
    calibrated = [CONVERT, PREPARE_FLOAT, VERIFY_FLOAT, CALIBRATE, QUANTIZE, PREPARE_INT8, VERIFY_INT8,
                  *compiling, ILLUSTRATE, *([ANALYZE] if options.quantization.analyze else [])]
    if needs_exchange(options.model):
        options.data.require("calibration")
        return [EXPORT, *calibrated]
    refuse_compiled(options.model)
    if _is_integer(options.model):
        return [TAKE, PREPARE_INT8, *compiling]
    if brings_scales(options.model):
        compared = [VERIFY_KEPT] if options.data.given else []
        return [KEEP, PREPARE_INT8, *compared, *compiling]
    options.data.require("calibration")
    return calibrated if has_equal_runs(options.model) else [unit for unit in calibrated if unit is not VERIFY_FLOAT]


def _source(build: Build) -> Path:
    """The file that is read in the place of the model: what its framework wrote, else the model itself."""
    exported = build.run.record.artifacts.get(EXPORTED)
    return build.run.path(exported.file) if exported is not None else build.options.model


def _export(build: Build) -> None:
    run, options = build.run, build.options
    with build.stage("export") as stage, temporary_folder() as folder:
        path, findings = exchange_to(options.model, folder, options.conversion, build.reporter.advance)
        file = f"{run.record.name}{path.suffix}"
        for weights in external_files(path):      # of models above 2 GB, named in the file by these names
            with staged(run.path(weights.name)) as aside:
                shutil.copyfile(weights, aside)
        with staged(run.path(file)) as aside:
            shutil.copyfile(path, aside)
        run.keep(EXPORTED, file)
        stage.findings = [rename(finding, path, options.model) for finding in findings]
        stage.text = f"{file}, {path.stat().st_size / 1e6:.2f} MB"


def files(model: Path) -> tuple[str, ...]:
    """Return the names of the artifacts that a build of a model leaves."""
    name = model.stem
    exported = (f"{name}.onnx", f"{name}.tflite") if needs_exchange(model) else ()
    return (*exported, f"{name}_float.tflite", f"{name}_int8.tflite", f"{name}_vela.tflite", f"{name}_neutron.tflite",
            f"{name}_neutron_guilty.tflite", f"{name}_neutron_guilty.npz", "statistics.npz", "recipe.toml")


def _is_integer(path: Path) -> bool:
    from vitrify import tflite

    return is_tflite(path) and kind_of(tflite.read(path)) in INTEGER_KINDS


def _hash(build: Build, artifact: str) -> str:
    return build.run.record.artifacts[artifact].hash


def _facts(path: Path) -> ModelFacts:
    from vitrify import tflite

    return model_facts(tflite.read(path), path.name, path.stat().st_size)


def _interface(build: Build) -> Interface:
    from vitrify import tflite
    from vitrify.data.binding import identity_interface

    model = tflite.read(build.run.artifact("float"))
    return model.interface or identity_interface(model)


def _data_key(build: Build) -> object:
    options = build.options.data
    return [build.run.record.input_hashes.get("data", ""), msgspec.to_builtins(options, enc_hook=str)]


def _convert(build: Build) -> None:
    from vitrify import tflite
    from vitrify.passes import to_integer_forms

    run, options = build.run, build.options
    with build.stage("import") as stage:
        model = import_model(_source(build), options.conversion)
        stage.findings = import_findings(model)
        stage.text = f"{sum(map(len, model.graphs))} nodes from {options.model.name}"
    with build.stage("optimize") as stage:
        known = len(import_findings(model))
        ledger = to_integer_forms(model, optimize_model(model, options.conversion),
                                  steps=options.quantization.effective().in_steps)
        describe(model, options.conversion.task)
        stage.findings = import_findings(model)[known:]
        run.record.ledger = ledger_rows(ledger)
        stage.text = f"{sum(map(len, model.graphs))} nodes"
    with build.stage("write float") as stage:
        file = f"{run.record.name}_float.tflite"
        tflite.write(model, run.path(file))
        run.record.float_model = _facts(run.keep("float", file))
        facts = run.record.float_model
        stage.text = f"{facts.bytes / 1e6:.2f} MB, {facts.transposes} transposes"


def _take(build: Build) -> None:
    run = build.run
    with build.stage("import") as stage:
        file = f"{run.record.name}_int8.tflite"
        with staged(run.path(file)) as aside:
            aside.write_bytes(build.options.model.read_bytes())
        run.record.int8_model = _facts(run.keep("int8", file))
        stage.text = f"{run.record.int8_model.kind}, {sum(run.record.int8_model.operators.values())} nodes"
        stage.findings = [Finding(code="build.integer", severity=Severity.INFO, where=str(build.options.model),
                                  headline=f"the model is {run.record.int8_model.kind} already; it is taken as it is")]


def _keep(build: Build) -> None:
    from vitrify import tflite

    run, options = build.run, build.options
    with build.stage("import") as stage:
        model = import_model(options.model, options.conversion)
        told = import_findings(model)
        stage.findings = told
        stage.text = f"{sum(map(len, model.graphs))} nodes from {options.model.name}"
    with build.stage("optimize") as stage:
        ledger = optimize_model(model, options.conversion)
        refuse_float(model, options.model)
        describe(model, options.conversion.task)
        run.record.ledger = ledger_rows(ledger)
        stage.findings = [f for f in import_findings(model) if f not in told]
        stage.text = f"{sum(map(len, model.graphs))} nodes, the file's own scales kept"
    with build.stage("write int8") as stage:
        file = f"{run.record.name}_int8.tflite"
        tflite.write(model, run.path(file))
        run.record.int8_model = _facts(run.keep("int8", file))
        run.record.interface = binding_rows(model)
        stage.text = f"{run.record.int8_model.kind}, {run.record.int8_model.bytes / 1e6:.2f} MB"


def _verify_kept(build: Build) -> None:
    from vitrify import tflite
    from vitrify.data.binding import identity_interface

    run, options = build.run, build.options
    with build.stage("verify int8") as stage:
        made = run.artifact("int8")
        model = tflite.read(made)
        found = compare_files([options.model, made], model.interface or identity_interface(model), options.data,
                              options.conversion, build.reporter.advance, limit=INT8_SAMPLES,
                              names=[options.model.name, made.name], kernels=[None, "optimized"], tensors=False)
        stage.text = summary(found)
        stage.findings = softened(found.findings) if options.data.random else found.findings
    run.record.verify_int8 = found.stages[0]


def _preparing(name: str, artifact: str, *, invoke: bool) -> Callable[[Build], None]:
    def work(build: Build) -> None:
        with build.stage(name) as stage:
            stage.findings = prepare_file(build.run.artifact(artifact), invoke=invoke)
            stage.text = "LiteRT takes the file"
    return work


def _compare(build: Build, name: str, reference: Path, candidate: str, limit: int, *,
             soften: bool = False, answers: bool = False) -> ComparisonRow:
    run, options = build.run, build.options
    with build.stage(name) as stage:
        found = compare_files([reference, run.artifact(candidate)], _interface(build), options.data,
                              options.conversion, build.reporter.advance, limit=limit,
                              names=[reference.name, run.artifact(candidate).name], kernels=_kernels(build, candidate))
        stage.text = summary(found)
        stage.findings = softened(found.findings) if soften else found.findings
        if answers:
            from vitrify import tflite

            stage.findings += answers_agree(tflite.read(reference), reference, run.artifact(candidate), options.data,
                                            limit, run.artifact(candidate).name)
    return found.stages[0]


def _kernels(build: Build, candidate: str) -> list[str | None]:
    """Name the kernels of both sides: the reference ones, and for heavy models the quick ones that round like them.

    Float sums come nearest to ONNX Runtime's in XNNPACK, whose order of adding they share: where a model takes the
    logarithm of what nearly cancels, every other order shows.
    """
    from vitrify import tflite

    graph = tflite.read(build.run.artifact("float")).main
    if sum(node.op.macs(node) for node in graph) <= HEAVY_MACS:
        return [None, None]
    return ["optimized", "xnnpack" if candidate == "float" else "optimized"]


def _verify_float(build: Build) -> None:
    build.run.record.verify_float = _compare(build, "verify float", _source(build), "float", FLOAT_SAMPLES)


def _verify_int8(build: Build) -> None:
    build.run.record.verify_int8 = _compare(build, "verify int8", build.run.artifact("float"), "int8",
                                             INT8_SAMPLES, soften=build.options.data.random, answers=True)


def _analyze(build: Build) -> None:
    from vitrify.pipeline.quantizing.analysis import analyzed

    run = build.run
    reference, candidate = run.artifact("float"), run.artifact("int8")
    with build.stage("analyze") as stage:
        run.record.analysis, stage.text = analyzed(reference, candidate, build.options.data, build.reporter,
                                                   (reference.name, candidate.name))


def _calibrate(build: Build) -> None:
    from vitrify import tflite

    run, options = build.run, build.options
    with build.stage("calibrate") as stage:
        path = run.artifact("float")
        checkpoint = run.path(CHECKPOINT)
        statistics, facts = calibrate_model(path, tflite.read(path), options.data, options.quantization.effective(),
                                            checkpoint, build.reporter)
        statistics.save(run.path("statistics.npz"))
        run.keep("statistics", "statistics.npz")
        checkpoint.unlink(missing_ok=True)
        run.record.calibration = facts
        stage.findings = options.data.findings(_interface(build))
        stage.text = f"{counted(facts.samples, 'sample')}, {facts.tensors} tensors"


def _quantize(build: Build) -> None:
    from vitrify import tflite
    from vitrify.quant import Statistics, save_recipe

    run, recipe = build.run, build.options.quantization.effective()
    with build.stage("quantize") as stage:
        model = tflite.read(run.artifact("float"))
        how = How(goal=build.options.quantization.goal(build.options.target), state=run.path(SEARCH),
                  jobs=build.options.quantization.jobs)
        path, statistics = run.artifact("float"), Statistics.load(run.artifact("statistics"))
        told = beforehand(model, path, statistics, recipe, build.options.data)
        result, recipe = quantize_well(model, path, statistics, recipe, build.options.data, how, build.reporter)
        run.record.quantization_ledger = ledger_rows(result.ledger)
        stage.findings = [*told, *result.findings]
        stage.text = f"{len(result.model.main)} nodes, no float operator"
    with build.stage("write int8") as stage:
        file = f"{run.record.name}_int8.tflite"
        tflite.write(result.model, run.path(file))
        run.record.int8_model = _facts(run.keep("int8", file))
        run.record.interface = binding_rows(result.model)
        save_recipe(recipe, run.path("recipe.toml"))
        run.keep("recipe", "recipe.toml")
        if build.options.quantization.save_recipe is not None:
            save_recipe(recipe, build.options.quantization.save_recipe)
        stage.text = f"{run.record.int8_model.bytes / 1e6:.2f} MB"


def _compile(build: Build) -> None:
    from vitrify.core.files import temporary_folder
    from vitrify.pipeline.compiling.avoiding import compile_avoiding
    from vitrify.pipeline.compiling.compile import driver_for
    from vitrify.pipeline.measuring.correcting import load_target

    run, chip, how = build.run, load_target(build.options.target), build.options.compiler
    driver = driver_for(chip)
    with build.stage("compile") as stage:
        file = f"{run.record.name}{driver.ending}"
        with temporary_folder() as folder:
            compiled, avoided = compile_avoiding(driver, run.artifact("int8"), chip, run.path(file), how, Path(folder))
        run.keep("compiled", file)
        run.record.coverage = coverage_row(compiled.placement.coverage)
        run.record.placement = placed(compiled)
        run.record.estimate = estimate_row(compiled.estimate)
        run.record.memory = memory_row(compiled.memory)
        run.record.compiler = compiled.maker
        run.record.profile = _profile(build, chip, compiled)
        stage.findings, stage.text = [*avoided, *compiled.findings], str(compiled.placement)


def _profile(build: Build, chip: Target, compiled: Compiled | None) -> ProfileResult:
    """Where time and memory go on the chip, for the page; ``compiled`` may be of a rewritten form, and then the
    estimate is our own."""
    from vitrify.pipeline.profiling.on_chip import of_build

    artifacts = build.run.record.artifacts
    floating = build.run.artifact("float") if "float" in artifacts else None
    result = of_build(_source(build), floating, build.run.artifact("int8"), chip, compiled)
    result.model = str(build.options.model)
    return result


def _verify_compiled(build: Build) -> None:
    from vitrify.pipeline.compiling.compile import driver_for
    from vitrify.pipeline.compiling.simulated import can_simulate, verify_simulated
    from vitrify.pipeline.compiling.verifying import verify_compiled
    from vitrify.targets import load

    run, chip = build.run, load(build.options.target)
    with build.stage("verify compiled") as stage:
        source, made = run.artifact("int8"), run.artifact("compiled")
        found = verify_simulated(source, made) if can_simulate(chip) else verify_compiled(
            source, made, driver_for(chip), chip, build.options.compiler)
        run.record.verify_compiled = found.row
        for name, file in zip(("guilty", "guilty values"), found.files, strict=False):
            run.keep(name, Path(file).name)
        stage.findings, stage.text = found.findings, found.words


def _judge_uncompiled(build: Build) -> None:
    """Say what the rules know, where the compiler is missing: the build goes on, and its verdict says so."""
    from vitrify import tflite
    from vitrify.backends.base import driver_of
    from vitrify.pipeline.measuring.correcting import load_target
    from vitrify.targets.rules import place
    from vitrify.targets.rules.placing import estimated
    from vitrify.targets.telling import cpu_nodes

    run, chip = build.run, load_target(build.options.target)
    with build.stage("compile") as stage:
        model = tflite.read(run.artifact("int8"))
        placement = place(model.main, chip)
        run.record.coverage, run.record.placement = coverage_row(placement.coverage), placement_row(placement)
        run.record.estimate = estimate_row(estimated(model.main, chip, placement))
        run.record.profile = _profile(build, chip, None)
        driver = driver_of(chip)
        missing = Finding(code="compile.no-compiler", headline=f"nothing compiles models for {chip.name} beforehand") \
            if driver is None else driver.missing(run.artifact("int8"), chip, build.options.compiler)
        stage.findings = [structs.replace(missing, severity=Severity.WARNING), *cpu_nodes(placement)]
        stage.text = f"compiled: no, {missing.headline}; by the rules {placement}"


def _compiling(options: BuildOptions) -> list[Unit[BuildOptions]]:
    """The units from the integer file to the compiled one, as far as what is installed goes."""
    from vitrify.backends.base import driver_of, is_installed
    from vitrify.pipeline.compiling.simulated import can_simulate
    from vitrify.targets import load

    chip = load(options.target)
    driver = driver_of(chip)
    if driver is None or not is_installed(chip, options.compiler):
        return [JUDGE_UNCOMPILED]
    return [COMPILE, VERIFY_COMPILED] if driver.must_verify or can_simulate(chip) else [COMPILE]


def _compiler_key(build: Build) -> object:
    """What a compiled file, and the estimate of it, depend on besides the source."""
    from vitrify.backends.base import driver_of
    from vitrify.pipeline.measuring.correcting import load_target

    chip, how = load_target(build.options.target), build.options.compiler
    driver = driver_of(chip)
    found = driver.installations(how)[:1] if driver is not None else []
    return [PROFILED, _hash(build, "int8"), build.options.target, msgspec.to_builtins(found), how.where,
            dict(how.options), chip.corrections]


def _illustrate(build: Build) -> None:
    from vitrify import runtimes
    from vitrify.tasks.illustration import Preparation, illustrate, interest

    run, data, interface = build.run, build.options.data, _interface(build)
    prepared = Preparation(data.mean, data.std, data.color == "bgr")
    names = _class_names(_source(build))
    with build.stage("illustrate") as stage:
        samples = data.open(interface, LOOKED_AT)
        run.record.pictures = []
        with (runtimes.open(run.artifact("float"), kernels="xnnpack") as reference,
              runtimes.open(run.artifact("int8"), kernels="optimized") as candidate):
            ranks = [(-interest(interface, sample, reference.run(sample)), number)
                     for number, sample in samples.numbered(skipped=[])]
            chosen = {number for _, number in sorted(ranks)[:PICTURES]}
            for number, sample in samples.numbered(skipped=[]):
                if number not in chosen:
                    continue
                shown = illustrate(interface, sample, reference.run(sample), candidate.run(sample), prepared, names)
                if shown is not None:
                    name = Path(samples.name(number)).name
                    run.record.pictures.append(_save(build, number, name, shown))
                build.reporter.advance(len(run.record.pictures), len(chosen))
        stage.text = counted(len(run.record.pictures), "sample")


def _class_names(model: Path) -> tuple[str, ...]:
    """What an ONNX file's own metadata calls the classes: exporters of detectors write them there."""
    from vitrify.importers.onnx.reading.reader import metadata
    from vitrify.tasks.naming import class_names

    return () if is_tflite(model) else class_names(metadata(model).get("names", ""))


def _save(build: Build, number: int, name: str, shown: Illustration) -> PictureRow:
    row = PictureRow(name=name, task=shown.task, text=shown.text,
                     float_scores=[ScoreRow(label=label, value=value) for label, value in shown.float_scores],
                     int8_scores=[ScoreRow(label=label, value=value) for label, value in shown.int8_scores])
    for field, content in (("input", shown.input), ("float_picture", shown.float_picture),
                           ("int8_picture", shown.int8_picture)):
        if content:
            file = f"pictures/{number}_{field.removesuffix('_picture')}.png"
            with staged(build.run.path(file)) as aside:
                aside.write_bytes(content)
            setattr(row, field, file)
    return row


EXPORT = Unit("export", ("export",), artifacts=(EXPORTED,), work=_export,
              key=lambda b: [b.run.record.input_hashes["model"], msgspec.to_builtins(b.options.conversion)])
CONVERT = Unit("convert", ("import", "optimize", "write float"), artifacts=("float",),
               sections=("ledger", "float_model"), work=_convert,
               key=lambda b: [b.run.record.input_hashes["model"], msgspec.to_builtins(b.options.conversion),
                              b.options.quantization.effective().in_steps])
TAKE = Unit("take", ("import",), artifacts=("int8",), sections=("int8_model",), work=_take,
            key=lambda b: b.run.record.input_hashes["model"])
KEEP = Unit("keep", ("import", "optimize", "write int8"), artifacts=("int8",),
            sections=("ledger", "int8_model", "interface"), work=_keep,
            key=lambda b: [b.run.record.input_hashes["model"], msgspec.to_builtins(b.options.conversion)])
VERIFY_KEPT = Unit("verify kept", ("verify int8",), sections=("verify_int8",), work=_verify_kept,
                   key=lambda b: [_hash(b, "int8"), b.run.record.input_hashes["model"], _data_key(b)])
PREPARE_FLOAT = Unit("prepare float", ("prepare float",), work=_preparing("prepare float", "float", invoke=False),
                     key=lambda b: _hash(b, "float"))
VERIFY_FLOAT = Unit("verify float", ("verify float",), sections=("verify_float",), work=_verify_float,
                    key=lambda b: [_hash(b, "float"), b.run.record.input_hashes["model"], _data_key(b)])
CALIBRATE = Unit("calibrate", ("calibrate",), artifacts=("statistics",), sections=("calibration",), work=_calibrate,
                 key=lambda b: [_hash(b, "float"), _data_key(b),
                                msgspec.to_builtins(b.options.quantization.effective().without_goal)])
QUANTIZE = Unit("quantize", ("quantize", "write int8"), artifacts=("int8", "recipe"),
                sections=("int8_model", "quantization_ledger", "interface"), work=_quantize,
                key=lambda b: [_hash(b, "float"), _hash(b, "statistics"),
                              msgspec.to_builtins(b.options.quantization.effective()),
                              msgspec.to_builtins(b.options.quantization.goal(b.options.target))])
PREPARE_INT8 = Unit("prepare int8", ("prepare int8",), work=_preparing("prepare int8", "int8", invoke=False),
                    key=lambda b: _hash(b, "int8"))
VERIFY_INT8 = Unit("verify int8", ("verify int8",), sections=("verify_int8",), work=_verify_int8,
                   key=lambda b: [_hash(b, "float"), _hash(b, "int8"), _data_key(b)])
ANALYZE = Unit("analyze", ("analyze",), sections=("analysis",), work=_analyze,
               key=lambda b: [_hash(b, "float"), _hash(b, "int8"), _data_key(b)])
COMPILE = Unit("compile", ("compile",), artifacts=("compiled",),
               sections=("coverage", "placement", "estimate", "memory", "compiler", "profile"), work=_compile,
               key=_compiler_key)
JUDGE_UNCOMPILED = Unit("judge uncompiled", ("compile",), sections=("coverage", "placement", "estimate", "profile"),
                        work=_judge_uncompiled, key=_compiler_key)
VERIFY_COMPILED = Unit("verify compiled", ("verify compiled",), sections=("verify_compiled",), work=_verify_compiled,
                       key=lambda b: [_compiler_key(b), _hash(b, "compiled")])
ILLUSTRATE = Unit("illustrate", ("illustrate",), sections=("pictures",), work=_illustrate,
                  key=lambda b: [_hash(b, "float"), _hash(b, "int8"), _data_key(b)])
