"""How much memory a calibration will take, told before it begins: it does not depend on the number of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.ir import Graph, Node, Tensor
from vitrify.quant.calibration.observe import Watch
from vitrify.quant.calibration.statistics import BINS

PROCESS = 72 << 20
"""An interpreter with numpy, LiteRT and the code of ours that calibrates, before it opens a model."""

HELD_SAMPLES = 3
"""A sample as it is read, as it goes to the runtime, and as the runtime holds it."""

WEIGHTS = 3
"""What weights take by their size: read, written anew with what is watched given out, and packed for the kernels."""


def predicted_bytes(graph: Graph, watched: Sequence[Watch]) -> int:
    """Return about how many bytes a calibration's process will hold at most.

    Args:
        graph: the float graph.
        watched: what is observed; the runtime keeps all of it until a sample is over.
    """
    weights = sum({id(t): _bytes(t) for t in graph.tensors() if t.is_constant}.values())
    given = sum(_bytes(t) for t in graph.inputs)
    kept = {w.tensor for w in watched}
    widest = max((sum(_bytes(t) for t in _around(node)) for node in graph), default=0)
    largest = max((_bytes(t) for t in kept), default=0)
    held = sum(_bytes(t) for t in kept if t.producer is not None)
    told = sum(8 * BINS * w.histogram + 8 * sum(w.tensor.shape[a] * 2 for a in w.axes) for w in watched)
    moments = sum(8 * _window(node) ** 2 for w in watched for node in w.layers)
    return int(PROCESS + WEIGHTS * weights + HELD_SAMPLES * given + held + widest + largest + told + 2 * moments)


def _around(node: Node) -> list[Tensor]:
    return [t for t in (*node.inputs, *node.outputs) if t is not None and not t.is_constant]


def _window(node: Node) -> int:
    """The inputs of one output of a layer, about."""
    weights = node.input(1)
    return int(np.prod(weights.shape[1:-1], dtype=np.int64)) * (weights.shape[-1] if weights.shape[0] > 1 else 1)


def _bytes(tensor: Tensor) -> int:
    return tensor.size * 4
