"""`run`: what models find in pictures, recordings and arrays, printed and drawn, several stages side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from vitrify.core.errors import DataError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import counted
from vitrify.data.reading import SOUNDS
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.running.inputs import VIDEOS, Item, items_of
from vitrify.pipeline.running.model import TaskModel, TaskOptions, opened
from vitrify.pipeline.steps import step
from vitrify.results import FoundRow, RunResult, TaskFacts
from vitrify.tasks.showing import drawn, plain, plotted, side_by_side, words
from vitrify.verify.locating.inputs import renamed_inputs

if TYPE_CHECKING:
    from vitrify.data.preprocess import Preprocess

Array = np.ndarray[Any, np.dtype[Any]]

MOST_ROWS = 1000
"""Answers that are told; all are drawn."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where pictures go (a file, a folder, a video), how LiteRT computes, and how files become inputs."""

    output: Path | None = None
    kernels: str = "xnnpack"
    told: Preprocess | None = None
    task: TaskOptions = TaskOptions()
    conversion: ConvertOptions = ConvertOptions()


def run_files(models: Sequence[Path], place: Path, options: RunOptions, reporter: Reporter | None = None) -> RunResult:
    """Run models on the same inputs; the first says how files become inputs.

    Raises:
        VitrifyError: a model cannot be run, nothing tells what its outputs mean, or the input does not fit.
    """
    shown, meter, skipped = reporter or Silent(), Meter(), list[Finding]()
    with ExitStack() as stack:
        with step(shown, "open") as note:
            stages = _opened(stack, models, options, shown)
            first = stages[0]
            note.text = f"{first.spec.kind} by {first.spec.decoder}"
        with step(shown, "run") as note:
            rows, written = _run(stages, place, options.output, skipped, shown)
            note.text = counted(len(rows) // len(stages), "input")
    if not rows:
        raise DataError(skipped or [Finding(code="data.empty", headline=f"nothing in {place} could be run",
                                            where=str(place))])
    left = [msgspec.structs.replace(f, severity=Severity.WARNING) for f in skipped]
    return RunResult(models=[str(m) for m in models], input=str(place), facts=facts_of(first), rows=rows[:MOST_ROWS],
                     files=[str(p) for p in written], skipped=len(left), findings=left[:MOST_ROWS],
                     seconds=meter.seconds)


def facts_of(model: TaskModel) -> TaskFacts:
    """What a model's outputs were taken to mean."""
    prepare: dict[str, Any] = msgspec.to_builtins(model.how)
    return TaskFacts(task=model.spec.kind, decoder=model.spec.decoder, classes=len(model.spec.names), prepare=prepare)


def _opened(stack: ExitStack, models: Sequence[Path], options: RunOptions, shown: Reporter) -> list[TaskModel]:
    names = _names(models)
    stages: list[TaskModel] = []
    for path, name in zip(models, names, strict=True):
        wanted = options.task
        if stages and not wanted.decoder:               # the others give what the first gives
            first = stages[0].spec
            wanted = msgspec.structs.replace(wanted, task="", decoder=first.decoder, names=wanted.names or first.names,
                                             options={**first.options, **wanted.options})
        stages.append(stack.enter_context(opened(path, wanted, options.conversion, shown, kernels=options.kernels,
                                                 told=options.told, name=name, keep_state=True)))
    require_equal_ends(stages)
    return stages


def require_equal_ends(stages: Sequence[TaskModel]) -> None:
    """See to it that all stages take and give the same.

    Raises:
        UsageError: one does not.
    """
    def ends(model: TaskModel) -> tuple[Any, Any]:
        face = model.runtime.interface
        return [tuple(b.shape) for b in face.inputs], [tuple(b.shape) for b in face.outputs]

    problems = []
    for other in stages[1:]:
        for what, wanted, given in zip(("inputs", "outputs"), ends(stages[0]), ends(other), strict=True):
            if what == "outputs" and len(wanted) == len(given):
                continue                        # another form of outputs is decoded by its own shapes
            if wanted != given:
                problems.append(Finding(
                    code=f"task.{what}", where=other.name,
                    headline=f"{other.name} has {what} {_listed(given)}, {stages[0].name} has {_listed(wanted)}",
                    help="compare forms of one model; `vitrify inspect` shows the inputs and outputs of each"))
    if problems:
        raise UsageError(problems)


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    return f"{len(shapes)}: " + ", ".join(f"[{','.join(map(str, s))}]" for s in shapes[:4])


def _names(models: Sequence[Path]) -> list[str]:
    from vitrify.pipeline.verifying.verify import distinct

    return distinct([m.name for m in models])


def _run(stages: Sequence[TaskModel], place: Path, output: Path | None, skipped: list[Finding],
         shown: Reporter) -> tuple[list[FoundRow], list[Path]]:
    if place.suffix.lower() in SOUNDS and stages[0].spec.kind == "speech":
        return _speech(stages, place, output, skipped)
    rows: list[FoundRow] = []
    first = stages[0].runtime
    with _Pictures(output, place) as pictures:
        for number, item in enumerate(items_of(place, stages[0].runtime.interface, stages[0].how, skipped)):
            found = [(stage, stage.find(renamed_inputs(item.inputs, first, stage.runtime), item.frame))
                     for stage in stages]
            rows += [FoundRow(input=item.name, stage=stage.name, lines=words(one, stage.spec),
                              found=plain(one, stage.spec)) for stage, one in found]
            if output is not None:
                images = [drawn(one, _ground(item), stage.spec) for stage, one in found]
                pictures.add(item.name, images[0] if len(images) == 1 else
                             side_by_side(images, [stage.name for stage in stages]))
            shown.advance(number + 1, 0)
    return rows, pictures.written


def _ground(item: Item) -> Array:
    return item.ground if item.ground is not None else np.full((120, 640, 3), 255, np.uint8)


def _speech(stages: Sequence[TaskModel], place: Path, output: Path | None,
            skipped: list[Finding]) -> tuple[list[FoundRow], list[Path]]:
    """A recording, frame after frame; what a model gives of a state's shape it takes with the next frame."""
    from vitrify.tasks.found import Curve

    curves = []
    for stage in stages:
        values: list[float] = []
        state: dict[str, Array] = {}
        for item in items_of(place, stage.runtime.interface, stage.how, skipped):
            whole = {**initial(stage), **state, **item.inputs}
            answer = stage.runtime.run(whole)
            state = carried(stage, answer, item.inputs)
            values.append(float(next(v for v in answer.values() if v.size == 1).reshape(-1)[0]))
        curves.append(Curve(np.asarray(values, np.float32)))
    rows = [FoundRow(input=place.name, stage=stage.name, lines=words(curve, stage.spec), found=plain(curve, stage.spec))
            for stage, curve in zip(stages, curves, strict=True)]
    with _Pictures(output, place) as pictures:
        if output is not None:
            pictures.add(place.name, plotted([c.values for c in curves], [s.name for s in stages]))
    return rows, pictures.written


def initial(stage: TaskModel) -> dict[str, Array]:
    """Zeros for every input."""
    return {b.name: np.zeros(b.shape, b.dtype) for b in stage.runtime.interface.inputs}


def carried(stage: TaskModel, answer: Mapping[str, Array], given: Mapping[str, Array]) -> dict[str, Array]:
    """The states for the next frame: outputs, in their order, of the shapes of the inputs that nobody gave."""
    waiting = [b for b in stage.runtime.interface.inputs if b.name not in given]
    left = list(answer.values())
    state: dict[str, Array] = {}
    for binding in waiting:
        for value in left:
            if value.shape == tuple(binding.shape) and value.dtype == np.dtype(binding.dtype):
                state[binding.name] = value
                left = [other for other in left if other is not value]
                break
    return state


class _Pictures:
    """Where drawn pictures go: one file, a folder, or a video."""

    def __init__(self, output: Path | None, place: Path) -> None:
        self.output, self.written = output, list[Path]()
        self._single = output is not None and bool(output.suffix) and not output.is_dir()
        self._video: Any = None
        if output is not None and output.suffix.lower() in VIDEOS:
            self._video = _video(output)
        elif output is not None and self._single and place.is_dir():
            raise UsageError.of("run.output", f"{output.name} is one file, {place} holds several inputs",
                                where="--output", help="name a folder, without an ending")

    def add(self, name: str, pixels: Array) -> None:
        """Write one picture."""
        from PIL import Image

        from vitrify.core.files import cannot_write

        assert self.output is not None
        if self._video is not None:
            self._video.add(pixels)
            self.written = [self.output]
            return
        path = self.output if self._single else self.output / f"{Path(name.replace(' ', '_')).with_suffix('').name}.png"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path)
        except ValueError as error:
            raise UsageError.of("run.output", f"{path.name} has no ending of a picture", where="--output",
                                help="name a .png or .jpg file, or a folder") from error
        except OSError as error:
            raise cannot_write(path, error) from error
        if path not in self.written:
            self.written.append(path)

    def __enter__(self) -> _Pictures:
        return self

    def __exit__(self, *error: object) -> None:
        if self._video is not None:
            self._video.close()


def _video(output: Path) -> Any:
    try:
        from vitrify.pipeline.running.video import Writer
    except ImportError as error:
        raise UsageError.of("run.video", f"writing {output.name} needs the package 'av'", where="--output",
                            help="pip install 'vitrify[video]', or name a folder for the frames") from error
    return Writer(output)
