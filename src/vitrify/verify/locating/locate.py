"""A form in LiteRT against the reference: accumulated, and operator by operator on the reference's own values.

A layout that fits by its shape alone may hide a fault: of a transposed tensor, the transposition that undoes it agrees
best. What reads the tensor decides: it was made for the layout that is meant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.files import temporary_folder
from vitrify.data.binding import identity_interface, to_file_inputs
from vitrify.ir import Graph, Model, Tensor
from vitrify.results.tracing import TracedRow
from vitrify.runtimes import Runtime
from vitrify.runtimes.litert import LiteRT
from vitrify.runtimes.litert.runtime import Kernels
from vitrify.verify.locating.figures import at_ends, figures, node_name, real
from vitrify.verify.locating.inputs import renamed_inputs
from vitrify.verify.locating.noise import (
    EQUAL,
    EXCESS,
    FAULT,
    ROUNDING,
    Own,
    shaken_model,
    shaken_value,
)
from vitrify.verify.locating.pairing import (
    Pair,
    choose_layouts,
    find_segments,
    fix_outputs,
    follow_reshapes,
    pair_tensors,
    prefer_common,
)
from vitrify.verify.metrics import Sums, cosine, finite, sqnr_db
from vitrify.verify.operators.aligning import Aligned
from vitrify.verify.operators.analysis import is_rescaled
from vitrify.verify.operators.forcing import Forced, rounded, taken_apart

Array = np.ndarray[Any, np.dtype[Any]]

TURNS = 10
"""How often layouts that are in doubt are tried otherwise."""
_CARRIED, UNKNOWN = "carried", "unknown"
_NEARER_DB, _SOME_DB, _CLEAR_DB, _LOST_DB = 3.0, 6.0, 40.0, 10.0
_HARM = 0.3
_FLOAT_LOW_DB, _FLOAT_GOOD_DB, _GOOD_DB = 40.0, 60.0, 20.0
_CLIP_GROWS = 10.0
"""Times the share of an input that is cut off which may be lost of a result because of it."""


@dataclass
class Located:
    """The rows of one stage in running order, and the first tensor that is wrong by itself."""

    stage: str
    rows: list[TracedRow] = field(default_factory=list)

    @property
    def fault(self) -> TracedRow | None:
        """The first tensor whose own error no rounding explains."""
        return next((row for row in self.rows if row.verdict == FAULT), None)

    @property
    def excess(self) -> TracedRow | None:
        """The first tensor with more noise than rounding explains."""
        return next((row for row in self.rows if row.verdict == EXCESS), None)


def locate(stage: str, reference: Runtime, source: Graph | None, path: Path, samples: Sequence[Mapping[str, Array]],
           kernels: Kernels | None = None) -> Located:
    """Compare a TFLite file with the reference, tensor by tensor.

    Args:
        stage: what the rows call the file.
        reference: the opened reference, whose inner tensors can be traced.
        source: the reference's graph where it is a TFLite file.
        path: the file.
        samples: by the reference's names of inputs.
        kernels: those that run the file; None: LiteRT's optimized ones.
    Raises:
        VitrifyError: LiteRT does not run the file, or the file's operators one by one.
    """
    from vitrify import tflite

    model = tflite.read(path)
    work = _Locating(stage, reference, source, model)
    with LiteRT(path, kernels=kernels or "optimized", traced_by="optimized" if kernels == "xnnpack" else None,
                interface=model.interface or identity_interface(model)) as candidate:
        return work.run(candidate, samples, kernels or "optimized")


@dataclass
class _Seen:
    """The values of one sample: the reference's by name, the candidate's by tensor as real numbers."""

    inputs: list[Array]
    reference: dict[str, Array]
    candidate: dict[str, Array]
    raw: dict[str, Array]


class _Locating:
    def __init__(self, stage: str, reference: Runtime, source: Graph | None, model: Model) -> None:
        self.stage, self.reference, self.source, self.model = stage, reference, source, model
        self.pairs = pair_tensors(reference.tensors, model.main, source)

    def run(self, candidate: LiteRT, samples: Sequence[Mapping[str, Array]], kernels: Kernels) -> Located:
        known = set(candidate.tensors)
        self.pairs = [pair for pair in self.pairs if pair.tensor.name in known]
        seen = [self._look(candidate, sample) for sample in samples]
        self.pairs = choose_layouts(self.pairs, seen[0].reference, seen[0].candidate,
                                    same_format=self.source is not None)
        fix_outputs(self.pairs, self.model)
        follow_reshapes(self.pairs, seen[0].reference, seen[0].candidate)
        prefer_common(self.pairs)
        find_segments(self.pairs, self.model.main)
        self._leave_misnamed(seen)
        find_segments(self.pairs, self.model.main)
        if not self.pairs:
            return Located(self.stage)
        with temporary_folder() as folder:
            own = self._settled(seen, folder, kernels)
            for _ in range(TURNS):
                if not self._leave_others(seen, own):
                    break
                own = self._own(seen, folder, kernels)
        return Located(self.stage, self._rows(seen, own))

    def _look(self, candidate: LiteRT, sample: Mapping[str, Array]) -> _Seen:
        values = self.reference.trace(sample, list(dict.fromkeys(pair.reference for pair in self.pairs)))
        given = renamed_inputs(sample, self.reference, candidate)
        traced = candidate.trace(given, list(dict.fromkeys(pair.tensor.name for pair in self.pairs)))
        return _Seen(to_file_inputs(candidate.interface, given, candidate._details.inputs),
                     {name: np.asarray(one.value) for name, one in values.items()},
                     {name: np.asarray(one.value) for name, one in traced.items()},
                     {name: np.asarray(one.raw) for name, one in traced.items()})

    def _leave_misnamed(self, seen: Sequence[_Seen]) -> None:
        """Leave out tensors that only share a name: they differ while all that is computed from them agrees, or are
        the reference's times a number for each channel."""
        first, good = seen[0], set[Tensor]()
        readers: dict[Tensor, list[Pair]] = {}
        for pair in self.pairs:
            for tensor in pair.before:
                readers.setdefault(tensor, []).append(pair)
        left = set[Tensor]()
        for pair in reversed(self.pairs):
            tensor, sides = pair.tensor, self._sides(pair, first)
            exact, value = tensor.quantization is None, sqnr_db(*sides)
            low = value < _FLOAT_LOW_DB if exact else value < 3.0 and cosine(*sides) < 0.5
            if value > (_FLOAT_GOOD_DB if exact else _GOOD_DB):
                good.add(tensor)
            elif (low or (not exact and is_rescaled(*sides))) and tensor in readers and all(
                    one.tensor in good for one in readers[tensor]):
                left.add(tensor)
                good.add(tensor)
        self.pairs = [pair for pair in self.pairs if pair.tensor not in left]

    def _leave_others(self, seen: Sequence[_Seen], own: Mapping[Tensor, Own]) -> bool:
        """Leave out tensors that are made otherwise on purpose, as where a factor moved from a query to a key: what
        reads them is nearer to the reference when it reads them than when it reads the reference's own."""
        odd = []
        by_tensor = {pair.tensor: pair for pair in self.pairs}
        for pair in self.pairs:
            if self._verdict(pair, own) in (EQUAL, ROUNDING):
                continue
            rescaled = is_rescaled(*self._sides(pair, seen[0]))
            least = sqnr_db(*self._sides(pair, seen[0])) + _NEARER_DB if rescaled else math.inf
            given = min((sqnr_db(*self._sides(by_tensor[t], seen[0])) for t in pair.before if t in by_tensor),
                        default=_CLEAR_DB)
            least = max(least, min(given, _CLEAR_DB) - _LOST_DB)
            for reader in self.pairs:
                if pair.tensor in reader.before:
                    whole, alone = sqnr_db(*self._sides(reader, seen[0])), own[reader.tensor].sums.sqnr_db
                    if whole > _SOME_DB and whole > min(alone + (1.0 if rescaled else _NEARER_DB), least):
                        odd.append(pair)
                        break
        self.pairs = [pair for pair in self.pairs if pair not in odd]
        find_segments(self.pairs, self.model.main)
        return bool(odd)

    @staticmethod
    def _sides(pair: Pair, one: _Seen) -> tuple[Array, Array]:
        return pair.layout.apply(one.reference[pair.reference]), one.candidate[pair.tensor.name]

    def _settled(self, seen: Sequence[_Seen], folder: Path, kernels: Kernels) -> dict[Tensor, Own]:
        """Run the operators one by one; where layouts are in doubt, decide them by what reads the tensors."""
        own = self._own(seen, folder, kernels)
        by_tensor = {pair.tensor: pair for pair in self.pairs}
        for _ in range(TURNS):
            wrong = [pair for pair in self.pairs if self._verdict(pair, own) == FAULT]
            doubted = list({id(p): p for pair in wrong for t in pair.before
                            if (p := by_tensor.get(t)) is not None and len(p.options) > 1}.values())
            doubted = [pair for pair in doubted if pair not in wrong] or doubted
            if not doubted:
                break
            before = {id(pair): list(pair.options) for pair in doubted}
            for pair in doubted:
                pair.options = [*pair.options[1:], pair.options[0]]
            tried = self._own(seen, folder, kernels)
            worse = [pair for pair in doubted if not self._reads_better(pair, own, tried)]
            for pair in doubted:
                was = before[id(pair)]
                pair.options = [was[0], *was[2:], was[1]] if pair in worse else pair.options[:1]
            own = self._own(seen, folder, kernels) if worse else tried
        return own

    def _reads_better(self, doubted: Pair, before: Mapping[Tensor, Own], after: Mapping[Tensor, Own]) -> bool:
        """True when what reads a tensor has a hundredth of the error in the other layout."""
        readers = [pair for pair in self.pairs if doubted.tensor in pair.before]
        return any(after[p.tensor].ratio(p.tensor) < 0.01 * before[p.tensor].ratio(p.tensor) for p in readers)

    def _own(self, seen: Sequence[_Seen], folder: Path, kernels: Kernels) -> dict[Tensor, Own]:
        from vitrify import tflite

        cuts = [(Tensor(f"{number}", pair.tensor.dtype, pair.tensor.shape), pair.tensor)
                for number, pair in enumerate(self.pairs)]
        forced = taken_apart(self.model.main, Aligned(cuts=cuts))
        plain, shaken = folder / "apart.tflite", folder / "shaken.tflite"
        tflite.write(forced.model, plain)
        tflite.write(shaken_model(forced.model.main), shaken)
        found = {pair.tensor: Own() for pair in self.pairs}
        random = np.random.default_rng(0)
        interface = identity_interface(forced.model)
        with LiteRT(plain, kernels=kernels, interface=interface) as apart, \
                LiteRT(shaken, kernels=kernels, interface=interface) as moved:
            for one in seen:
                wanted = [np.ascontiguousarray(pair.layout.apply(one.reference[pair.reference]))
                          for pair in self.pairs]
                given = apart.invoke_raw(self._fed(forced, one, wanted, None))
                other = moved.invoke_raw(self._fed(forced, one, wanted, random))
                for pair, want, got, jitter in zip(self.pairs, wanted, given, other, strict=True):
                    found[pair.tensor].add(want, real(got, pair.tensor), real(jitter, pair.tensor), pair.tensor)
        return found

    def _fed(self, forced: Forced, one: _Seen, wanted: Sequence[Array],
             random: np.random.Generator | None) -> list[Array]:
        fed = forced.model.main.inputs[forced.own:]
        values = [wanted[int(name)] for name in forced.inputs]
        if random is not None:
            values = [shaken_value(value, tensor, random) for value, tensor in zip(values, fed, strict=True)]
        return [*one.inputs, *(rounded(value, tensor) for value, tensor in zip(values, fed, strict=True))]

    def _verdict(self, pair: Pair, own: Mapping[Tensor, Own]) -> str:
        kinds = {node.op.kind for node in pair.between}
        hybrid = pair.tensor.quantization is None and any(
            t is not None and t.is_constant and t.dtype.numpy == np.dtype(np.int8)
            for node in pair.between for t in node.inputs)
        return own[pair.tensor].verdict(pair.tensor, kinds, len(pair.between), is_hybrid=hybrid)

    def _rows(self, seen: Sequence[_Seen], own: Mapping[Tensor, Own]) -> list[TracedRow]:
        verdicts = {pair.tensor: self._verdict(pair, own) for pair in self.pairs}
        clipped = {pair.tensor for pair in self.pairs if own[pair.tensor].is_clipped(pair.tensor)}
        lost = {tensor: one.clipped_power / max(one.signal, 1e-60) for tensor, one in own.items()}
        harmful = {t for t in clipped if t.is_output or not any(t in pair.before for pair in self.pairs)
                   or any(t in pair.before and own[pair.tensor].share > _HARM * lost[t] for pair in self.pairs)}
        return [self._row(pair, seen, own[pair.tensor], verdicts[pair.tensor], harmful, lost) for pair in self.pairs]

    def _row(self, pair: Pair, seen: Sequence[_Seen], own: Own, verdict: str, harmful: set[Tensor],
             lost: Mapping[Tensor, float]) -> TracedRow:
        tensor, sums, ends = pair.tensor, Sums(), 0.0
        step = tensor.quantization.scale.reshape(-1)[:1] if tensor.quantization is not None else None
        for one in seen:
            sums.add(pair.layout.apply(one.reference[pair.reference]), one.candidate[tensor.name], step)
            ends += at_ends(one.raw[tensor.name])
        why = ""
        if tensor in harmful:
            verdict, why = FAULT, f"{100 * own.clipped_share:.3g} % of the values are beyond what its scale can hold"
        elif verdict in (FAULT, EXCESS) and own.share < _CLIP_GROWS * max(
                (lost[t] for t in pair.before if t in lost), default=0.0):
            verdict, why = _CARRIED, "an input is cut off"
        elif own.sums.not_finite > own.sums.not_finite_in_both:
            why = f"{own.sums.not_finite - own.sums.not_finite_in_both} values are not finite on one side only"
        node = tensor.producer
        channels = own.worst_channels(tensor)[:16] if verdict in (FAULT, EXCESS) and not why else []
        if channels and len(channels) < own.error.size:
            why = f"channel{'s' if len(channels) > 1 else ''} {', '.join(map(str, channels[:6]))} of {own.error.size}"
        return TracedRow(
            stage=self.stage, tensor=pair.reference, candidate=tensor.name if tensor.name != pair.reference else "",
            operator=node.op.kind if node is not None else "", node=node_name(tensor), matched=pair.matched,
            layout=str(pair.layout) if pair.layout.perm or pair.layout.shape else "", accumulated=figures(sums),
            own=figures(own.sums), expected_db=finite(own.expected_db(tensor)), verdict=verdict, why=why,
            saturated=ends / len(seen) if tensor.quantization is not None else None, clipped=own.clipped_share,
            not_finite=max(sums.not_finite - sums.not_finite_in_both, own.sums.not_finite
                           - own.sums.not_finite_in_both), channels=channels, covers=[
                               t.name for node in reversed(pair.between) for t in node.outputs
                               if t is not tensor and t.name])
