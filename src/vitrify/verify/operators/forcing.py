"""A quantized model taken apart: every operator reads the float model's values, rounded to its own scales.

Before:  %1 = CONV_2D(%x)   %2 = ADD(%1, %y)
After:   %1 = CONV_2D(%x)   %2 = ADD(%1', %y)      with %1' another input; %1 and %2 are outputs

One file holds all operators, so that one run gives the error of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.ir import Graph, Model, Tensor
from vitrify.quant.copying import copy_graph
from vitrify.verify.operators.aligning import Aligned

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Forced:
    """The model; the float tensor's name for each input after the ``own`` first ones, which are the quantized file's;
    and the quantized graph's tensor of each output."""

    model: Model
    own: int
    inputs: list[str]
    outputs: list[Tensor]

    def feed(self, own: Sequence[Array], values: Mapping[str, Array]) -> list[Array]:
        """Round the float model's values as each input wants them; the file's own inputs come as they are."""
        fed = self.model.main.inputs[self.own:]
        return [*own, *(rounded(values[name], tensor) for name, tensor in zip(self.inputs, fed, strict=True))]


def rounded(value: Array, tensor: Tensor) -> Array:
    """Return float values as the integers of a tensor; as they are where it has no scale."""
    dtype = tensor.dtype.numpy
    assert dtype is not None
    if tensor.quantization is None or dtype.kind not in "iu":
        return np.ascontiguousarray(value, dtype)
    return tensor.quantization.quantize(np.nan_to_num(value), dtype)


def taken_apart(graph: Graph, aligned: Aligned) -> Forced:
    """Cut a quantized graph at each tensor that the float graph has too; operators between two cuts stay together."""
    copy, made = copy_graph(graph)
    names: list[str] = []
    own_inputs = len(copy.inputs)
    outputs = []
    for reference, tensor in aligned.cuts:
        own = made[tensor]
        outputs.append(tensor)
        if not own.users:
            continue
        fed = Tensor(f"{own.name}/fed", own.dtype, own.shape, quantization=own.quantization)
        copy.replace_uses(own, fed)
        copy.inputs = [*copy.inputs, fed]
        names.append(reference.name)
    copy.set_outputs(made[t] for t in outputs)
    copy.remove_dead()
    return Forced(Model([copy]), own_inputs, names, outputs)
