"""Takes in one measurement of a board, and says how far estimates are off before and after."""

from __future__ import annotations

from pathlib import Path

from vitrify.core.errors import ModelError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import shell
from vitrify.pipeline.files import existing
from vitrify.pipeline.measuring.correcting import after, error, error_of_others, factor, factors_of, usable
from vitrify.pipeline.measuring.expecting import Expected, expect
from vitrify.pipeline.measuring.reading import BoardRun, read_file
from vitrify.pipeline.measuring.store import Measurement, Part, add, place, stamp
from vitrify.pipeline.steps import refuse_compiled, step
from vitrify.results import MeasuredPart, MeasureResult


def measure(model: Path, target: str, log: Path | None = None, ms: float | None = None, side: str = "",
            threads: int | None = None, reporter: Reporter | None = None) -> MeasureResult:
    """Keep what ``model`` took on a board with ``target``, and return estimates before and after.

    Args:
        model: the integer file that ran there, or that was compiled for it.
        target: the chip.
        log: what benchmark_model printed or wrote there.
        ms: the latency, where it is typed in, or where the log has none.
        side: ``cpu`` or ``npu``; by the log, or else ``npu``.
        threads: how many cores ran; by the log, or else one.
        reporter: is told of the steps.

    Raises:
        VitrifyError: the model is none, or not in integers; there is no latency, or the log cannot be read.
    """
    from vitrify import tflite
    from vitrify.targets.base import load

    shown, chip = reporter or Silent(), load(target)
    existing(model)
    refuse_compiled(model)
    run = read_file(log) if log is not None else BoardRun(None, None, (), "")
    graph = tflite.read(model).main
    if any(tensor.dtype.is_float and not tensor.is_constant for tensor in graph.tensors()):
        raise ModelError.of("measure.float", f"{model.name} computes in float", where=str(model),
                            why="estimates are of integer models",
                            help=f"vitrify quantize {shell(model)} --data FOLDER")
    where = side or run.side or "npu"
    cores = threads or run.threads or 1
    whole = _whole(run, ms)
    with step(shown, "estimate") as note:
        told = expect(model, graph, chip, where, max(cores, 1))
        note.text = f"{told.total:.3g} ms"
    made = Measurement(target=chip.name, model=model.name, side=where, threads=cores, ms=whole,
                       estimated_ms=told.total, parts=_parts(run, told, whole), stamp=stamp(chip),
                       source="typed in" if log is None else log.name)
    store = add(made)
    some = usable(chip, store.measurements)
    result = _answer(made, some, model)
    result.findings = [*_unknown(run, told), *_old(chip.name, len(some), store.measurements)]
    return result


def _whole(run: BoardRun, ms: float | None) -> float:
    if ms is not None and not 0 < ms < 1e7:
        raise UsageError.of("call.invalid", f"--ms {ms:g} is no latency in milliseconds", where="--ms",
                            help="give what one inference took, such as --ms 12.5")
    found = ms if ms is not None else run.ms
    if found is None and run.operators:
        found = sum(one.ms for one in run.operators)
    if not found:
        raise UsageError.of("measure.no-latency", "nothing says what it took", where="vitrify measure",
                            help="give --log FILE, what benchmark_model printed on the board, or --ms N")
    return found


def _parts(run: BoardRun, told: Expected, whole: float) -> tuple[Part, ...]:
    """All parts, those that were measured with what they took.

    A whole without operators is the NPU's, less what the CPU should take; or the CPU's, shared out as estimated.
    """
    measured: dict[tuple[str, str], float] = {}
    for one in run.operators:
        key = ("npu", "") if one.side == "npu" else ("cpu", one.kind)
        measured[key] = measured.get(key, 0.0) + one.ms
    if not measured.keys() & told.ms.keys():
        side = "npu" if told.side("npu") else "cpu"
        rest = whole - (told.total - told.side(side))
        if rest <= 0 or not told.side(side):
            measured = {}
        elif side == "npu":
            measured = {("npu", ""): rest}
        else:
            return (Part(side="cpu", count=sum(told.counts.values()), ms=whole, estimated_ms=told.total),)
    return tuple(Part(side=side, kind=kind, count=told.counts[side, kind], ms=measured.get((side, kind)),
                      estimated_ms=ms) for (side, kind), ms in told.ms.items())


def _answer(made: Measurement, some: list[Measurement], model: Path) -> MeasureResult:
    factors = factors_of(some)
    return MeasureResult(
        model=str(model), target=made.target, side=made.side, threads=made.threads, file=str(place()),
        measured_ms=made.ms, estimated_ms=made.estimated_ms, corrected_ms=after(made, factors), source=made.source,
        parts=[MeasuredPart(side=part.side, kind=part.kind, count=part.count, measured_ms=part.ms,
                            estimated_ms=part.estimated_ms, corrected_ms=part.estimated_ms * factor(factors, part))
               for part in made.parts],
        measurements=len(some), error_before=error(some, {}), error_after=error(some, factors),
        error_of_others=error_of_others(some))


def _unknown(run: BoardRun, told: Expected) -> list[Finding]:
    """Say which measured operators no estimate has."""
    kinds = sorted({one.kind for one in run.operators if one.side == "cpu"} - {kind for _, kind in told.ms})
    if not kinds:
        return []
    return [Finding(code="measure.other-operators", severity=Severity.WARNING, where=run.operators[0].kind,
                    headline=f"{', '.join(kinds[:6])} were measured, and the model has none of them on the CPU",
                    why="another model ran, or a delegate took operators in one piece",
                    help="for operators by themselves run with --use_xnnpack=false")]


def _old(target: str, used: int, every: tuple[Measurement, ...]) -> list[Finding]:
    left = sum(one.target == target for one in every) - used
    if not left:
        return []
    return [Finding(code="measure.older", severity=Severity.INFO, where=str(place()),
                    headline=f"{left} older measurements of {target} are not used",
                    why="they were held against facts of the chip that have changed since",
                    help="take them in again")]
