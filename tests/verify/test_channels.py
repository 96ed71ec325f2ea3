"""Which axis holds the channels, which of them belong together, and which went dead."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.verify import channels as ch
from vitrify.verify.metrics import ChannelSums

RNG = np.random.default_rng(0)


def _detector(rows: int = 84, anchors: int = 400) -> np.ndarray:
    boxes = RNG.uniform(0, 640, (4, anchors))
    scores = RNG.uniform(0, 1, (rows - 4, anchors)) ** 8 * RNG.uniform(1e-4, 1, (rows - 4, 1))
    scores[min(3, rows - 5)] = 0.9 * RNG.uniform(0, 1, anchors)
    return np.concatenate([boxes, scores])[None].astype(np.float32)


AXES = {
    "detector_rows": (_detector(), 1),
    "detector_columns": (_detector().transpose(0, 2, 1), 2),
    "logits": (RNG.standard_normal((1, 10)), 1),
    "map_nchw": (RNG.random((1, 1, 32, 32)), None),
    "map_nhwc": (RNG.random((1, 32, 32, 1)), None),
    "features_nhwc": (RNG.standard_normal((1, 8, 8, 6)) * np.logspace(0, 3, 6), 3),
    "features_nchw": (RNG.standard_normal((1, 6, 8, 8)) * np.logspace(0, 3, 6)[:, None, None], 1),
    "scalar": (np.array([[0.5]]), None),
    "zeros": (np.zeros((1, 4, 5)), None),
}


@pytest.mark.parametrize("name", AXES)
def test_channel_axis(name: str) -> None:
    reference, axis = AXES[name]
    assert ch.channel_axis(reference) == axis


def _sums(reference: np.ndarray, candidate: np.ndarray | None = None) -> ChannelSums:
    sums = ChannelSums(1)
    sums.add(reference, reference if candidate is None else candidate)
    return sums


def _rows(*reaches: float) -> np.ndarray:
    return (RNG.uniform(-1, 1, (1, len(reaches), 500)) * np.array(reaches)[:, None]).astype(np.float32)


GROUPS = {
    "detector": (_detector(), ["channels 0-3 (up to 6", "channels 4-83 (in 0..1)"]),
    "one_class": (_detector(5), ["channels 0-3 (up to 6", "channels 4 (in 0..1)"]),
    "logits_some_in_0_1": (np.concatenate([_rows(11, 8, 9), np.abs(_rows(0.5))], 1), ["channels 0-3 (up to 1"]),
    "gap": (_rows(100, 90, 1, 2), ["channels 0-1 (up to 9", "channels 2-3 (up to 1.9"]),
    "no_gap": (_rows(64, 16, 4, 2), ["channels 0-3 (up to 6"]),
    "probabilities": (np.abs(_rows(0.9, 1e-3, 1e-6)), ["channels 0-2 (in 0..1)"]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str) -> None:
    reference, expected = GROUPS[name]
    found = [group.name for group in ch.groups(_sums(reference))]
    assert len(found) == len(expected)
    for name, start in zip(found, expected, strict=True):
        assert name.startswith(start)


def test_dead_channels_are_those_that_mattered() -> None:
    reference = _detector()
    candidate = reference.copy()
    candidate[:, 4:] = 0
    sums = _sums(reference, candidate)
    boxes, scores = ch.groups(sums)
    assert ch.dead(sums, boxes).size == 0
    lost = ch.dead(sums, scores)
    assert 7 in lost
    weak = reference[0, 4:].max(1) < 0.01
    assert weak.any()
    assert not set(np.flatnonzero(weak) + 4) & set(lost)


SPELLED = {"0-3": [0, 1, 2, 3], "0, 2": [0, 2], "1-2, 5": [1, 2, 5], "0, 2, 4, 6 and 2 more runs": [0, 2, 4, 6, 8, 10]}


@pytest.mark.parametrize("text", SPELLED)
def test_spell(text: str) -> None:
    assert ch.spell(np.array(SPELLED[text])) == text
