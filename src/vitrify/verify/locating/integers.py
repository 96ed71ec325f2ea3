"""Two integer forms with the same scales: each operator of the one on the values that the other gave.

This is how forms are judged that cannot be taken apart: a compiled file, or what was recorded on a board. The source's
operators are given the inputs that the other form had, and what they make of them is what it should have made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.files import temporary_folder
from vitrify.data.binding import identity_interface
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.ops import Concatenation
from vitrify.results.tracing import FigureOfTensor, TracedRow
from vitrify.runtimes.litert import LiteRT
from vitrify.runtimes.litert.runtime import Kernels
from vitrify.verify.locating.figures import at_ends, figures, node_name
from vitrify.verify.locating.locate import Located
from vitrify.verify.locating.noise import EQUAL, EXCESS, FAULT, ROUNDING
from vitrify.verify.locating.pairing import Pair, find_segments
from vitrify.verify.metrics import Sums
from vitrify.verify.operators.aligning import Aligned, parts
from vitrify.verify.operators.forcing import taken_apart

Array = np.ndarray[Any, np.dtype[Any]]

ONE = 1.0
"""Steps that one rounding may be off by."""
_MARGIN = 2.0
"""Times what LiteRT's own kernels are apart on the same values."""
_MEAN, _MEAN_EXCESS = 0.3, 0.5
"""Steps of all values together: a rounding goes either way, a shifted zero point or a truncation does not."""
_EXCESS_STEPS = 3.0


def locate_integers(stage: str, source: Path, inputs: Sequence[Sequence[Array]],
                    given: Sequence[Mapping[str, Array]] | None, *, kernels: Kernels = "reference",
                    other: Path | None = None, other_kernels: Kernels = "xnnpack") -> Located:
    """Hold each tensor of a form against the source's operators on the form's own values.

    Args:
        stage: what the rows call the form.
        source: the TFLite file that it was made of, whose tensors' names and scales it has.
        inputs: the file's own input tensors, for each sample.
        given: the form's tensors by the source's names, as integers, for each sample; None for a form whose kernels
            hide them: then its operators are run one by one too, on the source's values.
        other, other_kernels: that form's file, and those kernels.
        kernels: LiteRT's, that say what is right.
    Raises:
        VitrifyError: LiteRT does not run the source's operators one by one.
    """
    from vitrify import tflite

    model = tflite.read(source)
    if given is None:
        return _by_kernels(stage, source, model, inputs, kernels, other or source, other_kernels)
    more = [_with_parts(model.main, one) for one in given]
    found = _located(stage, source, model, inputs, more, kernels)
    derived = {tensor for one, plain in zip(more, given, strict=True) for tensor in one.keys() - plain.keys()}
    wrong = [row for row in found.rows if row.verdict == FAULT]
    if derived and len(wrong) > 1:      # the join or the split itself may be wrong: judge it with what it joins
        return _located(stage, source, model, inputs, given, kernels)
    return found


def _located(stage: str, source: Path, model: Model, inputs: Sequence[Sequence[Array]],
             given: Sequence[Mapping[str, Array]], kernels: Kernels) -> Located:
    pairs = [Pair(tensor.name, tensor) for node in model.main for tensor in node.outputs
             if all(tensor.name in one and one[tensor.name].size == tensor.size for one in given)]
    find_segments(pairs, model.main)
    if not pairs:
        return Located(stage)
    right, spread = _alone(model.main, pairs, inputs, given, kernels)
    with LiteRT(source, kernels=kernels, interface=identity_interface(model)) as whole:
        names = [pair.tensor.name for pair in pairs]
        plain = [whole.trace_raw(one, names) for one in inputs]
    return Located(stage, [_row(stage, number, pair, plain, right, spread, given)
                           for number, pair in enumerate(pairs)])


def covered(pair: Pair) -> list[str]:
    """The tensors between the cuts before a tensor and itself, which are judged together with it."""
    return [t.name for node in reversed(pair.between) for t in node.outputs if t is not pair.tensor and t.name]


def _with_parts(graph: Graph, given: Mapping[str, Array]) -> dict[str, Array]:
    """Add the members of joins and the pieces of splits that only stand in the whole; they have its scale."""
    found = dict(given)
    for node in reversed(graph.nodes):
        if isinstance(node.op, Concatenation) and node.output.name in found:
            whole = found[node.output.name].reshape(node.output.shape)
            for name, place in parts(node):
                tensor = next(t for t in node.inputs if t is not None and t.name == name)
                if name not in found and tensor.quantization == node.output.quantization and not tensor.is_constant:
                    found[name] = np.ascontiguousarray(whole[place])
    for node in graph:
        if node.op.kind in ("SPLIT", "SPLIT_V"):
            _split(node, found)
    return found


def _split(node: Node, found: dict[str, Array]) -> None:
    source = node.input(1 if node.op.kind == "SPLIT" else 0)
    if source.name not in found or any(t.quantization != source.quantization for t in node.outputs):
        return
    axis = next((n for n, (a, b) in enumerate(zip(source.shape, node.output.shape, strict=True)) if a != b), None)
    if axis is None or any(t.name in found for t in node.outputs):
        return
    ends = np.cumsum([t.shape[axis] for t in node.outputs])[:-1]
    for tensor, piece in zip(node.outputs, np.split(found[source.name].reshape(source.shape), ends, axis), strict=True):
        found[tensor.name] = np.ascontiguousarray(piece)


