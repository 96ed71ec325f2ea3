"""The engine of a build: units of named stages, each reused when what it reads has not changed.

A unit ends in artifacts or sections of the record, so it can be reused as a whole; its stages are what the user sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from vitrify.core.errors import InternalError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.hashing import hash_value
from vitrify.core.progress import Reporter, Silent
from vitrify.pipeline.building.run import Memory, Run
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.versions import code
from vitrify.results import RunRecord, StageRecord

Options = TypeVar("Options")


@dataclass
class Context(Generic[Options]):
    """What the units of one build share."""

    run: Run
    options: Options
    reporter: Reporter = field(default_factory=Silent)
    meter: Meter = field(default_factory=Meter)

    def record_of(self, name: str) -> StageRecord:
        """Return the stage's record."""
        return next(stage for stage in self.run.record.stages if stage.name == name)

    @contextmanager
    def stage(self, name: str) -> Iterator[StageRecord]:
        """Run the block as the stage ``name``; the record is saved before and after, whatever happens."""
        record = self.record_of(name)
        record.status = "running"
        self.run.save()
        self.reporter.stage(name)
        meter = Meter()
        try:
            yield record
            record.status = "failed" if any(f.severity is Severity.ERROR for f in record.findings) else "done"
        except VitrifyError as error:
            record.status = "failed"
            record.findings = [*record.findings, *error.findings]
            raise
        except (KeyboardInterrupt, SystemExit):
            record.status = "interrupted"
            raise
        except BaseException:
            record.status = "failed"
            raise
        finally:
            record.seconds, record.peak_bytes = meter.seconds, meter.peak_bytes
            self.reporter.finish(name, record.text or record.status)
            self._save_quietly(record)

    def _save_quietly(self, record: StageRecord) -> None:
        """Save, unless the stage has failed already: then the first error is the one to tell."""
        try:
            self.run.save()
        except VitrifyError:
            if record.status == "done":
                raise


@dataclass(frozen=True)
class Unit(Generic[Options]):
    """Some stages that are cached together.

    ``key`` returns plain data: everything that the result depends on besides the versions. ``sections`` are the fields
    of the run record that the unit fills, ``artifacts`` the files.
    """

    name: str
    stages: tuple[str, ...]
    key: Callable[[Context[Options]], object]
    work: Callable[[Context[Options]], None]
    sections: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()


def carry_out(context: Context[Options], units: list[Unit[Options]], after: tuple[str, ...] = ()) -> None:
    """Carry out or reuse the units in order; ``after`` are stages that the caller adds at the end.

    Raises:
        VitrifyError: a stage failed; the record says which.
    """
    run = context.run
    run.set_aside()
    run.record.stages = [StageRecord(name=name) for name in (*(s for unit in units for s in unit.stages), *after)]
    run.save()
    made_by = [run.record.versions, code()]
    for unit in units:
        key = hash_value({"made by": made_by, "unit": unit.name, "of": run.record.name, "reads": unit.key(context)})
        memory = run.recall(unit.name)
        if memory is not None and memory.key == key and all(map(run.holds, memory.record.artifacts.values())):
            _reuse(context, unit, memory.record)
            continue
        unit.work(context)
        _check_promises(context, unit)
        records = [context.record_of(stage) for stage in unit.stages]
        for record in records:
            record.key = key
        if all(record.status == "done" for record in records):
            run.remember(unit.name, Memory(key=key, record=_part(run.record, unit, records)))
        run.save()


def _part(record: RunRecord, unit: Unit[Options], stages: list[StageRecord]) -> RunRecord:
    """Return a record that holds what the unit left and nothing else."""
    part = RunRecord(stages=stages, artifacts={name: record.artifacts[name] for name in unit.artifacts})
    for section in unit.sections:
        setattr(part, section, getattr(record, section))
    return part


def _reuse(context: Context[Options], unit: Unit[Options], left: RunRecord) -> None:
    run = context.run
    for section in unit.sections:
        setattr(run.record, section, getattr(left, section))
    run.record.artifacts |= left.artifacts
    for old in left.stages:
        record = context.record_of(old.name)
        record.status, record.key, record.text, record.findings = "reused", old.key, old.text, old.findings
        record.seconds, record.peak_bytes = old.seconds, old.peak_bytes
        context.reporter.finish(old.name, f"{old.text or 'done'} (reused)")
    run.save()


def _check_promises(context: Context[Options], unit: Unit[Options]) -> None:
    missing = [name for name in unit.artifacts if name not in context.run.record.artifacts]
    idle = [name for name in unit.stages if context.record_of(name).status in ("pending", "running")]
    if missing or idle:
        raise InternalError(Finding(code="internal.unit", help="please report this with run.json attached",
                                    headline=f"the unit '{unit.name}' left {', '.join(missing + idle)} undone"))
