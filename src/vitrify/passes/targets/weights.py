"""Constant weights of integer convolutions, rearranged: their data, scales and zero points go along."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify.ir import Quantization, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.graphs import is_dense
from vitrify.passes.targets.place import Place


class Weights(NamedTuple):
    """8-bit weights with their outputs on axis 0, and a bias."""

    data: Array
    quantization: Quantization
    bias: Tensor | None

    @property
    def zero(self) -> int:
        """What stands for nothing."""
        return int(self.quantization.zero_point.reshape(-1)[0])


def weights_of(place: Place, weight: int, bias: int) -> Weights | None:
    """Return the constant weights of a node, None where they are computed or packed."""
    found, added = place.node.optional(weight), place.node.optional(bias)
    if found is None or found.data is None or found.quantization is None or not is_dense(found):
        return None
    scales = found.quantization
    if len(set(scales.zero_point.tolist())) > 1 or (added is not None and not is_dense(added)):
        return None
    return Weights(found.data, scales, added)


def repeated(place: Place, old: Weights, data: Array, times: int) -> list[Tensor]:
    """Make the inputs of a node with ``times`` copies of each channel's scale and bias, behind each other."""
    scales = old.quantization
    if len(scales.scale) > 1:
        scales = Quantization(np.tile(scales.scale, times), np.tile(scales.zero_point, times), 0)
    made = [place.constant(np.ascontiguousarray(data), scales, "weights")]
    if old.bias is None:
        return made
    if times == 1:
        return [*made, old.bias]
    assert old.bias.data is not None
    kept = old.bias.quantization
    if kept is not None and len(kept.scale) > 1:
        kept = Quantization(np.tile(kept.scale, times), np.tile(kept.zero_point, times), 0)
    return [*made, place.constant(np.tile(old.bias.data.reshape(-1), times), kept, "bias", old.bias.dtype)]
