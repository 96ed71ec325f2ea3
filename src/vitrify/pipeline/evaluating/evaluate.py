"""`eval`: batches given out, kept as they come back, and summed up: the same figures however many did the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding, Severity
from vitrify.core.hashing import hash_file, hash_value
from vitrify.core.progress import Reporter, Silent
from vitrify.core.words import counted
from vitrify.pipeline.evaluating.batches import Batch, Plan, Scored, in_pixels
from vitrify.pipeline.evaluating.labels import matched, require_truths
from vitrify.pipeline.evaluating.sets.base import Entry, Labelled, read_labelled
from vitrify.pipeline.evaluating.sharing import by_processes, by_scheduler
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.quantizing.search.kept import Kept, resumable
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.running.model import TaskModel, TaskOptions, opened
from vitrify.pipeline.running.run import facts_of, require_equal_ends
from vitrify.pipeline.steps import step
from vitrify.pipeline.verifying.verify import distinct
from vitrify.results import EvalResult, StageScore
from vitrify.tasks.metrics.base import Measure, measure_of
from vitrify.tasks.registry import require_kind

if TYPE_CHECKING:
    from vitrify.data.preprocess import Preprocess

TOLD = 20
"""Findings of unreadable samples that are told one by one."""
LOW_SCORE = 0.001
"""Detections down to here count for average precision. Source: Ultralytics' validation default."""
SCORED_BOXES = ("detection", "instances", "pose", "oriented")


class EvalOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is scored how, and who does it."""

    labels: str = ""
    samples: int | None = None
    max_drop: float | None = None
    workers: int = 1
    scheduler: str = ""
    state: Path | None = None
    batch: int = 250
    kernels: str = "xnnpack"
    told: Preprocess | None = None
    task: TaskOptions = TaskOptions()
    conversion: ConvertOptions = ConvertOptions()


def evaluate_files(models: Sequence[Path], place: Path, options: EvalOptions,
                   reporter: Reporter | None = None) -> EvalResult:
    """Score models on the samples at a place, each against the first.

    Raises:
        VitrifyError: a model cannot be run, nothing tells what its outputs mean, or labels and model do not fit.
    """
    shown, meter = reporter or Silent(), Meter()
    if options.task.task:
        require_kind(options.task.task)
    with step(shown, "open") as note:
        plan, facts, classes = _planned(models, options, shown)
        measure = measure_of(plan.specs[0].kind)
        note.text = f"{facts.task} by {facts.decoder}"
    with step(shown, "labels") as note:
        found, entries, told = _labelled(place, plan, measure, classes, options)
        plan = msgspec.structs.replace(plan, pseudo=found.form == "none")
        note.text = f"{counted(len(entries), 'sample')}, {found.form}"
    state = options.state or Path(f"eval_{models[0].stem}_{place.stem}.jsonl")
    with step(shown, "score") as note, resumable(state):
        kept = Kept(state, _key(plan, entries, options.batch))
        scored, reused, workers = _scored(plan, entries, kept, options, shown)
        note.text = counted(sum(len(s.kept) for s in scored), "sample")
    result = _summed(plan, entries, scored, measure, options.max_drop)
    result.facts, result.data, result.format = facts, str(place), found.form
    result.workers, result.reused = workers, reused
    result.findings = [*told, *result.findings]
    result.ok = not any(f.severity is Severity.ERROR for f in result.findings)
    result.seconds, result.peak_bytes = meter.seconds, meter.peak_bytes
    kept.forget()
    return result


def _planned(models: Sequence[Path], options: EvalOptions, shown: Reporter) -> tuple[Plan, Any, int]:
    names = distinct([m.name for m in models])
    with ExitStack() as stack:
        stages: list[TaskModel] = []
        for path, name in zip(models, names, strict=True):
            wanted = options.task
            if stages and not wanted.decoder:
                first = stages[0].spec
                wanted = msgspec.structs.replace(wanted, task="", decoder=first.decoder, names=first.names,
                                                 options={**first.options, **wanted.options})
            stages.append(stack.enter_context(opened(path, wanted, options.conversion, shown, kernels=options.kernels,
                                                     told=options.told, name=name)))
        require_equal_ends(stages)
        first = stages[0].spec
        score = options.task.score if options.task.score is not None else (
            LOW_SCORE if first.kind in SCORED_BOXES else first.score)
        specs = tuple(msgspec.structs.replace(s.spec, score=score) for s in stages)
        plan = Plan(models=tuple(str(m.resolve()) for m in models), names=tuple(names), specs=specs, how=stages[0].how,
                    kernels=options.kernels, conversion=options.conversion)
        return plan, facts_of(stages[0]), _classes(stages[0])


def _classes(model: TaskModel) -> int:
    """How many classes a model tells apart, 0 where that is not known."""
    spec = model.spec
    if spec.kind in ("classification", "keywords"):
        shape = model.runtime.interface.outputs[0].shape
        return max(shape, default=0) if shape else 0
    return int(spec.options.get("classes", 0)) or len(spec.names)


def _labelled(place: Path, plan: Plan, measure: Measure, classes: int,
              options: EvalOptions) -> tuple[Labelled, list[Entry], list[Finding]]:
    from vitrify.data.samples import require_place

    require_place(place)
    found = read_labelled(place, plan.specs[0].kind, options.labels)
    if found.form == "none":
        if len(plan.models) < 2:
            raise DataError.of("labels.none", f"nothing at {place} says what is right", where=str(place),
                               why="without labels only the agreement of two forms of a model can be told",
                               help="name another form of the model behind the first, or add labels; "
                                    "docs/evaluating.md says in which forms")
        entries, told = _spread(_counted(found.entries, plan), options.samples), list(found.findings)
        return found, entries, told
    require_truths(found, measure, plan.specs[0].kind, place)
    entries, told = matched(found, plan.specs[0], classes, place)
    return found, _spread(entries, options.samples), [*found.findings, *told]


def _counted(entries: Sequence[Entry], plan: Plan) -> list[Entry]:
    """Files of arrays, one entry for each sample in them."""
    from vitrify.data.reading import source_of
    from vitrify.pipeline.verifying.verify import interface_of

    if all(e.index >= 0 for e in entries):
        return list(entries)
    interface = interface_of(Path(plan.models[0]), plan.conversion)
    made: list[Entry] = []
    for entry in entries:
        many = 1 if entry.index >= 0 else len(source_of(Path(entry.file), interface.inputs, plan.how))
        made += [Entry(entry.file, n) for n in range(many)]
    return made


def _spread(entries: list[Entry], limit: int | None) -> list[Entry]:
    if limit is None or limit >= len(entries):
        return entries
    return [entries[i * len(entries) // limit] for i in range(limit)]


def _key(plan: Plan, entries: Sequence[Entry], batch: int) -> str:
    """What an evaluation's kept batches belong to: the models' and the data's content, and every option."""
    stamps = [[e.file, Path(e.file).stat().st_size, Path(e.file).stat().st_mtime_ns]
              for e in {e.file: e for e in entries}.values() if Path(e.file).is_file()]
    return hash_value([msgspec.to_builtins(plan), [hash_file(Path(m)) for m in plan.models if Path(m).is_file()],
                       stamps, hash_value([msgspec.to_builtins(e) for e in entries]), batch])


