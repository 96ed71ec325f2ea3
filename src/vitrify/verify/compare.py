"""Forms of one model on the same inputs: stage by stage, output by output, tensor by tensor.

Each form is a stage and is compared with the first. Samples stream; of each pair of tensors only sums are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import ProgressCallback
from vitrify.core.words import counted
from vitrify.data.limits import not_numbers
from vitrify.results import ComparisonRow
from vitrify.runtimes import Observation, Runtime
from vitrify.runtimes import open as open_runtime
from vitrify.verify.alignment import as_taken, downstream, inner_tensors, match
from vitrify.verify.gate import BY_PRECISION, FLOAT, STEPS, Gate
from vitrify.verify.judging import judge
from vitrify.verify.metrics import Array, sqnr_db
from vitrify.verify.pairs import OutputPair, TensorPair

TRACED_SAMPLES = 4
"""Samples whose inner tensors are compared; outputs are compared on all."""


@dataclass(frozen=True)
class Stage:
    """One form of the model: what reports call it, and its file.

    ``kernels``: LiteRT's, None for ``auto``: the reference where the file holds integers.
    ``gate``: None for the one that fits the file.
    """

    name: str
    path: Path
    kernels: str | None = None
    gate: Gate | None = None


@dataclass
class Verification:
    """What came out: a row per stage after the first, findings, and where trouble begins, in words."""

    stages: list[ComparisonRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    first_divergence: str | None = None
    samples: int = 0

    @property
    def ok(self) -> bool:
        """True when every stage passed its gate."""
        return all(stage.ok for stage in self.stages)


@dataclass
class Compared:
    """One stage with its runtime and all its pairs."""

    stage: Stage
    runtime: Runtime
    gate: Gate
    inputs: dict[str, str]
    outputs: list[OutputPair]
    tensors: list[TensorPair]

    def add(self, sample: Mapping[str, Array], reference: Observation, traced: bool) -> None:
        """Run this stage on one sample and compare."""
        names = [pair.candidate for pair in self.tensors] if traced else []
        seen = self.runtime.observe(self._inputs(sample), list(dict.fromkeys(names)))
        for pair in self.outputs:
            pair.add(reference.outputs[pair.reference], seen)
        for inner in self.tensors if traced else ():
            if inner.candidate in seen.tensors and inner.reference in reference.tensors:
                value = seen.tensors[inner.candidate]
                step = value.quantization.scale.reshape(-1)[:1] if value.quantization else None
                inner.add(reference.tensors[inner.reference].value, value.value, step)

    def _inputs(self, sample: Mapping[str, Array]) -> dict[str, Array]:
        return as_taken(sample, self.inputs, self.runtime.interface.inputs)


def compare(stages: Sequence[Stage], samples: Iterable[Mapping[str, Array]], *,
            shapes: Mapping[str, Sequence[int] | int] | None = None, values: Mapping[str, Any] | None = None,
            tensors: bool = True, traced_samples: int = TRACED_SAMPLES, total: int | None = None, threads: int = 1,
            progress: ProgressCallback | None = None) -> Verification:
    """Compare every stage with the first on all samples.

    Args:
        stages: two or more forms of one model; the first is the reference.
        samples: inputs by the first model's names, in its layout.
        shapes, values: static shapes and constants for the inputs of an ONNX model.
        tensors: also compare inner tensors, on the first ``traced_samples`` samples.
        total: the number of samples, for progress, where ``samples`` has no length.
    Raises:
        UsageError: fewer than two stages, no samples, or models that do not belong together.
        VitrifyError: a runtime refuses a model or dies of it.
    """
    if len(stages) < 2:
        raise UsageError.of("verify.stages", f"{len(stages)} model given, at least 2 are needed to compare")
    count = total if total is not None else len(samples) if isinstance(samples, Sized) else 0
    with ExitStack() as stack:
        reference = stack.enter_context(_open(stages[0], shapes, values, threads))
        compared = [_prepare(stage, stack.enter_context(_open(stage, shapes, values, threads)), reference, tensors)
                    for stage in stages[1:]]
        wanted = list(dict.fromkeys(pair.reference for c in compared for pair in c.tensors))
        done, not_finite = 0, _NotFinite()
        for sample in samples:
            not_finite.add(sample)
            traced = done < traced_samples
            seen = reference.observe(sample, wanted if traced else [])
            for each in compared:
                each.add(sample, seen, traced)
            if traced:
                _set_floors(compared, reference, sample, seen)
            done += 1
            if progress is not None:
                progress(done, max(count, done))
        if not done:
            raise UsageError.of("verify.samples", "there are no samples to compare on")
    result = _conclude(stages[0], compared, done)
    result.findings[:0] = not_finite.findings()
    return result


@dataclass
class _NotFinite:
    """The inputs that held NaN: how many samples, and what is said of the first."""

    seen: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, sample: Mapping[str, Array]) -> None:
        """Look through a sample."""
        for name, array in sample.items():
            said = not_numbers(name, np.asarray(array))
            if said:
                count, first = self.seen.get(name, (0, said))
                self.seen[name] = count + 1, first

    def findings(self) -> list[Finding]:
        """A warning for each such input."""
        return [Finding(code="data.not_finite", severity=Severity.WARNING, where=f"input '{name}'", headline=said,
                        why=f"{counted(count, 'sample')} with NaN; what comes of it says little of the models",
                        help="repair the sample or leave it out") for name, (count, said) in self.seen.items()]


def _conclude(reference: Stage, compared: Sequence[Compared], samples: int) -> Verification:
    """Judge every stage; the first one that fails says where trouble begins."""
    result = Verification(samples=samples)
    for each in compared:
        verdict = judge(each.stage.name, each.outputs, each.tensors, each.gate)
        row = ComparisonRow(name=each.stage.name, reference=reference.name, samples=samples, ok=verdict.ok,
                            outputs=verdict.outputs, tensors=verdict.tensors)
        result.stages.append(row)
        result.findings += verdict.findings
        result.first_divergence = result.first_divergence or verdict.divergence
    return result


def _set_floors(compared: Sequence[Compared], reference: Runtime, sample: Mapping[str, Array],
                seen: Observation) -> None:
    """Measure how much the reference itself magnifies a rounding, at most, where a gate asks for it."""
    if all(each.gate.floor_margin_db is None for each in compared):
        return
    nudged = reference.run({name: _nudge(array) for name, array in sample.items()})
    for pair in (pair for each in compared for pair in each.outputs):
        floor = sqnr_db(seen.outputs[pair.reference], nudged[pair.reference])
        pair.floor_db = floor if pair.floor_db is None else min(floor, pair.floor_db)


def _nudge(array: Array) -> Array:
    """Change floats by one last place, up and down in turn by a fixed random choice."""
    if array.dtype != np.float32:
        return array
    up = np.random.default_rng(0).integers(0, 2, array.shape).astype(bool)
    return np.nextafter(array, np.where(up, np.float32(np.inf), np.float32(-np.inf)))


def _open(stage: Stage, shapes: Mapping[str, Sequence[int] | int] | None, values: Mapping[str, Any] | None,
          threads: int) -> Runtime:
    if _is_tflite(stage.path):
        return open_runtime(stage.path, kernels=stage.kernels or "auto", threads=threads)
    return open_runtime(stage.path, shapes=shapes, values=values, threads=threads)


def _is_tflite(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(8)[4:] == b"TFL3"


def _prepare(stage: Stage, runtime: Runtime, reference: Runtime, tensors: bool) -> Compared:
    left, right = reference.interface, runtime.interface
    inputs = match(left.inputs, right.inputs, _through(reference, runtime), "inputs")
    outputs = match(left.outputs, right.outputs, _through(reference, runtime), "outputs")
    gate = stage.gate or _gate(runtime, reference)
    apart = {b.name for b in right.outputs if right.host is not None or len(b.parts) > 1}
    pairs = [OutputPair(a, b, is_apart=b in apart) for a, b in outputs.items()]
    inner = _inner(stage, runtime, reference) if tensors and runtime.capabilities.trace else []
    return Compared(stage, runtime, gate, inputs, pairs, inner)


def _gate(runtime: Runtime, reference: Runtime) -> Gate:
    """Hold two files of one precision to roundings; integer kernels of two runtimes round each step differently."""
    if runtime.precision != reference.precision:
        return BY_PRECISION[runtime.precision]
    return STEPS if runtime.precision == "integer" and type(runtime) is not type(reference) else FLOAT


def _through(reference: Runtime, runtime: Runtime) -> dict[str, str]:
    """Other names of the reference's inputs and outputs, to the candidate's: either side may use tensor names."""
    found = dict(runtime.aliases)
    for tensor, name in reference.aliases.items():
        found.setdefault(name, runtime.aliases.get(tensor, tensor))
    return found


def _inner(stage: Stage, runtime: Runtime, reference: Runtime) -> list[TensorPair]:
    if not reference.capabilities.trace:
        return []
    if not _is_tflite(stage.path):
        own = set(runtime.tensors) - {binding.name for binding in runtime.interface.outputs}
        return [TensorPair(name, name) for name in reference.tensors if name in own]
    from vitrify.tflite import read

    graph = read(stage.path).main
    known = set(runtime.tensors)
    aligned = [(name, tensor) for name, tensor in inner_tensors(reference.tensors, graph)
               if tensor.name in known and not tensor.is_output]
    reach = downstream(graph, [tensor for _, tensor in aligned])
    return [TensorPair(name, tensor.name, tensor.producer.op.kind if tensor.producer else "", reach[id(tensor)])
            for name, tensor in aligned]
