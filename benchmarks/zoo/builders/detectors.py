"""One-stage detectors beside YOLO, at the size of their descriptions; boxes are decoded, suppression is outside."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from builders.layers import cells, conv, separable


def leaky() -> nn.Module:
    """NanoDet's activation."""
    return nn.LeakyReLU(0.1)


class ChannelSplit(nn.Module):
    """ShuffleNetV2's unit with LeakyReLU, as NanoDet uses it."""

    def __init__(self, i: int, o: int, stride: int):
        super().__init__()
        half, self.stride = o // 2, stride
        into = i if stride == 2 else i // 2
        self.through = nn.Sequential(conv(into, half, 1, activation=leaky),
                                     conv(half, half, 3, stride, half, activation=None),
                                     conv(half, half, 1, activation=leaky))
        self.around = nn.Sequential(conv(i, i, 3, 2, i, activation=None), conv(i, half, 1, activation=leaky)) \
            if stride == 2 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.stride == 2:
            y = torch.cat((self.around(x), self.through(x)), 1)
        else:
            first, second = x.chunk(2, 1)
            y = torch.cat((first, self.through(second)), 1)
        batch, channels, height, width = y.shape
        return y.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(batch, channels, height, width)


class Ghost(nn.Module):
    """Half of the channels by a 1x1 convolution, the others from those by a cheap depthwise one."""

    def __init__(self, i: int, o: int):
        super().__init__()
        half = o // 2
        self.main = conv(i, half, 1, activation=leaky)
        self.cheap = conv(half, half, 3, groups=half, activation=leaky)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        main = self.main(x)
        return torch.cat((main, self.cheap(main)), 1)


