"""Maps whose channels are filled up between convolutions, for converters that take whole multiples only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify import ops
from vitrify.ir import Graph, Model, Node, Quantization, Tensor
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.targets.catalogue import fix

WIDTH = 8
"""Channels at a time. Source: NUM_MACS of neutron-imxrt700.ini in ExecuTorch; MCX takes 8 or a divisor of it."""
_STRICT = (ops.MaxPool2D, ops.Mean, ops.ResizeBilinear, ops.ResizeNearestNeighbor)
"""What the converter takes of whole multiples only."""
_CHANNELWISE = (*_STRICT, ops.AveragePool2D, ops.Relu, ops.Relu6, ops.Logistic, ops.Tanh, ops.HardSwish, ops.Quantize,
                ops.LeakyRelu)
_LONGEST = 64


@fix("filled-channels", mends=("neutron.channels-multiple",), whole=True,
     says="gives maps between convolutions channels of zero weight until they are a multiple of 8",
     wins="pools, means and resizes that converters before SDK 3.2 leave to the CPU; nothing is moved, and the added "
     "channels are seen by no one")
def filled_channels(model: Model) -> int:
    """Each chain of operators that leave channels apart, from the convolution that makes it to those that read it."""
    graph, done = model.main, 0
    for node in graph.nodes_of(*_STRICT):
        if len(node.output.shape) == 4 and node.output.shape[3] % WIDTH:
            chain = _Chain(graph)
            if chain.reach(node.input(0)) and chain.makers and chain.readers:
                chain.fill(-node.output.shape[3] % WIDTH)
                done += 1
    return done


class _Chain:
    """The maps of one chain, the convolutions that make them, and those that read them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.maps: dict[Tensor, None] = {}
        self.makers: dict[Node, None] = {}
        self.readers: dict[Node, None] = {}

    def reach(self, tensor: Tensor) -> bool:
        """Take in a map and all that it hangs together with; False where it ends in something else."""
        if tensor in self.maps:
            return True
        made = tensor.producer
        if made is None or tensor.is_output or len(tensor.shape) != 4 or len(self.maps) >= _LONGEST:
            return False
        self.maps[tensor] = None
        return self._above(made) and all(self._below(user, tensor) for user in tensor.users)

    def _above(self, node: Node) -> bool:
        if _is_convolution(node):
            self.makers[node] = None
            return True
        return _keeps_channels(node) and self.reach(node.input(0))

    def _below(self, node: Node, tensor: Tensor) -> bool:
        if _is_convolution(node) and node.optional(0) is tensor:
            self.readers[node] = None
            return True
        return _keeps_channels(node) and node.optional(0) is tensor and self.reach(node.output)

    def fill(self, count: int) -> None:
        """Add the channels."""
        for node in self.makers:
            self._widen(node, 1, [(0, count), (0, 0), (0, 0), (0, 0)], count)
            if node.optional(2) is not None:
                self._widen(node, 2, [(0, count)], count)
        for node in self.readers:
            self._widen(node, 1, [(0, 0), (0, 0), (0, 0), (0, count)], 0)
        for tensor in self.maps:
            tensor.shape = (*tensor.shape[:3], tensor.shape[3] + count)
            tensor.shape_signature = ()

    def _widen(self, node: Node, index: int, sides: Sequence[tuple[int, int]], more: int) -> None:
        """A constant with zeros behind it, and ``more`` scales."""
        old = node.input(index)
        data, scales = np.pad(np.asarray(old.data), sides), old.quantization
        if more and scales is not None and scales.is_per_axis:
            again = np.full(more, scales.scale[-1], scales.scale.dtype)
            scales = Quantization.per_axis(np.concatenate([scales.scale, again]), scales.axis or 0)
        self.graph.set_input(node, index, Tensor(f"{old.name}_filled", old.dtype, data.shape, data=data,
                                                 quantization=scales, origin=old.origin))


def _is_convolution(node: Node) -> bool:
    """True for a convolution of all channels whose constants are its own kind: weights around zero."""
    if not isinstance(node.op, ops.Conv2D):
        return False
    weights, bias = node.input(1), node.optional(2)
    scales = weights.quantization
    return weights.data is not None and weights.shape[3] == node.input(0).shape[3] and scales is not None and \
        not scales.zero_point.any() and (bias is None or bias.data is not None)


def _keeps_channels(node: Node) -> bool:
    """True for an operator that treats each channel by itself, and alike."""
    if not isinstance(node.op, _CHANNELWISE) or len(node.output.shape) != 4:
        return False
    return not isinstance(node.op, ops.Mean) or set(axis_list(node.optional(1), 4) or (3,)) <= {1, 2}
