"""FaceNet: Inception-ResNet-V1, a vector of 512 numbers at length one for a face."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

Size = int | tuple[int, int]


def cbr(i: int, o: int, kernel: Size = 1, stride: int = 1, padding: Size = 0) -> nn.Sequential:
    """Convolution, BatchNorm, ReLU."""
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, padding, bias=False), nn.BatchNorm2d(o, eps=1e-3), nn.ReLU())


class Mixed(nn.Module):
    """Branches over the same input, joined; with ``scale``, a share of a 1x1 of them is added to the input."""

    def __init__(self, branches: Sequence[nn.Module], width: int = 0, joined: int = 0, scale: float = 0.0,
                 activate: bool = True):
        super().__init__()
        self.branches = nn.ModuleList(branches)
        self.last = nn.Conv2d(joined, width, 1) if scale else None
        self.scale, self.activate = scale, activate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([branch(x) for branch in self.branches], 1)
        if self.last is None:
            return joined
        y = self.last(joined) * self.scale + x
        return functional.relu(y) if self.activate else y


def block35() -> nn.Module:
    """A residual unit on 35 x 35 cells."""
    return Mixed([cbr(256, 32), nn.Sequential(cbr(256, 32), cbr(32, 32, 3, 1, 1)),
                  nn.Sequential(cbr(256, 32), cbr(32, 32, 3, 1, 1), cbr(32, 32, 3, 1, 1))], 256, 96, 0.17)


def block17() -> nn.Module:
    """A residual unit on 17 x 17 cells: long thin kernels."""
    return Mixed([cbr(896, 128), nn.Sequential(cbr(896, 128), cbr(128, 128, (1, 7), 1, (0, 3)),
                                               cbr(128, 128, (7, 1), 1, (3, 0)))], 896, 256, 0.10)


def block8(scale: float = 0.20, activate: bool = True) -> nn.Module:
    """A residual unit on 8 x 8 cells."""
    return Mixed([cbr(1792, 192), nn.Sequential(cbr(1792, 192), cbr(192, 192, (1, 3), 1, (0, 1)),
                                                cbr(192, 192, (3, 1), 1, (1, 0)))], 1792, 384, scale, activate)


class FaceNet(nn.Module):
    """Inception-ResNet-V1 on 160 x 160 pixels."""

    def __init__(self, outputs: int = 512):
        super().__init__()
        self.stem = nn.Sequential(cbr(3, 32, 3, 2), cbr(32, 32, 3), cbr(32, 64, 3, 1, 1), nn.MaxPool2d(3, 2),
                                  cbr(64, 80), cbr(80, 192, 3), cbr(192, 256, 3, 2))
        reduce35 = Mixed([cbr(256, 384, 3, 2),
                          nn.Sequential(cbr(256, 192), cbr(192, 192, 3, 1, 1), cbr(192, 256, 3, 2)),
                          nn.MaxPool2d(3, 2)])
        reduce17 = Mixed([nn.Sequential(cbr(896, 256), cbr(256, 384, 3, 2)),
                          nn.Sequential(cbr(896, 256), cbr(256, 256, 3, 2)),
                          nn.Sequential(cbr(896, 256), cbr(256, 256, 3, 1, 1), cbr(256, 256, 3, 2)),
                          nn.MaxPool2d(3, 2)])
        self.blocks = nn.Sequential(*(block35() for _ in range(5)), reduce35, *(block17() for _ in range(10)), reduce17,
                                    *(block8() for _ in range(5)), block8(1.0, False))
        self.linear, self.norm = nn.Linear(1792, outputs, bias=False), nn.BatchNorm1d(outputs, eps=1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = functional.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1)
        return functional.normalize(self.norm(self.linear(pooled)), p=2, dim=1)


def facenet() -> nn.Module:
    """FaceNet."""
    return FaceNet()
