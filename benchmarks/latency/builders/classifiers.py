"""Classifiers of pictures, and what stands on their features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from builders.network import NONE, RELU, Network
from vitrify.ir import Model, Tensor


class Stage(NamedTuple):
    """Inverted residuals of one width; ``squeezed`` ones weigh their channels first."""

    expansion: int
    channels: int
    repeats: int
    stride: int
    kernel: int = 3
    squeezed: bool = False


MOBILENET_V2 = [Stage(1, 16, 1, 1), Stage(6, 24, 2, 2), Stage(6, 32, 3, 2), Stage(6, 64, 4, 2), Stage(6, 96, 3, 1),
                Stage(6, 160, 3, 2), Stage(6, 320, 1, 1)]
EFFICIENTNET_B0 = [Stage(1, 16, 1, 1, 3, True), Stage(6, 24, 2, 2, 3, True), Stage(6, 40, 2, 2, 5, True),
                   Stage(6, 80, 3, 2, 3, True), Stage(6, 112, 3, 1, 5, True), Stage(6, 192, 4, 2, 5, True),
                   Stage(6, 320, 1, 1, 3, True)]
MNASNET_A1 = [Stage(1, 16, 1, 1), Stage(6, 24, 2, 2), Stage(3, 40, 3, 2, 5, True), Stage(6, 80, 4, 2),
              Stage(6, 112, 2, 1, 3, True), Stage(6, 160, 3, 2, 5, True), Stage(6, 320, 1, 1)]


def rounded(channels: float, step: int = 8) -> int:
    """A width as the authors round it: to a multiple of eight, never a tenth smaller."""
    found = max(step, int(channels + step / 2) // step * step)
    return found + step if found < 0.9 * channels else found


def mobilenet_v1(size: int, alpha: float, classes: int) -> Model:
    """MobileNetV1. Source: arXiv 1704.04861, table 1."""
    net = Network(1, size, size, 3)
    x = net.conv(net.x, int(32 * alpha), 3, 2)
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for channels, stride in blocks:
        x = net.conv(net.depthwise(x, 3, stride), int(channels * alpha))
    x = net.pool(x, x.shape[1:3], x.shape[1:3], average=True, valid=True)
    return net.model(net.softmax(net.dense(net.flat(x), classes)))


def residuals(net: Network, x: Tensor, stages: Sequence[Stage], swish: bool = False, width: float = 1.0,
              stride: int = 32) -> list[Tensor]:
    """Add all stages; returns the output of every block. ``stride`` is the coarsest that may be reached."""
    found, reached = [], 2

    def active(y: Tensor) -> Tensor:
        return net.swish(y) if swish else y

    for stage in stages:
        for index in range(stage.repeats):
            step = stage.stride if index == 0 and reached * stage.stride <= stride else 1
            reached *= step
            kind = NONE if swish else net.activation
            y = active(net.conv(x, x.shape[3] * stage.expansion, activation=kind)) if stage.expansion > 1 else x
            y = active(net.depthwise(y, stage.kernel, step, activation=kind))
            if stage.squeezed:
                gate = net.conv(net.mean(y, keep=True), max(1, x.shape[3] // 4), activation=NONE if swish else RELU)
                y = net.product(y, net.sigmoid(net.conv(active(gate), y.shape[3], activation=NONE)))
            y = net.conv(y, rounded(stage.channels * width), activation=NONE)
            x = net.sum(x, y) if step == 1 and x.shape == y.shape else y
            found.append(x)
    return found


def mobilenet_v2(size: int = 224) -> Model:
    """MobileNetV2. Source: arXiv 1801.04381, table 2."""
    net = Network(1, size, size, 3)
    x = residuals(net, net.conv(net.x, 32, 3, 2), MOBILENET_V2)[-1]
    return net.model(net.softmax(net.dense(net.mean(net.conv(x, 1280)), 1000)))


def mnasnet() -> Model:
    """MnasNet-A1 of width 0.75. Source: arXiv 1807.11626, figure 7."""
    net = Network(1, 224, 224, 3, activation=RELU)
    x = residuals(net, net.conv(net.x, rounded(24), 3, 2), MNASNET_A1, width=0.75)[-1]
    return net.model(net.softmax(net.dense(net.mean(net.conv(x, 1280)), 1000)))


def whenet() -> Model:
    """WHENet. Source: arXiv 2005.10353: EfficientNet-B0 (arXiv 1905.11946, table 1) with 120, 66 and 66 outputs."""
    net = Network(1, 224, 224, 3, activation=NONE)
    x = residuals(net, net.swish(net.conv(net.x, 32, 3, 2)), EFFICIENTNET_B0, swish=True)[-1]
    x = net.mean(net.swish(net.conv(x, 1280)))
    return net.model(*(net.dense(x, count) for count in (120, 66, 66)))


def resnet50_v2() -> Model:
    """ResNet50V2 as Keras has it: the stride in the last unit of a stage. Source: arXiv 1603.05027; keras.applications.
    """
    net = Network(1, 224, 224, 3, activation=RELU)
    x = net.pool(net.conv(net.x, 64, 7, 2, NONE), 3, 2)
    for channels, repeats, last in ((64, 3, 2), (128, 4, 2), (256, 6, 2), (512, 3, 1)):
        for index in range(repeats):
            stride = last if index == repeats - 1 else 1
            y = net.normalized(x)
            around = net.conv(y, 4 * channels, 1, stride, NONE) if index == 0 else (
                net.pool(x, 1, stride) if stride > 1 else x)
            y = net.conv(net.conv(y, channels), channels, 3, stride)
            x = net.sum(around, net.conv(y, 4 * channels, activation=NONE))
    return net.model(net.softmax(net.dense(net.mean(net.normalized(x)), 1000)))
