"""The error analysis: accumulated and single-operator error side by side, and what each operator costs the outputs.

Every operator's own error comes from one run of the quantized file taken apart (``forcing``), its cost from runs of the
float model with that error put in (``injecting``). Of what an operator adds, the noise that the rounding of its inputs
makes is taken off, as another operator answers for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.isolation import run_isolated
from vitrify.core.progress import ProgressCallback
from vitrify.data.binding import identity_interface, to_file_inputs
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.results import AnalysisRow, DistributionRow, FigureRow, OperatorRow
from vitrify.runtimes.litert import LiteRT
from vitrify.verify.metrics import Sums, finite
from vitrify.verify.operators.aligning import FEW, Aligned, align, causes, parts, passes_on
from vitrify.verify.operators.distributions import distribution
from vitrify.verify.operators.forcing import rounded, taken_apart
from vitrify.verify.operators.injecting import MODEL, Errors, costs_here, is_open, open_to_errors

Array = np.ndarray[Any, np.dtype[Any]]

COST_MACS = 400_000_000_000
"""Multiplications that finding the costs may take; of heavier models, the operators with the lowest SQNR are run."""

SHOWN = 12
"""Tensors whose distribution is kept: those of the operators that cost most."""

RESCALED_DB = 15.0
"""A tensor that is so much nearer when each channel is multiplied by a number has other channels on purpose."""


@dataclass
class _Seen:
    """The sums of one operator's tensor, and of the members of a join."""

    accumulated: Sums = field(default_factory=Sums)
    single: Sums = field(default_factory=Sums)
    parts: dict[str, Sums] = field(default_factory=dict)


def analyze(reference: Path, candidate: Path, samples: Iterable[Mapping[str, Array]],
            progress: ProgressCallback | None = None, names: tuple[str, str] = ("", "")) -> AnalysisRow:
    """Compare a float TFLite file with its quantized form, operator by operator.

    Args:
        reference: the float file, whose tensors have the names of the other's.
        candidate: the quantized file.
        samples: what both run on, by input name.
        progress: called with steps done and in all while the costs are found.
        names: what the answer calls both.

    Raises:
        UsageError: the two have no tensors in common, or there are no samples.
        VitrifyError: LiteRT does not run one of them.
    """
    from vitrify import tflite

    before, after = tflite.read(reference), tflite.read(candidate)
    given = list(samples)
    if not given:
        raise UsageError.of("data.none", "an analysis needs samples, and none were given", help="add --data FOLDER")
    with temporary_folder() as folder:
        work = _Analysis(before, after, reference, candidate, Path(folder), names)
        return work.run(given, progress)


