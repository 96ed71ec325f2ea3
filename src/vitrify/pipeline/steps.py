"""The single steps that commands and builds are made of. Each takes values and gives values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter
from vitrify.core.words import bytes_text, counted, shell
from vitrify.ir import Ledger, Model
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.results import CalibrationFacts, GrowthRow

if TYPE_CHECKING:
    from vitrify.quant import QuantizeResult, Recipe, Statistics

SHOWN_LAYERS = 5
INTEGER_KINDS = ("int8", "int8-float-io", "int16x8", "int8-int16", "compiled")
"""Kinds of a TFLite file that are not to be rewritten as if they were float."""

COMPILABLE = ("int8", "int8-float-io", "int16x8", "int8-int16", "mixed")
"""Kinds in which something computes in integers, which is what an NPU's compiler takes."""


class Note:
    """What a step says about itself when it is over."""

    text = "done"


@contextmanager
def step(reporter: Reporter, name: str) -> Iterator[Note]:
    """Tell the reporter that a step begins and how it ended."""
    reporter.stage(name)
    note = Note()
    try:
        yield note
    except BaseException as error:
        note.text = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        raise
    finally:
        reporter.finish(name, note.text)


def import_model(path: Path, options: ConvertOptions) -> Model:
    """Load a file of any format into the IR.

    Raises:
        VitrifyError: as ``vitrify.importers.load`` says.
    """
    from vitrify import importers

    return importers.load(path, shapes=options.sizes, values=options.values, trust=options.trust)


def import_findings(model: Model) -> list[Finding]:
    """Return what the importer told about a model: what it assumed, and what it took otherwise than it stands there."""
    return list(model.extras.get("findings", ()))


def state_findings(model: Model) -> list[Finding]:
    """Tell of layers that keep a state from one run to the next, which no layer of an ONNX model does."""
    kept = {node.name: None for graph in model.graphs for node in graph
            if any(t is not None and t.is_variable for t in node.inputs)}
    if not kept:
        return []
    shown = ", ".join(map(repr, list(kept)[:SHOWN_LAYERS]))
    more = f" and {len(kept) - SHOWN_LAYERS} more" if len(kept) > SHOWN_LAYERS else ""
    return [Finding(
        code="convert.state", severity=Severity.INFO, where=f"nodes {shown}{more}",
        headline=f"{counted(len(kept), 'layer')} with a state that stays from one run to the next",
        why="TFLite's sequence operators start from where the run before ended",
        help="reset the variables before each run that is to be independent: interpreter.reset_all_variables() in "
             "Python, ResetVariableTensors() in C++; Vitrify's own runs do")]


def is_tflite(path: Path) -> bool:
    """True when the file's content says TFLite, whatever its name."""
    with path.open("rb") as stream:
        return stream.read(8)[4:] == b"TFL3"


def refuse_compiled(model: Path | Model) -> None:
    """Refuse a model that holds graphs compiled for an NPU, where something else is needed.

    Raises:
        ModelError: it does.
    """
    if not is_compiled(model):
        return
    name = model.source or "the model" if isinstance(model, Model) else str(model)
    more = "" if isinstance(model, Model) else f"; `vitrify inspect {shell(model)}` says what it holds"
    raise ModelError.of("model.compiled", f"{name} is compiled for an NPU already", where=name,
                        why="its NPU operators hold commands of that chip, and no graph",
                        help=f"give the file that it was made from{more}")


def runs_on_npusim(model: Path | Model) -> bool:
    """True for a file that Vela compiled: its streams run on the host, if they are of an Ethos-U55 or U65."""
    from vitrify.runtimes.opening import ETHOS_U, compiled_for

    return isinstance(model, Path) and is_tflite(model) and compiled_for(model) == ETHOS_U


def is_compiled(model: Path | Model) -> bool:
    """True for a model that holds graphs compiled for an NPU."""
    if isinstance(model, Model):
        return kind_of(model) == "compiled"
    if not is_tflite(model):
        return False
    from vitrify import tflite
    from vitrify.backends.vela.compiled import npu_graphs

    return bool(npu_graphs(model)) or kind_of(tflite.read(model)) == "compiled"


def has_equal_runs(path: Path) -> bool:
    """True when a file, run as it is, gives what its float form gives.

    A dynamic-range file rounds its activations as it runs, and LiteRT does not know MediaPipe's custom operators.
    """
    if not is_tflite(path):
        return True
    from vitrify import tflite
    from vitrify.passes.stored.known_customs import TRANSPOSED

    model = tflite.read(path)
    return kind_of(model) != "dynamic-range" and all(node.op.kind != TRANSPOSED for g in model.graphs for node in g)


def kind_of(model: Model) -> str:
    """Return the kind of a model, in the words of the command line."""
    from vitrify.tflite import classify

    return classify(model).value