class NanoDet(nn.Module):
    """NanoDet-Plus-m: ShuffleNetV2, a ghost pyramid of four levels, boxes as distributions over eight distances."""

    def __init__(self, classes: int = 80, width: int = 96, reach: int = 8):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 24, 3, 2, activation=leaky), nn.MaxPool2d(3, 2, 1))
        sizes = ((24, 116, 4), (116, 232, 8), (232, 464, 4))
        self.stages = nn.ModuleList(nn.Sequential(ChannelSplit(i, o, 2), *(ChannelSplit(o, o, 1) for _ in range(n - 1)))
                                    for i, o, n in sizes)
        self.reduce = nn.ModuleList(conv(o, width, 1, activation=leaky) for _, o, _ in sizes)
        self.ups = nn.ModuleList(Ghost(2 * width, width) for _ in range(2))
        self.downs = nn.ModuleList(separable(width, width, 5, 2, leaky) for _ in range(2))
        self.outs = nn.ModuleList(Ghost(2 * width, width) for _ in range(2))
        self.extra = nn.ModuleList(separable(width, width, 5, 2, leaky) for _ in range(2))
        self.towers = nn.ModuleList(nn.Sequential(separable(width, width, 5, activation=leaky),
                                                  separable(width, width, 5, activation=leaky)) for _ in range(4))
        self.last = nn.ModuleList(nn.Conv2d(width, classes + 4 * reach, 1) for _ in range(4))
        self.classes, self.reach = classes, reach
        self.register_buffer("distances", torch.arange(float(reach)))

    def pyramid(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return the four levels of features."""
        features, y = [], self.stem(x)
        for stage, reduce in zip(self.stages, self.reduce, strict=True):
            y = stage(y)
            features.append(reduce(y))
        first, middle, late = features
        inner = self.ups[0](torch.cat((functional.interpolate(late, scale_factor=2.0, mode="bilinear"), middle), 1))
        outs = [self.ups[1](torch.cat((functional.interpolate(inner, scale_factor=2.0, mode="bilinear"), first), 1))]
        for down, join, other in zip(self.downs, self.outs, (inner, late), strict=True):
            outs.append(join(torch.cat((down(outs[-1]), other), 1)))
        return [*outs, self.extra[0](late) + self.extra[1](outs[-1])]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, boxes = [], []
        for feature, tower, last, stride in zip(self.pyramid(x), self.towers, self.last, (8, 16, 32, 64), strict=True):
            y = last(tower(feature)).flatten(2).permute(0, 2, 1)
            classes, sides = y.split((self.classes, 4 * self.reach), -1)
            reach = functional.softmax(sides.reshape(*sides.shape[:2], 4, self.reach), -1)
            reach = functional.linear(reach, self.distances[None]).squeeze(-1) * stride
            centres = cells(*feature.shape[2:])[None] * stride
            boxes.append(torch.cat((centres - reach[..., :2], centres + reach[..., 2:]), -1))
            scores.append(classes.sigmoid())
        return torch.cat(scores, 1), torch.cat(boxes, 1)


class Fusion(nn.Module):
    """EfficientDet's weighted sum of features: positive weights that add up to one."""

    def __init__(self, count: int, width: int):
        super().__init__()
        self.weights = nn.Parameter(0.5 + torch.rand(count))
        self.conv = separable(width, width, activation=nn.SiLU)

    def forward(self, *features: torch.Tensor) -> torch.Tensor:
        weights = functional.relu(self.weights)
        weights = weights / (weights.sum() + 1e-4)
        return self.conv(sum(w * f for w, f in zip(weights, features, strict=True)))


class BiFpn(nn.Module):
    """One layer of the two-way pyramid over five levels."""

    def __init__(self, width: int):
        super().__init__()
        self.ups = nn.ModuleList(Fusion(2, width) for _ in range(4))
        self.downs = nn.ModuleList(Fusion(3 if k < 3 else 2, width) for k in range(4))

    def forward(self, features: list[torch.Tensor]) -> list[torch.Tensor]:
        up = [features[-1]]
        for fuse, feature in zip(self.ups, features[-2::-1], strict=True):
            up.append(fuse(feature, functional.interpolate(up[-1], size=feature.shape[2:])))
        outs, inner = [up[-1]], up[-2::-1]
        for k, fuse in enumerate(self.downs):
            down = functional.max_pool2d(outs[-1], 3, 2, 1)
            outs.append(fuse(features[k + 1], inner[k], down) if k < 3 else fuse(features[-1], down))
        return outs


class EfficientDet(nn.Module):
    """EfficientDet-D0: B0 features, three two-way pyramid layers of 64 channels, shared heads with their own norms."""

    def __init__(self, backbone: str, classes: int = 90, width: int = 64, size: int = 512):
        super().__init__()
        import timm

        self.backbone = timm.create_model(backbone, pretrained=False, features_only=True, out_indices=(2, 3, 4))
        widths = self.backbone.feature_info.channels()
        self.reduce = nn.ModuleList(conv(i, width, 1, activation=None) for i in (*widths, widths[-1]))
        self.layers = nn.ModuleList(BiFpn(width) for _ in range(3))
        self.class_convs, self.box_convs = (
            nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False),
                                        nn.Conv2d(width, width, 1)) for _ in range(3)) for _ in range(2))
        self.class_norms, self.box_norms = (
            nn.ModuleList(nn.ModuleList(nn.BatchNorm2d(width) for _ in range(3)) for _ in range(5)) for _ in range(2))
        self.class_last = nn.Conv2d(width, 9 * classes, 3, 1, 1)
        self.box_last = nn.Conv2d(width, 36, 3, 1, 1)
        self.classes = classes
        self.register_buffer("anchors", efficientdet_anchors(size))

    def tower(self, x: torch.Tensor, convs: nn.ModuleList, norms: nn.ModuleList) -> torch.Tensor:
        """Run the shared convolutions with one level's norms."""
        for layer, norm in zip(convs, norms, strict=True):
            x = functional.silu(norm(layer(x)))
        return x

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = list(self.backbone(x))
        features = [r(f) for r, f in zip(self.reduce, (*found, found[-1]), strict=True)]
        features[3] = functional.max_pool2d(features[3], 3, 2, 1)
        features.append(functional.max_pool2d(features[3], 3, 2, 1))
        for layer in self.layers:
            features = layer(features)
        scores, boxes = [], []
        for k, feature in enumerate(features):
            y = self.class_last(self.tower(feature, self.class_convs, self.class_norms[k]))
            scores.append(y.permute(0, 2, 3, 1).reshape(y.shape[0], -1, self.classes))
            y = self.box_last(self.tower(feature, self.box_convs, self.box_norms[k]))
            boxes.append(y.permute(0, 2, 3, 1).reshape(y.shape[0], -1, 4))
        return torch.cat(scores, 1).sigmoid(), self.decode(torch.cat(boxes, 1))

    def decode(self, offsets: torch.Tensor) -> torch.Tensor:
        """Return corners from offsets to the anchor boxes (y, x, height, width)."""
        centres, sizes = self.anchors.split(2, -1)
        centres = offsets[..., :2] * sizes + centres
        sizes = (0.2 * offsets[..., 2:]).exp() * sizes
        return torch.cat((centres - sizes / 2, centres + sizes / 2), -1)