class _Analysis:
    def __init__(self, before: Model, after: Model, reference: Path, candidate: Path, folder: Path,
                 names: tuple[str, str]) -> None:
        self.before, self.after = before, after
        self.paths = reference, candidate
        self.folder = folder
        self.names = names
        self.aligned = align(before.main, after.main)
        if not self.aligned.main:
            raise UsageError.of("verify.operators", "the files have no tensors in common to compare operators by",
                                why="none that is computed has an equal name and an equal shape",
                                help="give the float TFLite file that the other was made from, and that file")

    def run(self, samples: list[Mapping[str, Array]], progress: ProgressCallback | None) -> AnalysisRow:
        interface = self.before.interface or identity_interface(self.before)
        wanted = list(dict.fromkeys(ref.name for ref, _ in self.aligned.cuts if ref.producer is not None))
        with LiteRT(self.paths[0], kernels="optimized", interface=interface) as floats, \
                LiteRT(self.paths[1], kernels="optimized",
                       interface=self.after.interface or identity_interface(self.after)) as integers:
            self._leave_rescaled(floats, integers, samples[0], wanted)
            forced = taken_apart(self.after.main, self.aligned)
            from vitrify import tflite

            tflite.write(forced.model, self.folder / "apart.tflite")
            energies = [_energy(floats.run(sample)) for sample in samples]
            loudest = energies.index(max(energies))
            seen = {pair[1]: _Seen() for pair in self.aligned.main}
            errors = Errors(self.folder)
            spread: dict[Tensor, DistributionRow] = {}
            with LiteRT(self.folder / "apart.tflite", kernels="optimized",
                        interface=identity_interface(forced.model)) as apart:
                for number, sample in enumerate(samples):
                    values, got = self._values(floats, integers, sample, wanted)
                    own = to_file_inputs(integers.interface, sample, integers._details.inputs)
                    singles = dict(zip(forced.outputs, apart.invoke_raw(forced.feed(own, values)), strict=True))
                    self._add(seen, values, got, singles)
                    if number == loudest:
                        self._keep_errors(errors, values, singles)
                        spread = self._distributions(values, got)
        costs, known = self._costs(errors, samples[loudest], seen, progress)
        rows = self._rows(seen, costs)
        answer = AnalysisRow(reference=self.names[0], candidate=self.names[1], samples=len(samples), operators=rows,
                             sensitive_of=known, not_aligned=len(self.after.main) - len(rows))
        chosen = {row.tensor for row in answer.worst(SHOWN)}
        answer.distributions = [row for row in spread.values() if row.tensor in chosen]
        return answer

    def _values(self, floats: LiteRT, integers: LiteRT, sample: Mapping[str, Array],
                wanted: list[str]) -> tuple[dict[str, Array], dict[Tensor, Array]]:
        """The float model's tensors by name, its inputs among them, and the quantized model's, as integers."""
        traced = floats.trace(sample, wanted)
        values = {name: np.asarray(t.raw) for name, t in traced.items()}
        arrays = to_file_inputs(floats.interface, sample, floats._details.inputs)
        values |= {d["name"]: a for d, a in zip(floats._details.inputs, arrays, strict=True)}
        got = integers.trace(sample, [pair[1].name for pair in self.aligned.main])
        return values, {pair[1]: np.asarray(got[pair[1].name].raw) for pair in self.aligned.main}

    def _leave_rescaled(self, floats: LiteRT, integers: LiteRT, sample: Mapping[str, Array], wanted: list[str]) -> None:
        """Leave out tensors whose channels were given other sizes: they are equal to none of the float model's."""
        values, got = self._values(floats, integers, sample, wanted)
        left = {ref.name for ref, tensor in self.aligned.main if tensor.quantization is not None
                and is_rescaled(values[ref.name], tensor.quantization.dequantize(got[tensor]))}
        if left:
            for pairs in (self.aligned.cuts, self.aligned.main):
                pairs[:] = [pair for pair in pairs if pair[0].name not in left]

    def _add(self, seen: dict[Tensor, _Seen], values: Mapping[str, Array], got: Mapping[Tensor, Array],
             singles: Mapping[Tensor, Array]) -> None:
        for reference, tensor in self.aligned.main:
            real, own = values[reference.name], seen[tensor]
            step = None if tensor.quantization is None else float(tensor.quantization.scale.reshape(-1)[0])
            alone = _real(singles[tensor], tensor)
            own.accumulated.add(real, _real(got[tensor], tensor), step)
            own.single.add(real, alone, step)
            for name, place in parts(tensor.producer) if tensor.producer is not None else ():
                own.parts.setdefault(name, Sums()).add(real[place], alone[place], step)

    def _keep_errors(self, errors: Errors, values: Mapping[str, Array], singles: Mapping[Tensor, Array]) -> None:
        for number, (reference, tensor) in enumerate(self.aligned.main):
            if is_open(reference) and tensor.quantization is not None:
                real = values[reference.name]
                errors.add(number, "single", _real(singles[tensor], tensor) - real)
                errors.add(number, "rounding", _real(rounded(real, tensor), tensor) - real)

    def _distributions(self, values: Mapping[str, Array], got: Mapping[Tensor, Array]) -> dict[Tensor, DistributionRow]:
        found = {}
        for reference, tensor in self.aligned.main:
            kind = tensor.producer.op.kind if tensor.producer is not None else ""
            row = distribution(tensor, values[reference.name], got[tensor], kind) if reference.dtype.is_float else None
            if row is not None:
                found[tensor] = row
        return found

    def _costs(self, errors: Errors, sample: Mapping[str, Array], seen: Mapping[Tensor, _Seen],
               progress: ProgressCallback | None) -> tuple[dict[str, float], int]:
        """The share of the outputs' energy that each kept error makes wrong, by its file's name."""
        from vitrify import tflite

        macs = sum(node.op.macs(node) for node in self.before.main)
        order = sorted({n for n, _ in errors.names}, key=lambda n: seen[self.aligned.main[n][1]].single.sqnr_db)
        chosen = set(order[:max(SHOWN, COST_MACS // max(2 * macs, 1))])
        if not chosen:
            return {}, 0
        numbers = sorted(chosen)
        model = open_to_errors(self.before.main, [self.aligned.main[n][0] for n in numbers])
        path = self.folder / MODEL
        tflite.write(model, path)
        interface = self.before.interface or identity_interface(self.before)
        with LiteRT(self.paths[0], interface=interface) as floats:
            inputs = to_file_inputs(interface, sample, floats._details.inputs)
        place = {number: position for position, number in enumerate(numbers)}
        asked = [(place[n], name) for n, name in errors.names if n in chosen]
        found: dict[str, float] = run_isolated(
            f"{costs_here.__module__}:{costs_here.__name__}", str(path), str(self.folder), inputs, asked,
            what=f"finding what operators of {self.paths[1].name} cost", on_progress=progress or _silent)
        return found, len(chosen)

    def _rows(self, seen: Mapping[Tensor, _Seen], costs: Mapping[str, float]) -> list[OperatorRow]:
        numbers = {tensor: n for n, (_, tensor) in enumerate(self.aligned.main)}
        by_float = {reference.name: tensor for reference, tensor in self.aligned.main}
        dictated = _dictated(self.after.main, self.aligned, seen)
        own = {}
        for tensor, number in numbers.items():
            single, rounding = costs.get(f"single_{number}.npy"), costs.get(f"rounding_{number}.npy")
            if (single is None and rounding is None) or tensor in dictated or passes_on(_node(tensor)):
                continue
            read = sum(costs.get(f"rounding_{numbers[t]}.npy", 0.0)
                       for t in _feeding(tensor, set(numbers), by_float, self.aligned))
            own[tensor] = max(rounding or 0.0, (single or 0.0) - read)
        whole = sum(own.values())
        return [self._row(tensor, seen[tensor], costs.get(f"single_{numbers[tensor]}.npy"),
                          own[tensor] / whole if tensor in own and whole else None, dictated.get(tensor))
                for _, tensor in self.aligned.main]

    def _row(self, tensor: Tensor, seen: _Seen, alone: float | None, share: float | None,
             cause: Node | None) -> OperatorRow:
        node = _node(tensor)
        part = min(seen.parts, key=lambda name: seen.parts[name].sqnr_db, default="")
        dtype = tensor.dtype.numpy
        return OperatorRow(
            node=node.name, operator=node.op.kind, tensor=tensor.name, origin=[s.name for s in node.origin.sources],
            bits=None if tensor.quantization is None or dtype is None else dtype.itemsize * 8,
            accumulated=_figures(seen.accumulated), single=_figures(seen.single), part=part,
            part_db=finite(seen.parts[part].sqnr_db) if part else None,
            alone_db=finite(-10 * float(np.log10(alone))) if alone else None, share=share,
            cause=cause.name if cause is not None else "")


def _dictated(graph: Graph, aligned: Aligned, seen: Mapping[Tensor, _Seen]) -> dict[Tensor, Node]:
    """Tensors whose own values would have a finer scale than the join's that they must have."""
    found = {}
    known = {tensor for _, tensor in aligned.main}
    for tensor, join in causes(graph).items():
        if tensor in known and join.output in known and tensor is not join.output:
            own, whole = seen[tensor].single, seen[join.output].single
            if _width(own) < FEW * _width(whole):
                found[tensor] = join
    return found


def _width(sums: Sums) -> float:
    return sums.reference_max - min(sums.reference_min, 0.0)


def _feeding(tensor: Tensor, known: set[Tensor], by_float: Mapping[str, Tensor], aligned: Aligned) -> set[Tensor]:
    """The aligned tensors that an operator, with what was put before it, is computed from."""
    same = {other: by_float.get(ref.name) for ref, other in aligned.cuts}
    found, waiting = set[Tensor](), list(_node(tensor).inputs)
    while waiting:
        source = waiting.pop()
        if source is None or source.is_constant:
            continue
        main = source if source in known else same.get(source)
        if main is not None:
            found.add(main)
        elif source.producer is not None:
            waiting += source.producer.inputs
    return found


def _node(tensor: Tensor) -> Node:
    assert tensor.producer is not None
    return tensor.producer


def _energy(outputs: Mapping[str, Array]) -> float:
    """How much there is in the outputs: where nothing is found nothing can be lost."""
    return sum(float(np.square(v.astype(np.float64)).sum()) for v in outputs.values() if v.dtype.kind == "f")


def _real(value: Array, tensor: Tensor) -> Array:
    return value if tensor.quantization is None else tensor.quantization.dequantize(value)


def _figures(sums: Sums) -> FigureRow:
    return FigureRow(sqnr_db=finite(sums.sqnr_db), cosine=sums.cosine, max_lsb=sums.max_lsb, equal=sums.equal)


def is_rescaled(real: Array, given: Array) -> bool:
    """True when a number for each channel brings values much nearer to those of the float model."""
    if real.ndim < 2 or real.dtype != np.float32 or real.shape[-1] < 2:
        return False
    ref, out = (v.reshape(-1, v.shape[-1]).astype(np.float64) for v in (real, given))
    gains = (ref * out).sum(0) / np.maximum((out * out).sum(0), 1e-30)
    plain, fitted = np.square(ref - out).sum(), np.square(ref - gains * out).sum()
    return bool(plain > fitted * 10 ** (RESCALED_DB / 10) and np.square(ref).sum() < plain * 10)


def _silent(done: int, total: int) -> None:
    """Take progress that nobody asked for."""
