"""In which order operators gain from 16 bits.

A tensor is rounded to 16 bits only when what makes it and all that reads it compute so. Each tensor's rounding costs
the outputs something (found by putting its error into the float model) and frees them of it for so many operators more;
the tensor with the most gain for an operator comes next, and with it all those that need no further operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.isolation import run_isolated
from vitrify.core.progress import ProgressCallback
from vitrify.data.binding import identity_interface, to_file_inputs
from vitrify.ir import DType, Graph, Model, Node, Tensor
from vitrify.quant.rules import keeps_values, shared_inputs, takes_sixteen
from vitrify.runtimes.litert import LiteRT
from vitrify.verify.operators.aligning import FEW, align, causes
from vitrify.verify.operators.forcing import rounded
from vitrify.verify.operators.injecting import MODEL, Errors, costs_here, is_open, open_to_errors

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Step:
    """Operators that go to 16 bits together, by name, and the share of the outputs' energy that this makes right."""

    names: tuple[str, ...]
    gain: float


def rounding_costs(before: Model, path: Path, after: Model, sample: Mapping[str, Array], folder: Path,
                   progress: ProgressCallback) -> dict[str, float]:
    """By name of each tensor that 8 bits hold: the share of an output's energy that its rounding alone makes wrong.

    Args:
        before, path: the float model and its file.
        after: its quantized form.
        sample: what both run on, by input name.
        folder: where errors are kept meanwhile.
        progress: called with tensors done and in all.
    """
    from vitrify import tflite

    aligned = align(before.main, after.main)
    pairs = [(ref, t) for ref, t in aligned.main if is_open(ref) and t.dtype in (DType.INT8, DType.UINT8)]
    if not pairs:
        return {}
    interface = before.interface or identity_interface(before)
    errors = Errors(folder)
    dictated = causes(after.main)
    whole: dict[Tensor, float] = {}
    names: list[str] = []
    with LiteRT(path, kernels="optimized", interface=interface) as floats:
        traced = floats.trace(sample, [ref.name for ref, _ in pairs])
        inputs = to_file_inputs(interface, sample, floats._details.inputs)
    for ref, tensor in pairs:
        whole[tensor] = _width(np.asarray(traced[ref.name].raw))
    for number, (ref, tensor) in enumerate(pairs):
        real = np.asarray(traced[ref.name].raw)
        names.append(ref.name)
        join = dictated.get(tensor)
        if join is not None and whole[tensor] < FEW * whole.get(join.output, 0.0):
            continue                    # the join's rounding, which ends with the join's
        error = rounded(real, tensor)
        assert tensor.quantization is not None
        errors.add(number, "rounding", tensor.quantization.dequantize(error) - real)
    tflite.write(open_to_errors(before.main, [ref for ref, _ in pairs]), folder / MODEL)
    found: dict[str, float] = run_isolated(
        f"{costs_here.__module__}:{costs_here.__name__}", str(folder / MODEL), str(folder), inputs, errors.names,
        what="finding what rounding costs", on_progress=progress)
    return {names[number]: found[name] for number, name in errors.names}


def order(graph: Graph, costs: Mapping[str, float]) -> list[Step]:
    """Return the steps in which operators of a float graph go to 16 bits, those that gain most for their number first.

    Tensors that cannot be rounded more finely, because an operator around them has no 16-bit kernel, are left out.
    """
    needs: dict[str, frozenset[str]] = {}
    for node in graph:
        for tensor in node.outputs:
            found = _around(tensor) if costs.get(tensor.name) else None
            if found:
                needs[tensor.name] = found
    steps: list[Step] = []
    chosen: set[str] = set()
    waiting = dict(needs)
    while waiting:
        best = max(waiting, key=lambda name: costs[name] / max(1, len(waiting[name] - chosen)))
        added = waiting[best] - chosen
        chosen |= added
        freed = [name for name, need in waiting.items() if need <= chosen]
        gain = sum(costs[name] for name in freed)
        for name in freed:
            del waiting[name]
        steps.append(Step(tuple(sorted(added)), gain))
    return _joined(steps)


def _joined(steps: list[Step]) -> list[Step]:
    """Leave out steps without an operator of their own; their gain is that of the one before."""
    made: list[Step] = []
    for step in steps:
        if step.names or not made:
            made.append(step)
        else:
            made[-1] = Step(made[-1].names, made[-1].gain + step.gain)
    return [step for step in made if step.names]


def _around(tensor: Tensor) -> frozenset[str] | None:
    """The operators that have to compute in 16 bits for a tensor to be held so; None when one of them cannot.

    What only moves values goes with what makes them, so its readers count instead.
    """
    maker = _source(tensor)
    if maker is None or not takes_sixteen(maker):
        return None
    found, waiting, inner = {maker.name}, list(tensor.users), 0
    while waiting:
        user = waiting.pop()
        if not takes_sixteen(user):
            return None
        inner += 1
        if _moves(user):
            waiting += [u for t in user.outputs for u in t.users]
        else:
            found.add(user.name)
    return frozenset(found) if inner else None


def _moves(node: Node) -> bool:
    return keeps_values(node) and len(shared_inputs(node)) == 1


def _source(tensor: Tensor) -> Node | None:
    node = tensor.producer
    while node is not None and _moves(node):
        node = node.input(shared_inputs(node)[0]).producer
    return node


def _width(values: Array) -> float:
    return float(values.max(initial=0.0) - values.min(initial=0.0))
