"""Inputs that take pictures get the grid of their pixels: 8-bit values enter without a rounding of their own.

Pictures hold 256 levels. After ``(pixel / 255 - mean) / std`` with a mean and std for each channel, no single scale
matches the levels of all channels; each pixel is rounded once more, by up to half a step. Where the input feeds
convolutions, mean and std move into their weights, and the file's input is the pixel itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from vitrify.data.binding import identity_interface
from vitrify.data.preprocess import Array, PictureShape, Preprocess
from vitrify.ir import (
    DType,
    Graph,
    InputBinding,
    Interface,
    Ledger,
    LedgerEntry,
    Model,
    Node,
    Quantization,
    Tensor,
)
from vitrify.ir.ledger import Exactness
from vitrify.ir.origin import Origin
from vitrify.ops import Conv2D, Pad
from vitrify.quant.calibration.observe import keys
from vitrify.quant.calibration.statistics import Statistics, TensorStatistics
from vitrify.quant.scales import INT8_LOW

Fixed = dict[Tensor, Quantization]

PASS = "pixels"
TOP = 255
NEAR = 1e-3
"""Shares of a level below which a mean counts as one: 127.0003 is pixel 127."""


def pixel_inputs(model: Model, statistics: Statistics, ledger: Ledger) -> tuple[Statistics, Fixed]:
    """Rewrite ``model`` so that its picture input takes pixels.

    Returns the statistics of the rewritten model, and the quantization that its input must have.

    Before:  %y = CONV_2D(%x, w, b)                              x = (pixel / 255 - mean_c) / std_c
    After:   %y = CONV_2D(%u, w / std_c, b + sum(w (m - mean_c) / std_c))    u = pixel / 255 - m
    The level ``m`` next to the means stands for 0. Exact, but where a border of zeros is put around %x: it holds the
    mean colour before, and the grey ``m`` after. Where all channels have one mean on a level, nothing is rewritten.
    """
    interface = model.interface or identity_interface(model)
    tensor = _picture_input(model, interface)
    if tensor is None or statistics.pictures is None:
        return statistics, {}
    binding, graph = interface.inputs[0], model.main
    mean, std = _per_channel(statistics.pictures, binding)
    middle = int(np.clip(np.rint(TOP * mean.mean()), 0, TOP))
    if np.ptp(std) == 0 and np.abs(mean * TOP - middle).max() < NEAR:
        return statistics, {tensor: Quantization.per_tensor(float(1 / (TOP * std[0])), middle + INT8_LOW)}
    convolutions = _convolutions(tensor, len(mean))
    if not convolutions:
        return statistics, {}
    before = len(graph)
    for node in convolutions:
        _fold(graph, node, 1 / std, (middle / TOP - mean) / std)
    _forget_origins(tensor)
    taken = msgspec.structs.replace(binding, scale=tuple(map(float, std)),
                                    offset=tuple(map(float, mean - middle / TOP)))
    model.interface = msgspec.structs.replace(interface, inputs=(taken,))
    ledger.add(LedgerEntry(name=PASS, summary="mean and std of pictures moved into the first convolution's weights",
                           changes=len(convolutions), nodes_before=before, nodes_after=len(graph),
                           exactness=Exactness.ROUNDING, note=_words(taken, middle)))
    moved = _moved(statistics, keys(graph)[tensor], taken, convolutions)
    return moved, {tensor: Quantization.per_tensor(1 / TOP, middle + INT8_LOW)}


def _picture_input(model: Model, interface: Interface) -> Tensor | None:
    """The float input of a model whose only input is a picture."""
    if len(interface.inputs) != 1 or PictureShape.of(tuple(interface.inputs[0].shape)) is None:
        return None
    binding = interface.inputs[0]
    if binding.scale or not 0 <= binding.position < len(model.main.inputs):
        return None
    tensor = model.main.inputs[binding.position]
    return tensor if tensor.dtype is DType.FLOAT32 and not tensor.is_output else None


def _per_channel(preprocess: Preprocess, binding: InputBinding) -> tuple[Array, Array]:
    """Mean and std of each channel of the input."""
    shape = PictureShape.of(tuple(binding.shape))
    channels = shape.channels if shape is not None else 1
    return (np.broadcast_to(np.asarray(preprocess.mean, np.float64), (channels,)),
            np.broadcast_to(np.asarray(preprocess.std, np.float64), (channels,)))


def _moved(statistics: Statistics, key: str, taken: InputBinding, layers: Sequence[Node]) -> Statistics:
    """The statistics with the input's channel means and moments as the rewritten model sees them."""
    old, new = statistics[key], TensorStatistics()
    scale, offset = np.asarray(taken.scale), np.asarray(taken.offset)
    new.low, new.high = float(offset.min()), float(offset.max()) + 1.0
    new.counted = old.counted
    new.sums = None if old.sums is None else old.sums * scale + old.counted * offset
    made = Statistics({**statistics.tensors, key: new}, statistics.samples, statistics.key, statistics.is_random,
                      statistics.pictures)
    made.moments = dict(statistics.moments)
    for node in layers:
        if node.name in made.moments:
            taps = node.input(1).size // node.input(1).shape[0] // scale.size
            made.moments[node.name] = made.moments[node.name].affine(np.tile(scale, taps), np.tile(offset, taps))
    return made


def _words(binding: InputBinding, middle: int) -> str:
    return f"input '{binding.name}' takes pixel - 128 as int8; {middle} stands for 0"


def _convolutions(tensor: Tensor, channels: int) -> list[Node]:
    """The convolutions that read a tensor, each straight or through a padding of its own; empty when others do too."""
    found: list[Node] = []
    for user in tensor.users:
        inner = user.output.users if isinstance(user.op, Pad) and not user.output.is_output else [user]
        if not inner or not all(_is_plain(node, channels) for node in inner):
            return []
        found += inner
    return list(dict.fromkeys(found))


def _is_plain(node: Node, channels: int) -> bool:
    """True for a convolution of constants over all of the channels."""
    if not isinstance(node.op, Conv2D) or node.input(0).is_constant:
        return False
    bias, weights = node.optional(2), node.input(1)
    return (weights.is_constant and weights.dtype is DType.FLOAT32 and weights.shape[-1] == channels
            and bias is not None and bias.is_constant and bias.dtype is DType.FLOAT32)


def _fold(graph: Graph, node: Node, scale: Array, shift: Array) -> None:
    """Give a convolution the weights and the bias for an input u with x = u * scale + shift."""
    weights, bias = node.input(1), node.input(2)
    assert weights.data is not None
    assert bias.data is not None
    exact = weights.data.astype(np.float64)
    moved = bias.data + (exact * shift).sum(axis=(1, 2, 3))
    graph.set_input(node, 1, _changed(weights, exact * scale))
    graph.set_input(node, 2, _changed(bias, moved))


def _changed(tensor: Tensor, data: Array) -> Tensor:
    return Tensor(tensor.name, DType.FLOAT32, tensor.shape, data=data.astype(np.float32), origin=tensor.origin.by(PASS))


def _forget_origins(tensor: Tensor) -> None:
    """What holds pixels now is no longer the source's tensor, and is not to be compared with it."""
    for user in tensor.users:
        if isinstance(user.op, Pad):
            user.output.name, user.output.origin = f"{user.output.name}_pixels", Origin((), (PASS,))
