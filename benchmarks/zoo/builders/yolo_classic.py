"""YOLO generations that no library here has: anchor boxes, the Focus stem, decoupled heads; decoded as users ship them.

Sizes follow the published descriptions of the smallest members. The code is this project's own.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from weights import observe, rescale

from builders.layers import cells, conv, separable

ANCHORS = (((10, 13), (16, 30), (33, 23)), ((30, 61), (62, 45), (59, 119)), ((116, 90), (156, 198), (373, 326)))
STRIDES = (8, 16, 32)


def leaky() -> nn.Module:
    """The activation of YOLOv7-tiny."""
    return nn.LeakyReLU(0.1)


class Bottleneck(nn.Module):
    """1x1, then 3x3, added to what came in."""

    def __init__(self, i: int, o: int, add: bool = True, depthwise: bool = False):
        super().__init__()
        self.one = conv(i, o, 1, activation=nn.SiLU)
        self.three = separable(o, o, 3, activation=nn.SiLU) if depthwise else conv(o, o, 3, activation=nn.SiLU)
        self.add = add and i == o

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.three(self.one(x))
        return x + y if self.add else y


class Csp(nn.Module):
    """Half of the channels through bottlenecks, half around them."""

    def __init__(self, i: int, o: int, count: int = 1, add: bool = True, depthwise: bool = False):
        super().__init__()
        half = o // 2
        self.through, self.around = conv(i, half, 1, activation=nn.SiLU), conv(i, half, 1, activation=nn.SiLU)
        self.blocks = nn.Sequential(*(Bottleneck(half, half, add, depthwise) for _ in range(count)))
        self.joined = conv(2 * half, o, 1, activation=nn.SiLU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.joined(torch.cat((self.blocks(self.through(x)), self.around(x)), 1))


class Pyramid(nn.Module):
    """Pooling of several sizes: one after the other, or side by side."""

    def __init__(self, i: int, o: int, serial: bool = True):
        super().__init__()
        self.one, self.joined = conv(i, i // 2, 1, activation=nn.SiLU), conv(2 * i, o, 1, activation=nn.SiLU)
        self.serial = serial

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.one(x)]
        for k in (5, 9, 13):
            source, size = (parts[-1], 5) if self.serial else (parts[0], k)
            parts.append(functional.max_pool2d(source, size, 1, size // 2))
        return self.joined(torch.cat(parts, 1))


class Focus(nn.Module):
    """Every second pixel, four times, as channels."""

    def __init__(self, o: int):
        super().__init__()
        self.conv = conv(12, o, 3, activation=nn.SiLU)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        corners = (x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2])
        return self.conv(torch.cat(corners, 1))


class CspNet(nn.Module):
    """The backbone and neck of YOLOv5 and YOLOX, width 0.25 and depth 0.33."""

    def __init__(self, stem: nn.Module, serial: bool, depthwise: bool = False):
        super().__init__()
        a, b, c, d, e = 16, 32, 64, 128, 256
        def down(i: int, o: int) -> nn.Module:
            return separable(i, o, 3, 2, nn.SiLU) if depthwise else conv(i, o, 3, 2, activation=nn.SiLU)
        def csp(i: int, o: int, count: int = 1, add: bool = True) -> nn.Module:
            return Csp(i, o, count, add, depthwise)
        self.stem = stem
        self.early = nn.Sequential(down(a, b), csp(b, b), down(b, c), csp(c, c, 3 if depthwise else 2))
        self.middle = nn.Sequential(down(c, d), csp(d, d, 3))
        pool, last = Pyramid(e, e, serial), csp(e, e, 1, serial)
        self.late = nn.Sequential(down(d, e), *((last, pool) if serial else (pool, last)))
        self.late_one, self.middle_one = conv(e, d, 1, activation=nn.SiLU), conv(d, c, 1, activation=nn.SiLU)
        self.up_middle, self.up_early = csp(2 * d, d, 1, False), csp(2 * c, c, 1, False)
        self.down_early, self.down_middle = down(c, c), down(d, d)
        self.out_middle, self.out_late = csp(2 * c, d, 1, False), csp(2 * d, e, 1, False)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        early = self.early(self.stem(x))
        middle = self.middle(early)
        late = self.late_one(self.late(middle))
        middle = self.middle_one(self.up_middle(torch.cat((functional.interpolate(late, scale_factor=2.0), middle), 1)))
        first = self.up_early(torch.cat((functional.interpolate(middle, scale_factor=2.0), early), 1))
        second = self.out_middle(torch.cat((self.down_early(first), middle), 1))
        return [first, second, self.out_late(torch.cat((self.down_middle(second), late), 1))]


class Elan(nn.Module):
    """YOLOv7-tiny's block: two 1x1 branches, two 3x3 in a row, all joined."""

    def __init__(self, i: int, hidden: int, o: int):
        super().__init__()
        self.around, self.one = conv(i, hidden, 1, activation=leaky), conv(i, hidden, 1, activation=leaky)
        self.two, self.three = conv(hidden, hidden, activation=leaky), conv(hidden, hidden, activation=leaky)
        self.joined = conv(4 * hidden, o, 1, activation=leaky)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.one(x)
        two = self.two(one)
        return self.joined(torch.cat((self.three(two), two, one, self.around(x)), 1))