def optimize_model(model: Model, options: ConvertOptions) -> Ledger:
    """Run the clean-up, layout and fusion passes; a TFLite model with integers in it is only cleaned up, exactly."""
    from vitrify.passes import CLEANUP, Runner, has_steps, optimize
    from vitrify.passes.stored.table import STORED

    kind = "float32" if has_steps(model) else kind_of(model)
    if kind == "compiled":
        return Ledger()
    first = Runner(model)
    if kind not in (*INTEGER_KINDS, "mixed"):
        first.run(STORED, rounds=1)
    if kind in (*INTEGER_KINDS, "mixed"):
        runner = Runner(model)
        runner.run(CLEANUP)
        return runner.ledger
    if kind == "dynamic-range":
        model.extras["findings"] = [*model.extras.get("findings", ()), _widened(first.ledger)]
    ledger = optimize(model, input_layout=options.input_layout, output_layout=options.output_layout)
    ledger.entries[:0] = first.ledger.entries
    return ledger


def undo_integers(model: Model) -> None:
    """Turn a quantized TFLite model into the float model that its integers stand for; a float one stays as it is."""
    from vitrify.passes.base import Runner
    from vitrify.passes.stored.real_values import RealValues

    kind = kind_of(model)
    if kind not in (*INTEGER_KINDS, "mixed") or kind == "compiled":
        return
    one = RealValues()
    changes = Runner(model).apply(one)
    model.extras["findings"] = [*model.extras.get("findings", ()), Finding(
        code="quant.undone", severity=Severity.INFO, headline=f"the model was {kind}: {changes} tensors of integers "
        "became real values again", why="weights keep their values; activations are calibrated anew",
        help="the float model that it was made from would give a better one")]


def _widened(ledger: Ledger) -> Finding:
    """Say that the weights of a dynamic-range file have become float."""
    count = sum(entry.changes for entry in ledger.entries if entry.name == "float-weights")
    return Finding(
        code="tflite.dynamic-range", severity=Severity.INFO,
        headline=f"the model is dynamic-range: the int8 weights of {counted(count, 'operator')} became float again",
        why="only its weights were quantized; its kernels compute in float, and round each activation anew",
        help="`vitrify quantize` makes a full-integer model of it; the float model it was made from gives a better one")


def prepare_file(path: Path, *, invoke: bool = True) -> list[Finding]:
    """Load a TFLite file in a child process; the findings say what is wrong with it.

    Raises:
        VitrifyError: LiteRT refuses the file, or died of it.
    """
    from vitrify.runtimes.prepare import prepare

    findings = list(prepare(path, invoke=invoke))
    if any(f.severity is Severity.ERROR for f in findings):
        raise ModelError(findings)
    return findings


def calibrate_model(path: Path, model: Model, data: DataOptions, recipe: Recipe, checkpoint: Path | None,
                    reporter: Reporter) -> tuple[Statistics, CalibrationFacts]:
    """Run the float file over the samples and return what was seen, and on what it rests.

    How much memory that will take is told before it begins.

    Raises:
        VitrifyError: the data does not fit, or LiteRT does not run the model.
    """
    from vitrify.data.binding import identity_interface
    from vitrify.data.samples import Samples
    from vitrify.quant.calibration.memory import predicted_bytes
    from vitrify.quant.calibration.observe import watches
    from vitrify.quant.selecting import settled
    from vitrify.runtimes.litert.calibrate import calibrate

    interface = model.interface or identity_interface(model)
    given = data.open(interface) if data.feed is None else data.feed.bind(interface)
    predicted = predicted_bytes(model.main, watches(model.main, settled(recipe, model.main)))
    count = counted(len(given), "sample") if isinstance(given, Samples) else "samples"
    reporter.finish("calibrate", f"{count} will take about {bytes_text(predicted)} of memory, as any number would")
    statistics = calibrate(path, given, recipe, checkpoint, reporter.advance)
    moved = statistics.growth
    return statistics, CalibrationFacts(
        samples=statistics.samples, data=str(data.path or ""), random=data.random, calibrator=recipe.calibrator,
        preprocess={} if data.random else data.preprocess(), seed=data.seed if data.random else None,
        tensors=len(statistics.tensors), available=len(given) if isinstance(given, Samples) else 0,
        predicted_bytes=predicted, left_out=len(statistics.skipped), stopped=statistics.stopped,
        growth=None if moved is None else GrowthRow(tensor=moved[0], share=moved[1], mean=moved[2], since=moved[3]))


def quantize_model(model: Model, statistics: Statistics, recipe: Recipe) -> QuantizeResult:
    """Quantize a model and see to it that no float operator is left but those that the recipe keeps.

    Raises:
        VitrifyError: something stays float, or the statistics do not fit.
    """
    from vitrify.core.errors import UnsupportedError
    from vitrify.data.preprocess import remember
    from vitrify.quant import quantize
    from vitrify.quant.recipe import override_line
    from vitrify.tflite import float_operators

    result = quantize(model, statistics, recipe)
    left = [node for graph in result.model.graphs for node in float_operators(graph)
            if node.name not in result.islands]
    if left:
        raise UnsupportedError([Finding(code="quant.float", where=f"node '{node.name}'",
                                        headline=f"{node.op.kind} '{node.name}' stays float",
                                        why="a full-integer model holds no float operator but those of the recipe",
                                        help="to keep it so, say in the recipe: " + override_line(
                                            nodes=[node.name], activations="float")) for node in left])
    if statistics.declared is not None:
        remember(result.model, statistics.declared)
    return replace(result, findings=(*statistics.notes, *result.findings))
