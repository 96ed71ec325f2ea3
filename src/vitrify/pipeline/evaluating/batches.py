"""One batch of samples, scored for every stage: what the processes of an evaluation, and other machines, do.

Models stay open between the batches of one evaluation. A sample is read and prepared once for all stages.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.data.preprocess import PictureShape, Preprocess, picture_of, prepared
from vitrify.data.reading import PICTURES, Source, source_of, suffix
from vitrify.data.samples import BAD_FILES
from vitrify.pipeline.evaluating.rows import LabelledArrays
from vitrify.pipeline.evaluating.sets.base import Entry, Truth
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.running.inputs import picture_input
from vitrify.pipeline.running.model import TaskModel, TaskOptions, decoded, opened, size_of
from vitrify.runtimes.many import run_many
from vitrify.tasks.found import Objects
from vitrify.tasks.frames import Frame
from vitrify.tasks.metrics.base import Measure, measure_of
from vitrify.tasks.metrics.classes import ranks
from vitrify.tasks.metrics.maps import map_of
from vitrify.tasks.registry import chosen
from vitrify.tasks.spec import TaskSpec

Array = np.ndarray[Any, np.dtype[Any]]

WORK = "vitrify.pipeline.evaluating.batches:work"
RANKED = ("classification", "keywords")
TOGETHER = 64 << 20
"""Bytes of inputs that are handed to a runtime at once."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all batches: the stages' files and names, what their outputs mean, how files are prepared.

    With ``pseudo`` the answers of the first stage stand for labels.
    """

    models: tuple[str, ...]
    names: tuple[str, ...]
    specs: tuple[TaskSpec, ...]
    how: Preprocess
    kernels: str
    conversion: ConvertOptions
    pseudo: bool = False


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Samples by their numbers in the whole set."""

    first: int
    entries: list[Entry]


class Scored(msgspec.Struct, kw_only=True):
    """What came of a batch, as plain values: for each stage a record of each sample, and seconds inside its runtime.

    ``kept`` are the samples' numbers, ``truths`` what they were held against where that is needed at the end,
    ``seconds`` all that the batch took.
    """

    kept: list[int]
    records: list[list[Any]]
    truths: list[Truth]
    skipped: list[Finding]
    inside: list[float]
    runtimes: list[str]
    seconds: float


class _Open:
    """The stages of one plan, open."""

    def __init__(self, plan: Plan) -> None:
        self.stack = ExitStack()
        self.lock = threading.Lock()
        self.sources: dict[str, Source] = {}
        self.stages: list[TaskModel] = []
        try:
            for path, name, spec in zip(plan.models, plan.names, plan.specs, strict=True):
                wanted = TaskOptions(decoder=spec.decoder)
                model = self.stack.enter_context(opened(Path(path), wanted, plan.conversion, kernels=plan.kernels,
                                                        told=plan.how, name=name))
                model.spec = spec
                self.stages.append(model)
        except BaseException:
            self.stack.close()
            raise


_held: dict[bytes, _Open] = {}
_holding = threading.Lock()


def _opened(plan: Plan) -> _Open:
    """The stages of a plan; those of another are closed first."""
    key = msgspec.json.encode(plan)
    with _holding:
        if key not in _held:
            close()
            _held[key] = _Open(plan)
        return _held[key]


def close() -> None:
    """Close what is open in this process."""
    while _held:
        _held.popitem()[1].stack.close()


atexit.register(close)


def work(plan: Plan, batch: Batch) -> dict[str, Any]:
    """Score a batch; returns ``Scored`` as plain values.

    Raises:
        VitrifyError: a model cannot be run, or samples do not fit it.
    """
    held = _opened(plan)
    with held.lock:
        started = time.perf_counter()
        scored = _score(plan, batch, held)
        scored.seconds = time.perf_counter() - started
    plain: dict[str, Any] = msgspec.to_builtins(scored)
    return plain


def _score(plan: Plan, batch: Batch, held: _Open) -> Scored:
    first, skipped = held.stages[0], list[Finding]()
    made = Scored(kept=[], records=[[] for _ in held.stages], truths=[], skipped=skipped,
                  inside=[0.0] * len(held.stages), runtimes=[stage.runtime.name for stage in held.stages], seconds=0.0)
    quick = _whole(batch, held, plan)
    if quick is not None:
        _scored(plan, held, made, quick, list(range(batch.first, batch.first + len(batch.entries))), batch.entries,
                [None] * len(batch.entries))
        return made
    group: list[tuple[int, Entry, Mapping[str, Array], Frame | None]] = []
    room = 0
    for number, entry in enumerate(batch.entries, batch.first):
        try:
            inputs, frame = _read(entry, first, plan.how, held)
            entry = _with_map(entry)
        except DataError as error:
            if not all(f.code in BAD_FILES for f in error.findings):
                raise
            skipped += error.findings
            continue
        group.append((number, entry, inputs, frame))
        room += sum(v.nbytes for v in inputs.values())
        if room > TOGETHER:
            _group(plan, held, made, group)
            group, room = [], 0
    _group(plan, held, made, group)
    return made


def _group(plan: Plan, held: _Open, made: Scored,
           group: Sequence[tuple[int, Entry, Mapping[str, Array], Frame | None]]) -> None:
    if group:
        stacks = {name: np.stack([inputs[name] for _, _, inputs, _ in group]) for name in group[0][2]}
        _scored(plan, held, made, stacks, [n for n, _, _, _ in group], [e for _, e, _, _ in group],
                [f for _, _, _, f in group])


