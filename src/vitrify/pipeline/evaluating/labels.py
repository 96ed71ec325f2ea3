"""Labels of a set against what a model gives: which number of the one is which of the other, and what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.pipeline.evaluating.sets.base import Entry, Labelled
from vitrify.tasks.metrics.base import Measure
from vitrify.tasks.spec import TaskSpec

SHOWN = 5


def matched(found: Labelled, spec: TaskSpec, classes: int, place: Path) -> tuple[list[Entry], list[Finding]]:
    """Return the samples with the model's own numbers as labels.

    Names decide where both have them; else the numbers, if all are below ``classes`` (0: not known); else, where there
    are as many, their order.

    Raises:
        DataError: the labels cannot be the model's.
    """
    used = sorted({int(v) for e in found.entries if e.truth for v in _labels(e)})
    if not used or (not found.classes and not classes):
        return found.entries, []
    mapping, told = _mapping(found, spec, used, classes, place)
    if all(mapping.get(v) == v for v in used):
        return found.entries, told
    return [msgspec.structs.replace(e, truth=None if e.truth is None else _renamed(e.truth, mapping))
            for e in found.entries], told


def _labels(entry: Entry) -> Sequence[int]:
    truth = entry.truth or {}
    return [truth["label"]] if "label" in truth else truth.get("labels", ())


def _mapping(found: Labelled, spec: TaskSpec, used: Sequence[int], classes: int,
             place: Path) -> tuple[dict[int, int], list[Finding]]:
    own = {name.strip().lower(): number for number, name in enumerate(spec.names)}
    by_name = {label: own[name.strip().lower()] for label, name in found.classes.items() if name.strip().lower() in own}
    if by_name:
        missing = [found.classes.get(v, str(v)) for v in used if v not in by_name]
        told = [Finding(code="labels.names", severity=Severity.WARNING, where=str(place),
                        headline=f"the model knows no class {', '.join(map(repr, missing[:SHOWN]))}"
                                 + (f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""),
                        why="these labels cannot be found and count as missed",
                        help="check --names, or take a set with the model's classes")] if missing else []
        spare = max(classes, len(spec.names), 1)
        return {v: by_name.get(v, spare + n) for n, v in enumerate(used)}, told
    ordered = sorted(found.classes)
    if found.classes and classes == len(ordered) and max(used) >= classes:
        return {label: number for number, label in enumerate(ordered)}, []
    if found.classes and spec.names and len(spec.names) != len(ordered):
        raise _unlike(found, spec, place)
    beyond = [v for v in used if classes and not 0 <= v < classes]
    if beyond:
        shown = ", ".join(map(str, beyond[:SHOWN]))
        raise DataError.of("labels.beyond", f"the set has labels beyond the model's {classes} classes: {shown}",
                           where=str(place), why=f"{counted(len(beyond), 'label')} of {len(used)} are no class of it",
                           help="give the names of the model's classes with --names, or labels from 0 on")
    return {v: v for v in used}, []


def _unlike(found: Labelled, spec: TaskSpec, place: Path) -> DataError:
    theirs, own = list(found.classes.values())[:SHOWN], list(spec.names)[:SHOWN]
    return DataError.of("labels.names", f"none of the set's {len(found.classes)} classes is one of the model's "
                        f"{len(spec.names)}", where=str(place),
                        why=f"the set has {', '.join(theirs)} …; the model has {', '.join(own)} …",
                        help="give the model's class names with --names")


def _renamed(truth: dict[str, object], mapping: dict[int, int]) -> dict[str, object]:
    if "label" in truth:
        return {**truth, "label": mapping[int(str(truth["label"]))]}
    labels = truth.get("labels", [])
    assert isinstance(labels, list)
    return {**truth, "labels": [mapping[int(v)] for v in labels]}


def require_truths(found: Labelled, measure: Measure, kind: str, place: Path) -> None:
    """See to it that the labels are those that the task is scored by.

    Raises:
        DataError: they are not.
    """
    lacks = [name for name in measure.needs if not any(e.truth and name in e.truth for e in found.entries)]
    if lacks and not (kind in ("saliency", "depth", "segmentation", "enlarging")
                      and all(e.truth and "values" in e.truth for e in found.entries)):
        has = sorted({name for e in found.entries[:100] for name in (e.truth or {})})
        raise DataError.of("labels.kind", f"{kind} is scored by {' and '.join(measure.needs)}; the set (form "
                           f"'{found.form}') has {', '.join(has) or 'no labels'}", where=str(place),
                           help="name the right --task, or --labels none for the agreement with the first stage")