def efficientdet_anchors(size: int) -> torch.Tensor:
    """Return nine boxes for each cell of five levels: [count, (y, x, height, width)]."""
    rows = []
    for level in range(3, 8):
        stride = 2 ** level
        side = math.ceil(size / stride)
        centres = (cells(side, side).flip(-1) + 0.5) * stride
        shapes = torch.tensor([(4 * stride * s * h, 4 * stride * s * w) for s in (1, 2 ** (1 / 3), 2 ** (2 / 3))
                               for h, w in ((1, 1), (0.7, 1.4), (1.4, 0.7))])
        boxes = torch.cat((centres[:, None].expand(-1, 9, 2), shapes[None].expand(len(centres), 9, 2)), -1)
        rows.append(boxes.reshape(-1, 4))
    return torch.cat(rows)


class CenterNet(nn.Module):
    """CenterNet on ResNet-18: three transposed convolutions, three heads; peaks of the heat are found outside."""

    def __init__(self, classes: int = 80):
        super().__init__()
        import timm

        self.backbone = timm.create_model("resnet18", pretrained=False, features_only=True, out_indices=(4,))
        ups: list[nn.Module] = []
        for i, o in ((512, 256), (256, 128), (128, 64)):
            ups += [conv(i, o), nn.ConvTranspose2d(o, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
        self.ups = nn.Sequential(*ups)
        self.heat, self.sizes, self.offsets = (
            nn.Sequential(nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, o, 1)) for o in (classes, 2, 2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.ups(self.backbone(x)[0])
        return self.heat(y).sigmoid(), self.sizes(y), self.offsets(y)


class SsdLite(nn.Module):
    """torchvision's SSDLite on MobileNetV3 with boxes decoded against its anchors; suppression is left outside."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models.detection import ssdlite320_mobilenet_v3_large
        from torchvision.models.detection.image_list import ImageList

        net = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None).eval()
        self.backbone, self.head = net.backbone, net.head
        with torch.no_grad():
            blank = torch.zeros(1, 3, 320, 320)
            corners = net.anchor_generator(ImageList(blank, [(320, 320)]), list(self.backbone(blank).values()))[0]
        low, high = corners.split(2, -1)
        self.register_buffer("centres", (low + high) / 2)
        self.register_buffer("sizes", high - low)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.head(list(self.backbone(x).values()))
        offsets = found["bbox_regression"]
        centres = offsets[..., :2] / 10 * self.sizes + self.centres
        sizes = torch.clamp(offsets[..., 2:] / 5, max=4.135).exp() * self.sizes
        boxes = torch.cat((centres - 0.5 * sizes, centres + 0.5 * sizes), -1)
        return functional.softmax(found["cls_logits"], -1), boxes


def nanodet() -> nn.Module:
    """NanoDet-Plus-m."""
    return NanoDet()


def efficientdet(backbone: str, size: int) -> nn.Module:
    """EfficientDet with timm's features."""
    return EfficientDet(backbone, size=size)


def centernet() -> nn.Module:
    """CenterNet."""
    return CenterNet()


def ssdlite() -> nn.Module:
    """SSDLite."""
    return SsdLite()