def _scored(plan: Plan, entries: Sequence[Entry], kept: Kept, options: EvalOptions,
            shown: Reporter) -> tuple[list[Scored], int, int]:
    """What came of all batches, in their order; those of an earlier call are not done again."""
    firsts = range(0, len(entries), options.batch)
    reused = [first for first in firsts if str(first) in kept]
    done = sum(min(options.batch, len(entries) - first) for first in reused)
    before = done
    shown.advance(done, len(entries))

    def missing() -> Iterator[Batch]:
        for first in firsts:
            if first not in reused:
                yield Batch(first=first, entries=list(entries[first:first + options.batch]))

    def take(batch: Batch, found: dict[str, Any]) -> None:
        nonlocal done
        kept.add(str(batch.first), found)
        done += len(batch.entries)
        shown.advance(done, len(entries))

    workers = options.workers
    if len(reused) < len(firsts):
        if options.scheduler:
            workers = by_scheduler(plan, missing(), options.scheduler, take)
        else:
            by_processes(plan, missing(), min(workers, len(firsts) - len(reused)), take)
    return [msgspec.convert(kept[str(first)], Scored) for first in firsts], before, workers


def _summed(plan: Plan, entries: Sequence[Entry], scored: Sequence[Scored], measure: Measure,
            max_drop: float | None) -> EvalResult:
    numbers = [n for s in scored for n in s.kept]
    skipped = [f for s in scored for f in s.skipped]
    if not numbers:
        raise DataError(skipped[:TOLD])
    truths = _truths(plan, entries, scored)
    stages = []
    for place, name in enumerate(plan.names):
        records = [r for s in scored for r in s.records[place]]
        figures = {} if plan.pseudo and place == 0 else measure.total(records, truths, plan.specs[place])
        stages.append(StageScore(stage=name, figures=figures, samples=len(records),
                                 seconds=sum(s.inside[place] for s in scored), runtime=scored[0].runtimes[place]))
    findings = [msgspec.structs.replace(f, severity=Severity.WARNING) for f in skipped[:TOLD]]
    if len(skipped) > TOLD:
        findings.append(Finding(code="data.unreadable", severity=Severity.WARNING,
                                headline=f"the same holds for {counted(len(skipped) - TOLD, 'more file')}"))
    if len(skipped) * 2 >= len(entries):
        findings.append(Finding(code="data.most", headline=f"{len(skipped)} of {len(entries)} samples cannot be read",
                                help="the figures say little; repair the set"))
    findings += _dropped(stages, measure.main, plan.pseudo, max_drop)
    whole = sum(s.seconds for s in scored)
    return EvalResult(models=list(plan.models), truth="first stage" if plan.pseudo else "labels", main=measure.main,
                      stages=stages, samples=len(numbers), skipped=len(skipped), max_drop=max_drop, findings=findings,
                      inside=sum(map(sum, (s.inside for s in scored))) / whole if whole else 0.0)


def _truths(plan: Plan, entries: Sequence[Entry], scored: Sequence[Scored]) -> list[dict[str, Any]]:
    if plan.pseudo:
        return [t for s in scored for t in s.truths]
    found = []
    for s in scored:
        for number, sizes in zip(s.kept, s.truths, strict=True):
            truth = entries[number].truth or {}
            found.append(in_pixels(truth, sizes["size"]) | sizes if sizes else truth)
    return found


def _dropped(stages: Sequence[StageScore], main: str, pseudo: bool, limit: float | None) -> list[Finding]:
    """Say what the other stages lose of the main metric, and where that is more than allowed."""
    findings = []
    start = 100.0 if pseudo else stages[0].figures.get(main)
    for stage in stages[1:]:
        value = stage.figures.get(main)
        if start is None or value is None:
            continue
        stage.drop = start - value
        if limit is not None and stage.drop > limit:
            findings.append(Finding(
                code="eval.drop", where=stage.stage,
                headline=f"{stage.stage} loses {stage.drop:.2f} points of {main}, at most {limit:g} are allowed",
                why=f"{'the first stage agrees with itself' if pseudo else stages[0].stage}: {start:.2f}, "
                    f"{stage.stage}: {value:.2f}",
                help="`vitrify verify` shows where it is lost; quantize with --effort best or --metric and --max-drop"))
    return findings
