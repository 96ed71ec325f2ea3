"""The search itself: fewer nodes, smaller sizes, other weights, as long as the failure stays. Biggest cuts first."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from vitrify.core.words import counted
from vitrify.pipeline.reducing.drafts import Array, CannotCutError, Draft
from vitrify.pipeline.reducing.judging import Judge, expired
from vitrify.pipeline.reducing.predicates import Verdict
from vitrify.pipeline.reducing.values import Values
from vitrify.results import ReduceStep

_AROUND = (0, 1, 2, 4)         # nodes on both sides of one that the failure names
_SHRINK = (16, 8, 4, 2)
_EXTENTS = 40                  # sizes that are tried for one model
_FEW_NODES = 48                # above this, single nodes are not left out one by one


class Best(msgspec.Struct, kw_only=True):
    """The smallest model so far that fails."""

    draft: object
    inputs: dict[str, Array]
    verdict: Verdict


class TimeOverError(Exception):
    """The time that was given is over."""


class Search:
    """One search on its way; ``best`` is whole at any time."""

    def __init__(self, judge: Judge, values: Values, best: Best, seed: int, deadline: float | None,
                 tell: Callable[[str, int], None]) -> None:
        self.judge, self.values, self.best = judge, values, best
        self.seed, self.deadline, self.tell = seed, deadline, tell
        self.steps: list[ReduceStep] = []
        self.has_user_values = values.is_traced
        self._replaced: set[str] = set()
        self._names_now: dict[str, str] = {}

    def kept_weights(self, left: Iterable[str]) -> list[str]:
        """Which of the weights that are left hold the user's values."""
        replaced = {self._names_now.get(name, name) for name in self._replaced}
        return [name for name in left if name not in replaced]

    @property
    def draft(self) -> Draft:
        """The smallest model so far."""
        return self.best.draft  # type: ignore[return-value]

    def run(self) -> bool:
        """Reduce; False when the time was over before nothing more could be left out."""
        try:
            self._step("nodes", self._nodes)
            self._step("sizes", self._sizes)
            self._step("nodes again", self._nodes)
            self._step("weights", self._weights)
            self._step("inputs", self._inputs)
            self._step("names", self._names)
        except TimeOverError:
            return False
        return True

    def _step(self, name: str, work: Callable[[], None]) -> None:
        began, tries, before = time.monotonic(), self.judge.tries + self.judge.reused, len(self.draft.nodes)
        try:
            work()
        finally:
            self.steps.append(ReduceStep(
                name=name, tries=self.judge.tries + self.judge.reused - tries, nodes_before=before,
                nodes_after=len(self.draft.nodes), bytes_after=len(self.draft.data()),
                seconds=round(time.monotonic() - began, 2)))

    def take(self, make: Callable[[], Draft], values: Callable[[Draft], dict[str, Array]] | None = None) -> bool:
        """Try what ``make`` gives; when it fails as the model does, it is the best from here on.

        Raises:
            TimeOverError: there is no time left.
        """
        if expired(self.deadline):
            raise TimeOverError
        try:
            draft = make()
            inputs = (values or self.values.of)(draft)
            verdict = self.judge(draft, inputs)
        except CannotCutError:
            return False
        if verdict.fails:
            self.best = Best(draft=draft, inputs=inputs, verdict=verdict)
        self.tell(f"{counted(len(self.draft.nodes), 'node')}", self.judge.tries + self.judge.reused)
        return verdict.fails

    # nodes

    def _nodes(self) -> None:
        while len(self.draft.nodes) > 1 and self._around_named():
            pass
        self._halves()
        self._ddmin()
        if len(self.draft.nodes) <= _FEW_NODES:
            while self._single():
                pass

    def _keep(self, chosen: Iterable[int]) -> bool:
        numbers = sorted(set(chosen))
        if not numbers or len(numbers) >= len(self.draft.nodes):
            return False
        draft = self.draft
        return self.take(lambda: draft.keep(numbers))

    def _around_named(self) -> bool:
        """Try the nodes that the failure names, with more and more of what stands around them."""
        views, names = self.draft.nodes, set(self.best.verdict.names)
        found = [n for n, view in enumerate(views) if view.name in names or names & set(view.outputs)]
        for steps in _AROUND if found else ():
            chosen = set(found[:4])
            for _ in range(steps):
                chosen |= set(_neighbours(views, chosen))
            if self._keep(chosen):
                return True
        return False

    def _halves(self) -> None:
        """Keep one half as long as one fails, the second first: it needs no answers of the other."""
        while (count := len(self.draft.nodes)) > 1:
            middle, quarter = (count + 1) // 2, count // 4
            tried = ((middle, count), (0, middle), (quarter, count - quarter) if quarter else (0, 0))
            if not any(self._keep(range(*ends)) for ends in tried):
                return
            self._scale(_SHRINK[-1:])

    def _ddmin(self) -> None:
        """Keep or leave out smaller and smaller stretches."""
        parts = 4
        while (count := len(self.draft.nodes)) > 2 and parts <= count:
            ends = [round(count * n / parts) for n in range(parts + 1)]
            stretches = [range(a, b) for a, b in pairwise(ends)]
            if any(self._keep(stretch) for stretch in stretches):
                self._halves()
                parts = 4
            elif any(self._keep(set(range(count)) - set(stretch)) for stretch in stretches):
                parts = max(2, parts - 1)
            elif count > _FEW_NODES and parts * 2 > _FEW_NODES:
                return
            else:
                parts = count if parts * 2 > count > parts else parts * 2

    def _single(self) -> bool:
        count = len(self.draft.nodes)
        alone = any(self._keep([n]) for n in range(count)) if count <= 6 else False
        return count > 1 and (alone or any(self._keep(set(range(count)) - {n}) for n in range(count)))

    # sizes

    def _sizes(self) -> None:
        self._scale(_SHRINK)
        for view in self.draft.inputs:
            for axis in range(len(view.shape)):
                self._axis(view.name, axis)
        for old in self.draft.extents[:_EXTENTS]:
            if old in self.draft.extents:
                for new in _smaller(old):
                    if self._extent(old, new):
                        break

    def _scale(self, factors: Sequence[int]) -> None:
        """Make all pictures smaller by one factor: sizes that belong together stay together."""
        draft = self.draft
        places = _spatial(draft)
        for factor in factors:
            shapes = {view.name: tuple(-(-extent // factor) if axis in places(len(view.shape)) else extent
                                       for axis, extent in enumerate(view.shape)) for view in draft.inputs}
            if all(shapes[view.name] == view.shape for view in draft.inputs):
                return
            if self.take(lambda shapes=shapes: draft.with_inputs(shapes)):  # type: ignore[misc]
                return

    def _axis(self, name: str, axis: int) -> None:
        shape = next((view.shape for view in self.draft.inputs if view.name == name), ())
        if axis >= len(shape):
            return
        draft = self.draft
        for new in _smaller(shape[axis]):
            changed = (*shape[:axis], new, *shape[axis + 1:])
            if self.take(lambda changed=changed: draft.with_inputs({name: changed})):  # type: ignore[misc]
                return

    def _extent(self, old: int, new: int) -> bool:
        draft = self.draft
        return self.take(lambda: draft.with_extent(old, new))

    # values

    def _weights(self) -> None:
        """Put random weights of equal range in the place of the user's, all or some; else one number for all."""
        kept: list[str] = []
        self._random_weights(sorted(self.draft.weights), kept)
        for name in kept:
            self._constant(name)

    def _random_weights(self, names: Sequence[str], kept: list[str]) -> None:
        if not names:
            return
        draft = self.draft
        found = draft.weights
        if self.take(lambda: draft.with_weights({name: self._drawn(name, found[name]) for name in names})):
            self._replaced |= set(names)
            return
        if len(names) == 1:
            kept.append(names[0])
            return
        middle = len(names) // 2
        self._random_weights(names[:middle], kept)
        self._random_weights(names[middle:], kept)

    def _drawn(self, name: str, array: Array) -> Array:
        rng = np.random.default_rng((self.seed, zlib.crc32(name.encode())))
        low, high = float(array.min()), float(array.max())
        made: Array
        if array.dtype.kind in "iu":
            made = rng.integers(int(low), int(high), array.shape, endpoint=True).astype(array.dtype)
        else:
            made = np.asarray(rng.uniform(low, high, array.shape), array.dtype)
        flat = made.reshape(-1)
        flat[0], flat[-1] = array.min(), array.max()        # the range is equal, not only nearly
        return made

    def _constant(self, name: str) -> None:
        """Fill a weight with one number that it has."""
        draft = self.draft
        array = draft.weights[name]
        middle = np.sort(array.reshape(-1))[array.size // 2]
        if any(self.take(lambda value=value: draft.with_weights({name: np.full_like(array, value)}))  # type: ignore[misc]
               for value in dict.fromkeys((middle, array.max(), array.min()))):
            self._replaced.add(name)

    def _inputs(self) -> None:
        """Put random values of equal range in the place of what the user's data made of the inputs."""
        draft = self.draft
        if self.values.is_traced and self.take(lambda: draft, self.values.drawn):
            self.has_user_values = False

    def _names(self) -> None:
        draft, inputs = self.draft, self.best.inputs
        try:
            plain = draft.plain()
        except CannotCutError:
            return
        before = dict(zip((v.name for v in draft.inputs), (v.name for v in plain.inputs), strict=True))
        renamed = {before[name]: array for name, array in inputs.items()}
        weights = dict(zip(draft.weights, plain.weights, strict=True))
        if self.take(lambda: plain, lambda _: renamed):
            self._names_now = weights


def _neighbours(views: Sequence[object], chosen: Iterable[int]) -> Iterator[int]:
    """The nodes that read from or write to the chosen ones."""
    inside = set(chosen)
    reads = {name for n in inside for name in views[n].inputs}  # type: ignore[attr-defined]
    makes = {name for n in inside for name in views[n].outputs}  # type: ignore[attr-defined]
    for number, view in enumerate(views):
        if set(view.outputs) & reads or set(view.inputs) & makes:  # type: ignore[attr-defined]
            yield number


def _smaller(extent: int) -> list[int]:
    """Sizes to try in the place of one, the smallest first."""
    return [n for n in dict.fromkeys((1, 2, 4, 8, extent // 8, extent // 2)) if 0 < n < extent]


def _spatial(draft: Draft) -> Callable[[int], Sequence[int]]:
    """Where height and width stand by rank: behind the channels in ONNX, before them in TFLite."""
    first = 2 if draft.suffix == ".onnx" else 1
    return lambda rank: range(first, first + rank - 2) if rank > 2 else ()

