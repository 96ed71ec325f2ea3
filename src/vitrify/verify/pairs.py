"""A tensor of the reference and the one of another form that should equal it, with the sums of their difference."""

from __future__ import annotations

from dataclasses import dataclass, field

from vitrify.core.errors import UsageError
from vitrify.runtimes import Observation
from vitrify.verify.agreement import Agreement, is_discrete
from vitrify.verify.alignment import Layout, choose, layouts
from vitrify.verify.channels import channel_axis
from vitrify.verify.metrics import Array, ChannelSums, Sums


@dataclass
class OutputPair:
    """An output of the reference and of one stage: names, layout, sums.

    ``floor_db``: the SQNR that is left of the reference's own output when its inputs change by one rounding.
    ``is_apart``: the candidate's file gives this output in several pieces. ``agreed``: of one that is class numbers,
    indices or flags, which are equal or not, and know no nearer and farther.
    """

    reference: str
    candidate: str
    layout: Layout | None = None
    sums: Sums = field(default_factory=Sums)
    channels: ChannelSums | None = None
    saturated: float = 0.0
    floor_db: float | None = None
    agreed: Agreement | None = None
    seen: int = 0
    is_apart: bool = False

    def add(self, reference: Array, seen: Observation) -> None:
        """Take in one sample."""
        candidate = seen.outputs[self.candidate]
        if self.layout is None:
            self.layout = choose(candidate, reference)
            if self.layout is None:
                raise UsageError.of("verify.shape", f"output '{self.reference}' is {list(reference.shape)} in the "
                                    f"first model and {list(candidate.shape)} as '{self.candidate}' in the other",
                                    help="compare forms of one model, with the same --shape")
            axis = channel_axis(reference)
            self.channels = ChannelSums(axis) if axis is not None and not is_discrete(reference) else None
        candidate = self.layout.apply(candidate)
        if is_discrete(reference):
            self.agreed = self.agreed or Agreement()
            self.agreed.add(reference, candidate)
        step = seen.steps.get(self.candidate)
        self.sums.add(reference, candidate, None if step is None else self.layout.apply(step))
        if self.channels is not None:
            self.channels.add(reference, candidate)
        self.saturated += seen.saturated.get(self.candidate, 0.0)
        self.seen += 1


@dataclass
class TensorPair:
    """An inner tensor of the reference and of one stage.

    ``downstream`` has a bit for each pair, by number, that is computed from this one.
    """

    reference: str
    candidate: str
    operator: str = ""
    downstream: int = 0
    layout: Layout | None = None
    sums: Sums = field(default_factory=Sums)

    def add(self, reference: Array, candidate: Array, step: Array | None) -> None:
        """Take in one sample; a pair whose shapes never fit stays empty."""
        if self.layout is None or self.layout not in layouts(reference.shape, candidate.shape):
            self.layout = choose(reference, candidate)
        if self.layout is not None:
            self.sums.add(self.layout.apply(reference), candidate, step)