def _by_kernels(stage: str, source: Path, model: Model, inputs: Sequence[Sequence[Array]], kernels: Kernels,
                other: Path, other_kernels: Kernels) -> Located:
    """Both forms' operators one by one, on the source's values."""
    from vitrify import tflite

    pairs = [Pair(tensor.name, tensor) for node in model.main for tensor in node.outputs]
    find_segments(pairs, model.main)
    names = [pair.tensor.name for pair in pairs]
    with LiteRT(source, kernels=kernels, interface=identity_interface(model)) as whole:
        plain = [whole.trace_raw(one, names) for one in inputs]
    graph = tflite.read(other).main
    theirs = {tensor.name: tensor for tensor in graph.tensors()}
    if any(name not in theirs for name in names):
        return Located(stage)
    right, spread = _alone(model.main, pairs, inputs, plain, kernels)
    got, _ = _alone(graph, [Pair(name, theirs[name]) for name in names], inputs, plain, other_kernels)
    given = [dict(zip(names, one, strict=True)) for one in got]
    return Located(stage, [_row(stage, number, pair, plain, right, spread, given)
                           for number, pair in enumerate(pairs)])


def _alone(graph: Graph, pairs: Sequence[Pair], inputs: Sequence[Sequence[Array]],
           given: Sequence[Mapping[str, Array]], kernels: Kernels) -> tuple[list[list[Array]], list[list[Array]]]:
    """What the source's operators make of the form's values, and what LiteRT's other kernels do."""
    from vitrify import tflite

    forced = taken_apart(graph, Aligned(cuts=[(Tensor(pair.reference, pair.tensor.dtype, pair.tensor.shape),
                                               pair.tensor) for pair in pairs]))
    fed = forced.model.main.inputs[forced.own:]
    found: list[list[Array]] = []
    other: list[list[Array]] = []
    with temporary_folder() as folder:
        path = Path(folder) / "apart.tflite"
        tflite.write(forced.model, path)
        interface = identity_interface(forced.model)
        with LiteRT(path, kernels=kernels, interface=interface) as plain, \
                LiteRT(path, kernels="optimized" if kernels == "reference" else "reference",
                       interface=interface) as quick:
            for own, values in zip(inputs, given, strict=True):
                arrays = [*own, *(np.ascontiguousarray(values[name], t.dtype.numpy).reshape(t.shape)
                                  for name, t in zip(forced.inputs, fed, strict=True))]
                found.append(plain.invoke_raw(arrays))
                other.append(quick.invoke_raw(arrays))
    return found, other


def _row(stage: str, number: int, pair: Pair, plain: Sequence[Mapping[str, Array]], right: Sequence[Sequence[Array]],
         spread: Sequence[Sequence[Array]], given: Sequence[Mapping[str, Array]]) -> TracedRow:
    tensor, whole, own = pair.tensor, Sums(), Sums()
    largest = mean = floor = shift = ends = 0.0
    for sample, values in enumerate(given):
        got, wanted = values[tensor.name].reshape(tensor.shape), right[sample][number]
        step = None if tensor.quantization is None else float(tensor.quantization.scale.reshape(-1)[0])
        whole.add(_real(plain[sample][tensor.name], tensor), _real(got, tensor), step)
        own.add(_real(wanted, tensor), _real(got, tensor), step)
        unit = 1.0 if got.dtype.kind in "iub" else max(float(np.abs(wanted).max(initial=0.0)) / 127, 1e-30)
        apart = (got.astype(np.float64) - wanted.astype(np.float64)) / unit
        kernels = np.abs(spread[sample][number].astype(np.float64) - wanted) / unit
        if apart.size:
            largest, mean = max(largest, float(np.abs(apart).max())), max(mean, float(np.abs(apart).mean()))
            shift, floor = max(shift, abs(float(apart.mean()))), max(floor, float(kernels.max()))
        ends += at_ends(got)
    verdict, why = judge_steps(largest, mean, shift, max(ONE, _MARGIN * floor) * max(1, len(pair.between)))
    node = tensor.producer
    return TracedRow(stage=stage, tensor=tensor.name, operator=node.op.kind if node is not None else "",
                     node=node_name(tensor), matched="name", accumulated=figures(whole),
                     own=figures(own) if verdict != EQUAL else FigureOfTensor(equal=True, cosine=1.0, max_lsb=0.0,
                                                                              largest_error=0.0),
                     verdict=verdict, why=why, saturated=ends / len(given) if tensor.quantization is not None else None,
                     not_finite=own.not_finite - own.not_finite_in_both, covers=covered(pair))


def judge_steps(largest: float, mean: float, shift: float, allowed: float) -> tuple[str, str]:
    """Tell a rounding from more by the differences in steps: the largest, the mean of their sizes, and their mean."""
    if largest == 0:
        return EQUAL, ""
    said = f"off by up to {largest:.3g} steps, {mean:.2g} on average; {allowed:.3g} are a rounding"
    if largest > max(_EXCESS_STEPS, 2 * allowed) or shift > _MEAN_EXCESS or not np.isfinite(largest):
        return FAULT, said
    if largest > allowed or shift > _MEAN:
        return EXCESS, said
    return ROUNDING, said


def _real(value: Array, tensor: Tensor) -> Array:
    return value if tensor.quantization is None or value.dtype.kind == "f" else tensor.quantization.dequantize(value)