class TinySpp(nn.Module):
    """Pooling side by side with a way around, as YOLOv7-tiny has it."""

    def __init__(self, i: int, o: int):
        super().__init__()
        self.around, self.one = conv(i, o, 1, activation=leaky), conv(i, o, 1, activation=leaky)
        self.pooled, self.joined = conv(4 * o, o, 1, activation=leaky), conv(2 * o, o, 1, activation=leaky)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.one(x)
        pooled = [functional.max_pool2d(one, k, 1, k // 2) for k in (13, 9, 5)]
        return self.joined(torch.cat((self.pooled(torch.cat((*pooled, one), 1)), self.around(x)), 1))


class TinySeven(nn.Module):
    """The backbone and neck of YOLOv7-tiny."""

    def __init__(self) -> None:
        super().__init__()
        self.early = nn.Sequential(conv(3, 32, 3, 2, activation=leaky), conv(32, 64, 3, 2, activation=leaky),
                                   Elan(64, 32, 64), nn.MaxPool2d(2), Elan(64, 64, 128))
        self.middle = nn.Sequential(nn.MaxPool2d(2), Elan(128, 128, 256))
        self.late = nn.Sequential(nn.MaxPool2d(2), Elan(256, 256, 512), TinySpp(512, 256))
        self.late_one, self.middle_side = conv(256, 128, 1, activation=leaky), conv(256, 128, 1, activation=leaky)
        self.middle_one, self.early_side = conv(128, 64, 1, activation=leaky), conv(128, 64, 1, activation=leaky)
        self.up_middle, self.up_early = Elan(256, 64, 128), Elan(128, 32, 64)
        self.down_early = conv(64, 128, 3, 2, activation=leaky)
        self.down_middle = conv(128, 256, 3, 2, activation=leaky)
        self.out_middle, self.out_late = Elan(256, 64, 128), Elan(512, 128, 256)
        self.outs = nn.ModuleList(conv(i, 2 * i, activation=leaky) for i in (64, 128, 256))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        early = self.early(x)
        middle = self.middle(early)
        late = self.late(middle)
        up = functional.interpolate(self.late_one(late), scale_factor=2.0)
        middle = self.up_middle(torch.cat((self.middle_side(middle), up), 1))
        up = functional.interpolate(self.middle_one(middle), scale_factor=2.0)
        first = self.up_early(torch.cat((self.early_side(early), up), 1))
        second = self.out_middle(torch.cat((self.down_early(first), middle), 1))
        third = self.out_late(torch.cat((self.down_middle(second), late), 1))
        return [out(f) for out, f in zip(self.outs, (first, second, third), strict=True)]


class AnchorHead(nn.Module):
    """Three anchor boxes per cell; x, y, w, h, objectness and classes, decoded into pixels in a 5-D tensor."""

    def __init__(self, net: nn.Module, widths: tuple[int, ...], classes: int = 80):
        super().__init__()
        self.net, self.values = net, 5 + classes
        self.last = nn.ModuleList(nn.Conv2d(w, 3 * self.values, 1) for w in widths)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for feature, last, stride, anchors in zip(self.net(x), self.last, STRIDES, ANCHORS, strict=True):
            batch, _, height, width = feature.shape
            y = last(feature).view(batch, 3, self.values, height, width).permute(0, 1, 3, 4, 2).contiguous()
            grid = cells(height, width).view(1, 1, height, width, 2) - 0.5
            sizes = torch.tensor(anchors).view(1, 3, 1, 1, 2).float()
            xy, wh, scores = y.sigmoid().split((2, 2, self.values - 4), 4)
            xy, wh = (xy * 2 + grid) * stride, (wh * 2) ** 2 * sizes
            rows.append(torch.cat((xy, wh, scores), 4).view(batch, -1, self.values))
        return torch.cat(rows, 1)

    def finish(self, batch: tuple[torch.Tensor, ...]) -> None:
        """Scale the logits."""
        for last, out in zip(self.last, observe(self, list(self.last), batch), strict=True):
            rescale(last, out, 1.5, -1.5)


class DecoupledHead(nn.Module):
    """YOLOX: classes and boxes apart, no anchors; decoded with exp, or left as they are."""

    def __init__(self, net: nn.Module, widths: tuple[int, ...], hidden: int = 64, classes: int = 80):
        super().__init__()
        def tower() -> nn.Module:
            return nn.Sequential(*(separable(hidden, hidden, activation=nn.SiLU) for _ in range(2)))
        self.net = net
        self.stems = nn.ModuleList(conv(w, hidden, 1, activation=nn.SiLU) for w in widths)
        self.class_towers, self.box_towers = (nn.ModuleList(tower() for _ in widths) for _ in range(2))
        self.classes, self.boxes, self.objects = (
            nn.ModuleList(nn.Conv2d(hidden, o, 1) for _ in widths) for o in (classes, 4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, grids, strides = [], [], []
        for k, feature in enumerate(self.net(x)):
            stem = self.stems[k](feature)
            boxes = self.box_towers[k](stem)
            parts = (self.boxes[k](boxes), self.objects[k](boxes).sigmoid(),
                     self.classes[k](self.class_towers[k](stem)).sigmoid())
            rows.append(torch.cat(parts, 1).flatten(2))
            height, width = feature.shape[2:]
            grids.append(cells(height, width))
            strides.append(torch.full((height * width, 1), float(STRIDES[k])))
        y = torch.cat(rows, 2).permute(0, 2, 1)
        grid, stride = torch.cat(grids)[None], torch.cat(strides)[None]
        return torch.cat(((y[..., :2] + grid) * stride, y[..., 2:4].exp() * stride, y[..., 4:]), -1)

    def finish(self, batch: tuple[torch.Tensor, ...]) -> None:
        """Scale the logits."""
        for layers, deviation, mean in ((self.classes, 1.5, -2.0), (self.objects, 1.5, -3.0), (self.boxes, 0.7, 0.5)):
            for layer, out in zip(layers, observe(self, list(layers), batch), strict=True):
                rescale(layer, out, deviation, mean)


def yolov5n() -> nn.Module:
    """YOLOv5n with its anchor boxes."""
    return AnchorHead(CspNet(conv(3, 16, 5, 2, activation=nn.SiLU), serial=True), (64, 128, 256))


def yolov7_tiny() -> nn.Module:
    """YOLOv7-tiny."""
    return AnchorHead(TinySeven(), (128, 256, 512))


def yolox_nano() -> nn.Module:
    """YOLOX-nano: depthwise throughout."""
    return DecoupledHead(CspNet(Focus(16), serial=False, depthwise=True), (64, 128, 256))


def finish(net: nn.Module, batch: tuple[torch.Tensor, ...]) -> nn.Module:
    """Give the last layers logits as trained ones have."""
    net.finish(batch)
    return net
