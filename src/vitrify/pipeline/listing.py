"""`targets`: the chips that are known, and of one all facts with their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitrify.core.errors import UsageError
from vitrify.pipeline.checking.judging import has_compiler
from vitrify.results import FactRow, TargetRow, TargetsResult

if TYPE_CHECKING:
    from vitrify.targets import Target

_SHOWN = ("macs_per_cycle", "clock_hz", "cache_bytes")
"""The facts that the list of chips shows."""


def list_targets(name: str = "") -> TargetsResult:
    """Return a row for each target; of one that is named, its facts too.

    Raises:
        UsageError: there is no such target; names those that are near.
    """
    from difflib import get_close_matches

    from vitrify.targets import base as targets

    known = targets.names()
    if name and name not in known:
        near = [one for one in known if name.lower() in one] or get_close_matches(name.lower(), known, 3, 0.5)
        raise UsageError.of("target.unknown", f"unknown target '{name}'",
                            help=f"perhaps {', '.join(near)}" if near else f"use one of: {', '.join(known)}")
    chips = [targets.load(one) for one in ([name] if name else known)]
    return TargetsResult(name=name, targets=[_row(chip, bool(name)) for chip in chips])


def _row(chip: Target, in_full: bool) -> TargetRow:
    from vitrify.targets.rules import rules_of
    from vitrify.targets.rules.rule import applying

    applied = {id(rule) for some in applying(rules_of(chip.family), chip.core).values() for rule in some}
    facts = [FactRow(name=name, value=fact.value, low=fact.low, high=fact.high, basis=fact.basis, source=fact.source)
             for name, fact in chip.facts.items()] if in_full else []
    return TargetRow(
        name=chip.name, title=chip.title, npu=chip.npu, backend=chip.backend, has_compiler=has_compiler(chip),
        accelerator=chip.accelerator, family=chip.family, core=chip.core, rules=len(applied),
        where_compiled=chip.where_compiled, macs_per_cycle=_whole(chip.known("macs_per_cycle")),
        clock_hz=chip.known("clock_hz"), cache_bytes=_whole(chip.known("cache_bytes")),
        assumed=[name for name in _SHOWN if name in chip.facts and chip.fact(name).basis != "documented"],
        operators=_operators(chip) if in_full else [], facts=facts)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _operators(chip: Target) -> list[str]:
    """The operators that the family's tables name for the core, where it has such a table."""
    import importlib

    package = importlib.import_module(f"vitrify.targets.{chip.family}")
    listed = getattr(package, "operators", None)
    return sorted(listed(chip.core)) if listed is not None else []
