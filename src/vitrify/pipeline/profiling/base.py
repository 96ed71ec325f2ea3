"""What measuring and estimating share: what is asked, the answer's beginning, and what follows from its figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vitrify.core.errors import UsageError
from vitrify.pipeline.profiling.forms import Form, Forms
from vitrify.pipeline.steps import kind_of
from vitrify.profile.advice import advise
from vitrify.profile.mapping import map_forms
from vitrify.profile.sizes import link
from vitrify.results import ProfileResult

if TYPE_CHECKING:
    from vitrify.ir import Graph
    from vitrify.targets import Target


class ProfileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a profile: on this machine or on ``target``, and how it is run. ``modes``: each memory mode of
    the target is tried. ``integers``: on this machine, a float model is measured in integers too. ``save``: where the
    profiled file is written. ``on``: ``npusim`` runs a compiled file in the model of its NPU."""

    target: str = ""
    xnnpack: bool = True
    threads: int = 1
    runs: int | None = None
    warmup: int = 5
    modes: bool = False
    integers: bool = False
    save: Path | None = None
    on: str = ""

    def check(self) -> None:
        """Refuse figures that make no sense.

        Raises:
            UsageError: there is one.
        """
        if self.on not in ("", "npusim"):
            raise UsageError.of("profile.on", f"nothing here is called '{self.on}'", where="--on",
                                help="--on npusim, or leave it out")
        for name, value, least in (("--runs", self.runs, 1), ("--warmup", self.warmup, 0),
                                   ("--threads", self.threads, 1)):
            if value is not None and not least <= value <= MOST[name]:
                raise UsageError.of("call.invalid", f"{name} {value} is not between {least} and {MOST[name]}",
                                    where=name)


MOST = {"--runs": 100_000, "--warmup": 10_000, "--threads": 256}


@dataclass
class Profiled:
    """An answer, and the graph that it is about, None where it comes from a file of figures."""

    result: ProfileResult
    graph: Graph | None = None


def answer(form: Form) -> ProfileResult:
    """Begin an answer with what the profiled form is."""
    return ProfileResult(form=form.made, kind=kind_of(form.model), nodes=len(form.model.main),
                         graph=form.model.main.name, bytes=form.path.stat().st_size)


def complete_answer(result: ProfileResult, forms: Forms, chip: Target | None = None) -> None:
    """Add what follows from the figures: the edges of the graph, the way of each source node, and the hot spots."""
    link(result.operators, forms.profiled.model.main)
    _map(result, forms)
    result.advice = advise(result, forms.profiled.model, chip)


def _has_host(forms: Forms) -> bool:
    """True where the host computes the model's outputs from those of the integer form."""
    interface = forms.integers.model.interface if forms.integers else None
    return interface is not None and interface.host is not None


def _map(result: ProfileResult, forms: Forms) -> None:
    floating = forms.floating.model.main if forms.floating else None
    integers = forms.integers.model.main if forms.integers else None
    result.mapping = map_forms(forms.sources, floating, integers, result.operators, result.partitions,
                               result.float_operators, on_host=_has_host(forms))
