"""Seeded inputs of each kind that models.toml names. A kind is a function of (shape, generator)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from table import Entry
from torch.nn import functional

Kind = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]

OCTAVES = ((4, 0.5), (16, 0.3), (64, 0.2))
"""Cells along the longer side of a picture and the contrast of that detail."""


def pixels(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Smooth random pictures in 0..1, or spectrograms: noise of three sizes, and a little grain."""
    *_, height, width = shape
    picture = torch.zeros(shape)
    for cells, contrast in OCTAVES:
        coarse = torch.randn(*shape[:-2], min(cells, height), min(cells, width), generator=generator)
        flat = coarse.flatten(0, -3).unsqueeze(1)
        fine = functional.interpolate(flat, (height, width), mode="bilinear", align_corners=False)
        picture += contrast * fine.view(shape)
    grain = torch.randn(shape, generator=generator)
    return (0.5 + 0.4 * picture + 0.02 * grain).clamp(0, 1)


def imagenet(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Pictures normalised with ImageNet's mean and deviation."""
    mean, deviation = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]).view(2, 1, 3, 1, 1)
    return (pixels(shape, generator) - mean) / deviation


def signed(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Pictures or spectrograms in -1..1."""
    return 2 * pixels(shape, generator) - 1


def series(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Random walks over time: [batch, time, features]."""
    return torch.cumsum(torch.randn(shape, generator=generator), 1) / math.sqrt(shape[1])


def features(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Independent numbers of deviation one."""
    return torch.randn(shape, generator=generator)


def tokens(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Token numbers of a vocabulary of a few thousand."""
    return torch.randint(100, 5000, shape, generator=generator)


def mask(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """One for the tokens that count, zero for the padding: the last quarter."""
    kept = torch.ones(shape, dtype=torch.int64)
    kept[:, shape[1] * 3 // 4:] = 0
    return kept


KINDS: dict[str, Kind] = {k.__name__: k for k in (pixels, imagenet, signed, series, features, tokens, mask)}


def draw(entry: Entry, count: int, seed: int) -> tuple[torch.Tensor, ...]:
    """Return ``count`` samples of each input, joined along the batch axis."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(KINDS[i.values]((count * i.shape[0], *i.shape[1:]), generator) for i in entry.inputs)