def _scored(plan: Plan, held: _Open, made: Scored, stacks: Mapping[str, Array], numbers: list[int],
            entries: Sequence[Entry], frames: Sequence[Frame | None]) -> None:
    """Run all stages on samples and take records of their answers."""
    measure = measure_of(plan.specs[0].kind)
    truths: list[Truth] = [] if plan.pseudo else [_in_pixels(e.truth or {}, f)
                                                  for e, f in zip(entries, frames, strict=True)]
    names = list(stacks)
    for place, stage in enumerate(held.stages):
        own = [b.name for b in stage.runtime.interface.inputs]
        order = [b.name for b in held.stages[0].runtime.interface.inputs]
        given = {own[order.index(name)]: stacks[name] for name in names}
        answers, seconds = run_many(stage.runtime, given)
        made.inside[place] += seconds
        if plan.pseudo and place == 0:
            found = [_found(answers, n, stage, frames[n]) for n in range(len(numbers))]
            truths = [measure.truth(_certain(one, stage.spec), stage.spec) for one in found]
        made.records[place] += _records(answers, stage, frames, truths, measure)
    made.kept += numbers
    if plan.pseudo:
        made.truths += [{k: v for k, v in t.items() if not isinstance(v, np.ndarray)} for t in truths]
    else:
        made.truths += [{"size": list(f.picture)} if f is not None else {} for f in frames]


def _certain(found: Any, spec: TaskSpec) -> Any:
    """Of objects those that count for people: what is scored goes down to noise, which is no label."""
    if not isinstance(found, Objects):
        return found
    return found.chosen(np.flatnonzero(found.scores > chosen(spec.decoder).score))


def _records(answers: Mapping[str, Array], stage: TaskModel, frames: Sequence[Frame | None], truths: Sequence[Truth],
             measure: Measure) -> list[Any]:
    rows = next(iter(answers.values()))
    if stage.spec.kind in RANKED and len(answers) == 1 and rows[0].size == max(rows[0].shape):
        return list(ranks(rows.reshape(len(rows), -1), np.array([t["label"] for t in truths], np.int64)))
    return [measure.record(_found(answers, n, stage, frames[n]), truth, stage.spec) for n, truth in enumerate(truths)]


def _found(answers: Mapping[str, Array], number: int, stage: TaskModel, frame: Frame | None) -> Any:
    return decoded({name: rows[number] for name, rows in answers.items()}, stage.spec,
                   size_of(stage.runtime.interface), frame, stage.name)


def _in_pixels(truth: Truth, frame: Frame | None) -> Truth:
    """The truth with its places in pixels of the picture."""
    if not truth.get("shares") or frame is None:
        return truth
    return in_pixels(truth, frame.picture)


def in_pixels(truth: Truth, size: Sequence[int]) -> Truth:
    """Shares of a picture (height, width) as pixels."""
    if not truth.get("shares"):
        return truth
    high, wide = size
    found = {k: v for k, v in truth.items() if k != "shares"}
    found["boxes"] = [[b[0] * wide, b[1] * high, b[2] * wide, b[3] * high] for b in truth["boxes"]]
    if "polygons" in truth:
        found["polygons"] = [[[v * (high if n % 2 else wide) for n, v in enumerate(line)] for line in one]
                             for one in truth["polygons"]]
    if "points" in truth:
        found["points"] = [[[p[0] * wide, p[1] * high, p[2]] for p in one] for one in truth["points"]]
    if "quads" in truth:
        found["quads"] = [[[p[0] * wide, p[1] * high] for p in one] for one in truth["quads"]]
    return found


def _read(entry: Entry, first: TaskModel, how: Preprocess, held: _Open
          ) -> tuple[Mapping[str, Array], Frame | None]:
    """One sample as the source's inputs."""
    path, interface = Path(entry.file), first.runtime.interface
    if suffix(path) in PICTURES:
        binding, shape = picture_input(interface)
        image = picture_of(path)
        frame = Frame.of(how, (shape.height, shape.width), (image.height, image.width))
        return {binding.name: prepared(image, how, shape)}, frame
    source = _source(path, first, how, held)
    inputs = source.sample(entry.index)
    shape_of = PictureShape.of(tuple(next(iter(inputs.values())).shape))
    size = None if shape_of is None else (shape_of.height, shape_of.width)
    return inputs, None if size is None else Frame(size, size)


def _with_map(entry: Entry) -> Entry:
    """A sample whose truth is a map in a file, with the map itself."""
    truth = entry.truth or {}
    return Entry(entry.file, entry.index, {"values": map_of(truth)}) if "map" in truth else entry


def _source(path: Path, first: TaskModel, how: Preprocess, held: _Open) -> Source:
    if str(path) not in held.sources:
        held.sources.clear()                       # one file at a time stays open
        labelled = LabelledArrays.of(path, first.runtime.interface.inputs, how)
        held.sources[str(path)] = labelled or source_of(path, first.runtime.interface.inputs, how)
    return held.sources[str(path)]


def _whole(batch: Batch, held: _Open, plan: Plan) -> dict[str, Array] | None:
    """The samples of a batch as one stack, where they stand side by side in one file of the model's own size."""
    entries = batch.entries
    path = entries[0].file
    if suffix(path) != ".npz" or any(e.file != path or e.index != entries[0].index + n for n, e in enumerate(entries)):
        return None
    source = _source(Path(path), held.stages[0], plan.how, held)
    return source.stack(entries[0].index, len(entries)) if isinstance(source, LabelledArrays) else None
