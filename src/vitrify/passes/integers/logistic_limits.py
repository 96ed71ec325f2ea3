"""Constants that only say "certain" to a logistic, as numbers that a scale can hold."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import constant, float_data

FAR = 64.0
"""The logistic of 64 less any score of a network is 1 in float32."""

WAY = (ops.Add, ops.SelectV2, ops.Gather, ops.GatherND, ops.Concatenation, ops.Reshape, ops.Squeeze, ops.ExpandDims,
       ops.Transpose, ops.Slice, ops.StridedSlice, ops.Pad, ops.PadV2)
"""What may stand between such a constant and its logistic."""


class LogisticLimit(Pass):
    """Bound at 64 what is added to scores, or chosen instead of them.

    Before:  %1 = ADD(%x, [0.3, 3.4e38]);  %2 = GATHER(%1, %i);  %3 = LOGISTIC(%2)
    After:   %1 = ADD(%x, [0.3, 64]);      %2 = GATHER(%1, %i);  %3 = LOGISTIC(%2)
    Equal in float32. Detectors mark places without a box with infinity or the largest number, and no scale holds that
    beside the others.
    """

    name = "logistic-limit"
    exactness = Exactness.ROUNDING
    kinds = (ops.Logistic,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the constants that reach this logistic and nothing else."""
        return self._bound(graph, node.input(0), set())

    def _bound(self, graph: Graph, tensor: Tensor, seen: set[Node]) -> bool:
        maker = tensor.producer
        if maker is None or maker in seen or not isinstance(maker.op, WAY) or not _is_score(tensor):
            return False
        seen.add(maker)
        changed = False
        for index, value in enumerate(maker.inputs):
            data = float_data(value) if value is not None else None
            if value is None or value.dtype.is_float is False:
                continue
            if data is None:
                changed |= self._bound(graph, value, seen)
            elif data.size and np.abs(data).max() > FAR:
                graph.set_input(maker, index, constant(f"{value.name}_bounded", np.clip(data, -FAR, FAR).astype(
                    np.float32), self.made(value)))
                changed = True
        return changed


def _is_score(tensor: Tensor) -> bool:
    """True when a tensor ends in logistics alone."""
    return not tensor.is_output and bool(tensor.users) and all(
        isinstance(user.op, ops.Logistic) or (isinstance(user.op, WAY) and all(map(_is_score, user.outputs)))
        for user in tensor.users)
