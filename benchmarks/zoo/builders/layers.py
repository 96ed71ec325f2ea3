"""Blocks that several of the architectures written here share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def conv(i: int, o: int, kernel: int = 3, stride: int = 1, groups: int = 1, dilation: int = 1,
         activation: Callable[[], nn.Module] | None = nn.ReLU) -> nn.Sequential:
    """Convolution that keeps the size at stride 1, BatchNorm, activation."""
    padding = (kernel - 1) // 2 * dilation
    layers = [nn.Conv2d(i, o, kernel, stride, padding, dilation, groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


def separable(i: int, o: int, kernel: int = 3, stride: int = 1,
              activation: Callable[[], nn.Module] | None = nn.ReLU) -> nn.Sequential:
    """A depthwise convolution, then a pointwise one."""
    return nn.Sequential(conv(i, i, kernel, stride, i, activation=activation), conv(i, o, 1, activation=activation))


def cells(height: int, width: int) -> torch.Tensor:
    """Return the x and y of every cell of a grid, row by row: [height * width, 2]."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack((x, y), -1).view(-1, 2).float()
