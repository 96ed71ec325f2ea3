"""What an error in one tensor costs the outputs: the float model runs on from there with the error put in.

Before:  %1 = CONV_2D(%x)    %2 = RELU(%1)
After:   %1 = CONV_2D(%x)    %1' = ADD(%1, %error)    %2 = RELU(%1')

Every error is an input of one file, all zero but one: a file is opened once, and nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.ops import Activation, Add
from vitrify.quant.copying import copy_graph

Array = np.ndarray[Any, np.dtype[Any]]
MODEL = "injected.tflite"


def open_to_errors(graph: Graph, tensors: Sequence[Tensor]) -> Model:
    """Return the float model with one more input for each of ``tensors``, which is added to it."""
    copy, made = copy_graph(graph)
    for tensor in tensors:
        own = made[tensor]
        assert own.producer is not None
        error = Tensor(f"{own.name}/error", own.dtype, own.shape)
        together = Tensor(f"{own.name}/with_error", own.dtype, own.shape)
        copy.replace_uses(own, together)
        copy.add(Add(fused_activation_function=Activation.NONE, pot_scale_int16=False), [own, error], [together],
                 name=together.name, after=own.producer)
        copy.inputs = [*copy.inputs, error]
    return Model([copy])


def is_open(tensor: Tensor) -> bool:
    """True for a tensor that an error can be added to."""
    return tensor.dtype is DType.FLOAT32 and tensor.producer is not None and tensor.size > 0


class Errors:
    """A folder with errors by number and kind, written by one process and read by another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[tuple[int, str]] = []

    def add(self, number: int, kind: str, error: Array) -> None:
        """Keep the error of tensor ``number``; one that is nothing is not kept."""
        if np.any(error):
            np.save(self.folder / f"{kind}_{number}.npy", error.astype(np.float32))
            self.names.append((number, f"{kind}_{number}.npy"))


def costs_here(path: str, folder: str, inputs: Sequence[Array], errors: Sequence[tuple[int, str]],
               progress: Callable[[int, int], None] | None = None) -> dict[str, float]:
    """Run in a child: of each file with an error, the largest share of an output's energy that it makes wrong.

    ``inputs`` are the model's own, which come first.
    """
    from vitrify.runtimes.base import stamp
    from vitrify.runtimes.litert.session import session
    from vitrify.runtimes.litert.spec import Spec

    opened = session(Spec(path, stamp(Path(path)), "xnnpack", False, 1))
    set_ = opened.interpreter.set_tensor
    own = len(inputs)
    zeros = [np.zeros(d["shape"], np.float32) for d in opened.inputs[own:]]
    opened.invoke([*inputs, *zeros])
    clean = _floats(opened.outputs, opened.read)
    found: dict[str, float] = {}
    for done, (number, name) in enumerate(errors):
        index = opened.inputs[own + number]["index"]
        set_(index, np.load(Path(folder) / name))
        opened.interpreter.invoke()
        noisy = _floats(opened.outputs, opened.read)
        set_(index, zeros[number])
        found[name] = max((_share(clean[i], noisy[i]) for i in clean), default=0.0)
        if progress is not None:
            progress(done + 1, len(errors))
    return found


def _floats(outputs: Sequence[Mapping[str, Any]], read: Callable[[int], Array | None]) -> dict[int, Array]:
    found = {d["index"]: read(d["index"]) for d in outputs if d["dtype"] is np.float32}
    return {index: value.copy() for index, value in found.items() if value is not None}


def _share(clean: Array, noisy: Array) -> float:
    wrong = np.square(noisy.astype(np.float64) - clean)
    energy = float(np.square(clean.astype(np.float64)).sum())
    return float(np.nansum(wrong)) / max(energy, 1e-30)
