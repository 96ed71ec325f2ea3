"""The small models: MLPerf Tiny's, a face's emotion, keywords, brain waves. Sources stand at each."""

from __future__ import annotations

from builders.network import NONE, RELU, Network
from vitrify import ops
from vitrify.ir import Model, Tensor


def autoencoder() -> Model:
    """Deep AutoEncoder. Source: github.com/mlcommons/tiny, anomaly detection: 640, four of 128, 8, four of 128, 640."""
    net = Network(1, 640)
    x = net.x
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, width, RELU)
    return net.model(net.dense(x, 640))


def tiny_resnet() -> Model:
    """ResNet of eight layers. Source: github.com/mlcommons/tiny, image classification."""
    net = Network(1, 32, 32, 3, activation=RELU)
    x = net.conv(net.x, 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(net.conv(x, channels, 3, stride), channels, 3, activation=NONE)
        x = net.sum(net.conv(x, channels, 1, stride, NONE) if stride > 1 else x, y, RELU)
    pooled = net.pool(x, 8, 8, average=True, valid=True)
    return net.model(net.softmax(net.dense(net.flat(pooled), 10)))


def ds_cnn() -> Model:
    """DS-CNN. Source: github.com/mlcommons/tiny, keyword spotting."""
    net = Network(1, 49, 10, 1, activation=RELU)
    x = net.conv(net.x, 64, (10, 4), 2)
    for _ in range(4):
        x = net.conv(net.depthwise(x), 64)
    pooled = net.pool(x, (25, 5), (25, 5), average=True, valid=True)
    return net.model(net.softmax(net.dense(net.flat(pooled), 12)))


def emotion() -> Model:
    """Facial expressions. Source: github.com/serengil/deepface, extendedmodels/Emotion."""
    net = Network(1, 48, 48, 1, activation=RELU)
    x = net.pool(net.conv(net.x, 64, 5, valid=True), 5, 2, valid=True)
    for channels in (64, 128):
        x = net.conv(net.conv(x, channels, 3, valid=True), channels, 3, valid=True)
        x = net.pool(x, 3, 2, average=True, valid=True)
    x = net.dense(net.dense(net.flat(x), 1024, RELU), 1024, RELU)
    return net.model(net.softmax(net.dense(x, 7)))


def eeg_tcnet() -> Model:
    """EEG-TCNet. Source: arXiv 2006.00622: EEGNet (8, 2, 16 filters, kernel 32), two causal blocks of 12, kernel 4.

    The signal stands as 1125 steps of 22 electrodes; causal padding is an operator of its own.
    """
    net = Network(1, 22, 1125, 1, activation=NONE)
    x = net.transpose(net.x, 0, 2, 1, 3)
    x = net.conv(x, 8, (32, 1))
    x = _elu(net, net.depthwise(x, (1, 22), valid=True, multiplier=2))
    x = net.pool(x, (8, 1), (8, 1), average=True, valid=True)
    x = _elu(net, net.conv(net.depthwise(x, (16, 1)), 16))
    x = net.pool(x, (8, 1), (8, 1), average=True, valid=True)
    for dilation in (1, 2):
        y = x
        for _ in range(2):
            y = _elu(net, net.conv(_behind(net, y, 3 * dilation), 12, (4, 1), valid=True))
        around = net.conv(x, 12) if x.shape[3] != 12 else x
        x = _elu(net, net.sum(around, net.grown(y, *x.shape[1:3]) if y.shape != (*x.shape[:3], 12) else y))
    last = net.reshape(net.pool(x, (x.shape[1], 1), 1, valid=True), 1, 12)
    return net.model(net.softmax(net.dense(last, 4)))


def _elu(net: Network, x: Tensor) -> Tensor:
    return net.add(ops.Elu(), [x], x.shape)


def _behind(net: Network, x: Tensor, count: int) -> Tensor:
    """Zeros before the first step."""
    pads = net.ints(0, 0, count, 0, 0, 0, 0, 0)
    pads.data, pads.shape = pads.data.reshape(4, 2), (4, 2)
    return net.add(ops.Pad(), [x, pads], (1, x.shape[1] + count, *x.shape[2:]))
