"""Detectors and what is like them, with their boxes left undecoded as they are shipped."""

from __future__ import annotations

from builders.classifiers import MOBILENET_V2, residuals
from builders.network import NONE, RELU, Network, Pair
from vitrify.ir import Model, Tensor


def ultraface_slim() -> Model:
    """Ultra-Light-Fast-Generic-Face-Detector, slim, 320 x 240. Source: its repository of this name (Linzaer)."""
    net = Network(1, 240, 320, 3, activation=RELU)
    x, found = net.conv(net.x, 16, 3, 2), []
    widths = [(32, 1), (32, 2), (32, 1), (64, 2), (64, 1), (64, 1), (64, 1), (128, 2), (128, 1), (128, 1), (256, 2),
              (256, 1)]
    for index, (channels, stride) in enumerate(widths):
        x = net.conv(net.depthwise(x, 3, stride), channels)
        if index in (6, 9, 11):
            found.append(x)
    found.append(net.conv(net.depthwise(net.conv(x, 64), 3, 2), 256))
    scores, boxes = [], []
    for feature, anchors in zip(found, (3, 2, 2, 3), strict=True):
        for outputs, width in ((scores, 2), (boxes, 4)):
            kernel = feature if len(outputs) == 3 else net.depthwise(feature)
            y = net.conv(kernel, anchors * width, 3 if len(outputs) == 3 else 1, activation=NONE)
            outputs.append(net.reshape(y, 1, y.size // width, width))
    joined = [_stacked(net, parts) for parts in (scores, boxes)]
    return net.model(net.softmax(joined[0]), joined[1])


def _stacked(net: Network, parts: list[Tensor]) -> Tensor:
    from vitrify import ops

    return net.add(ops.Concatenation(axis=1), parts, (1, sum(p.shape[1] for p in parts), parts[0].shape[2]))


def ssdlite() -> Model:
    """SSDLite on MobileNetV2, 300 x 300, 91 classes. Source: arXiv 1801.04381, 6.2; the TensorFlow detection zoo."""
    net = Network(1, 300, 300, 3)
    blocks = residuals(net, net.conv(net.x, 32, 3, 2), MOBILENET_V2)
    middle = net.conv(blocks[12], 576)          # the widened input of the next stage, which the real one shares
    found = [middle, net.conv(blocks[-1], 1280)]
    for narrow, wide in ((256, 512), (128, 256), (128, 256), (64, 128)):
        found.append(net.conv(net.depthwise(net.conv(found[-1], narrow), 3, 2), wide))
    scores, boxes = [], []
    for index, feature in enumerate(found):
        for outputs, width in ((scores, 91), (boxes, 4)):
            y = net.conv(net.depthwise(feature), (6 if index else 3) * width, activation=NONE)
            outputs.append(net.reshape(y, 1, y.size // width, width))
    return net.model(net.sigmoid(_stacked(net, scores)), _stacked(net, boxes))


def yolov4_tiny() -> Model:
    """YOLOv4-tiny, 416 x 416. Source: arXiv 2011.08036; export_model.py of NXP's model zoo."""
    net = Network(1, 416, 416, 3, activation=NONE)

    def conv(x: Tensor, channels: int, kernel: int = 3, stride: int = 1) -> Tensor:
        return net.leaky(net.conv(x, channels, kernel, stride))

    x = conv(conv(net.x, 32, 3, 2), 64, 3, 2)
    for channels in (64, 128, 256):
        whole = conv(x, channels)
        part = conv(net.halves(whole)[1], channels // 2)
        late = conv(net.join(conv(part, channels // 2), part), channels, 1)
        x = net.pool(net.join(whole, late), 2, 2)
    x = conv(conv(x, 512), 256, 1)
    large = net.conv(conv(x, 512), 255)
    x = net.join(net.grown(conv(x, 128, 1), 26, 26, bilinear=True), late)
    return net.model(net.conv(conv(x, 256), 255), large)


def centernet() -> Model:
    """CenterNet on MobileNetV2 with a pyramid, 512 x 512. Source: the TensorFlow detection zoo, its feature extractor.

    Heads of 32 channels, from the published number of parameters.
    """
    net = Network(1, 512, 512, 3)
    blocks = residuals(net, net.conv(net.x, 32, 3, 2), MOBILENET_V2)
    skips = [blocks[2], blocks[5], blocks[9]]
    x = net.conv(net.conv(blocks[-1], 1280), 64, activation=NONE)
    for skip, channels, following in zip(skips[::-1], (64, 32, 24), (32, 24, 24), strict=True):
        x = net.grown(x, *skip.shape[1:3])
        x = net.conv(net.sum(x, net.conv(skip, channels, activation=NONE)), following, 3, activation=RELU)
    heads = [net.conv(net.conv(x, 32, 3, activation=RELU), count, activation=NONE) for count in (90, 2, 2)]
    return net.model(*heads)


def nanodet() -> Model:
    """NanoDet-m of width 0.5, 320 x 320, the head of its coarsest level alone, as NXP's model zoo patches it.

    Source: github.com/RangiLyu/nanodet, ShuffleNetV2 (arXiv 1807.11164) of 24, 48, 96, 192 channels.
    """
    net = Network(1, 320, 320, 3, activation=NONE)
    x, found = net.pool(net.leaky(net.conv(net.x, 24, 3, 2)), 3, 2), []
    for channels, repeats in ((48, 4), (96, 8), (192, 4)):
        for index in range(repeats):
            x = _shuffled(net, x, channels, 2 if index == 0 else 1)
        found.append(net.conv(x, 96))
    fine, middle, coarse = found
    middle = net.sum(middle, net.grown(coarse, *middle.shape[1:3], bilinear=True))
    fine = net.sum(fine, net.grown(middle, *fine.shape[1:3], bilinear=True))
    middle = net.sum(middle, net.grown(fine, *middle.shape[1:3], bilinear=True))
    x = net.sum(coarse, net.grown(middle, *coarse.shape[1:3], bilinear=True))
    for _ in range(2):
        x = net.leaky(net.conv(net.leaky(net.depthwise(x, 3)), 96))
    scores, sides = (net.conv(x, count) for count in (80, 32))
    return net.model(net.sigmoid(scores), sides)


def _shuffled(net: Network, x: Tensor, channels: int, stride: int) -> Tensor:
    """One unit of ShuffleNetV2, then the channels dealt out anew: reshape, transpose, reshape."""
    half = channels // 2
    around, through = (x, x) if stride == 2 else net.halves(x)
    if stride == 2:
        around = net.leaky(net.conv(net.depthwise(around, 3, 2), half))
    through = net.leaky(net.conv(net.depthwise(net.leaky(net.conv(through, half)), 3, stride), half))
    y = net.join(around, through)
    _, height, width, _ = y.shape
    y = net.transpose(net.reshape(y, 1, height * width, 2, half), 0, 1, 3, 2)
    return net.reshape(y, 1, height, width, channels)


def deeplab() -> Model:
    """DeepLabV3 on MobileNetV2 of width 0.5, 513 x 513, 21 classes. Source: arXiv 1802.02611; its model zoo, dm05."""
    net = Network(1, 513, 513, 3)
    x = residuals(net, net.conv(net.x, 16, 3, 2), MOBILENET_V2, width=0.5, stride=16)[-1]
    around = net.grown(net.conv(net.mean(x, keep=True), 256), *x.shape[1:3], bilinear=True)
    x = net.conv(net.conv(net.join(around, net.conv(x, 256)), 256), 21, activation=NONE)
    return net.model(net.grown(net.grown(x, 129, 129, bilinear=True), 513, 513, bilinear=True))


def wav2letter() -> Model:
    """Wav2Letter on 296 frames of 39. Source: github.com/ARM-software/ML-zoo, speech_recognition/wav2letter."""
    net = Network(1, 1, 296, 39, activation=NONE)
    layers: list[tuple[int, int, Pair]] = [(250, 48, (1, 2)), *[(250, 7, 1)] * 7, (2000, 32, 1), (2000, 1, 1)]
    x = net.x
    for channels, kernel, stride in layers:
        x = net.leaky(net.conv(x, channels, (1, kernel), stride), 0.2)
    return net.model(net.softmax(net.conv(x, 29)))
