"""Recurrent and convolutional models of sound, text lines and time series, at the size of their descriptions."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional


def conv(i: int, o: int, kernel: int | tuple[int, int], stride: int = 1, padding: int | tuple[int, int] = 0,
         groups: int = 1) -> nn.Sequential:
    """Convolution, BatchNorm, ReLU."""
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(o),
                         nn.ReLU())


class DsCnn(nn.Module):
    """Keyword spotting on 49 frames of 10 MFCC: a wide first kernel, then four depthwise-separable layers."""

    def __init__(self, channels: int = 64, classes: int = 12):
        super().__init__()
        layers = [conv(1, channels, (10, 4), 2, (5, 1))]
        for _ in range(4):
            layers += [conv(channels, channels, 3, 1, 1, channels), conv(channels, channels, 1)]
        self.layers = nn.Sequential(*layers)
        self.classes = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.classes(functional.adaptive_avg_pool2d(self.layers(x), 1).flatten(1)), -1)


class Wav2Letter(nn.Module):
    """Speech to letters by 1-D convolutions over 39 MFCC, as the published keyword-free acoustic model has them."""

    def __init__(self, features: int = 39, letters: int = 29):
        super().__init__()
        sizes = [(features, 250, 48, 2), *[(250, 250, 7, 1)] * 7, (250, 2000, 32, 1), (2000, 2000, 1, 1)]
        layers: list[nn.Module] = []
        for i, o, kernel, stride in sizes:
            layers += [nn.Conv1d(i, o, kernel, stride, kernel // 2), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers)
        self.letters = nn.Conv1d(2000, letters, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(self.letters(self.layers(x.transpose(1, 2))), 1)


class Crnn(nn.Module):
    """Text line recognition: a VGG-like stem on 32 x 128 grey pixels, two bidirectional LSTM layers, letters."""

    def __init__(self, letters: int = 37, hidden: int = 256):
        super().__init__()
        def pool(high: int, wide: int) -> nn.Module:
            return nn.MaxPool2d((2, 2), (high, wide), (0, 0 if wide == 2 else 1))
        self.stem = nn.Sequential(
            nn.Conv2d(1, 64, 3, 1, 1), nn.ReLU(), pool(2, 2), nn.Conv2d(64, 128, 3, 1, 1), nn.ReLU(), pool(2, 2),
            conv(128, 256, 3, 1, 1), nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), pool(2, 1),
            conv(256, 512, 3, 1, 1), nn.Conv2d(512, 512, 3, 1, 1), nn.ReLU(), pool(2, 1), conv(512, 512, 2))
        self.first = nn.LSTM(512, hidden, bidirectional=True)
        self.between = nn.Linear(2 * hidden, hidden)
        self.second = nn.LSTM(hidden, hidden, bidirectional=True)
        self.letters = nn.Linear(2 * hidden, letters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = self.stem(x).squeeze(2).permute(2, 0, 1)
        return self.letters(self.second(self.between(self.first(steps)[0]))[0])


class Recurrent(nn.Module):
    """A recurrent network over a series, with a linear layer on every step or on the last."""

    def __init__(self, kind: str, features: int = 40, hidden: int = 64, outputs: int = 8, layers: int = 1,
                 bidirectional: bool = False, last: bool = False):
        super().__init__()
        self.cells = getattr(nn, kind)(features, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.outputs = nn.Linear(hidden * (1 + bidirectional), outputs)
        self.last = last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = self.cells(x)[0]
        return self.outputs(steps[:, -1] if self.last else steps)


class Streaming(nn.Module):
    """One step of an LSTM whose states are inputs and outputs, as keyword spotters that run on a stream are shipped."""

    def __init__(self, features: int = 40, hidden: int = 64):
        super().__init__()
        self.cells = nn.LSTM(features, hidden, batch_first=True)
        self.outputs = nn.Linear(hidden, 12)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, ...]:
        steps, (new_hidden, new_cell) = self.cells(x, (hidden.transpose(0, 1), cell.transpose(0, 1)))
        return self.outputs(steps), new_hidden, new_cell


class CausalBlock(nn.Module):
    """Two dilated convolutions that see only the past, and a way around them."""

    def __init__(self, i: int, o: int, kernel: int, dilation: int):
        super().__init__()
        self.past = (kernel - 1) * dilation
        self.first = nn.Conv1d(i, o, kernel, padding=self.past, dilation=dilation)
        self.second = nn.Conv1d(o, o, kernel, padding=self.past, dilation=dilation)
        self.around = nn.Conv1d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.first(x)[:, :, :-self.past])      # the padding behind the present is cut off again
        y = functional.relu(self.second(y)[:, :, :-self.past])
        return functional.relu(y + self.around(x))


class Tcn(nn.Module):
    """Temporal convolutional network: dilations 1 to 64 over a series."""

    def __init__(self, features: int = 16, channels: int = 64, outputs: int = 10):
        super().__init__()
        sizes = [features, *[channels] * 7]
        self.blocks = nn.Sequential(*(CausalBlock(i, o, 3, 2 ** k) for k, (i, o) in enumerate(pairwise(sizes))))
        self.outputs = nn.Linear(channels, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outputs(self.blocks(x.transpose(1, 2))[:, :, -1])


def ds_cnn() -> nn.Module:
    """DS-CNN, small."""
    return DsCnn()


def wav2letter() -> nn.Module:
    """wav2letter-like."""
    return Wav2Letter()


def crnn() -> nn.Module:
    """CRNN."""
    return Crnn()


def recurrent(**options: object) -> nn.Module:
    """LSTM, GRU or RNN over a series."""
    return Recurrent(**options)  # type: ignore[arg-type]


def streaming() -> nn.Module:
    """LSTM with its states outside."""
    return Streaming()


def tcn() -> nn.Module:
    """TCN."""
    return Tcn()


class KeywordLstm(nn.Module):
    """Three words out of 49 spectra: an LSTM whose every step counts."""

    def __init__(self, features: int = 257, hidden: int = 80, steps: int = 49, words: int = 3):
        super().__init__()
        self.cells = nn.LSTM(features, hidden, batch_first=True)
        self.words = nn.Linear(steps * hidden, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.words(self.cells(x)[0].flatten(1)), -1)


def keyword_lstm() -> nn.Module:
    """The LSTM variant of micro speech."""
    return KeywordLstm()
