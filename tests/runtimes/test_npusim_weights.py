"""The decoder of weight streams and their order, against the compiler's own codec."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.weights import Traversal, decode_weights, read_scales, unpack

mlw_codec = pytest.importorskip("ethosu.mlw_codec")
Draw = Callable[[np.random.Generator], np.ndarray]


def bell(random: np.random.Generator, count: int) -> np.ndarray:
    return np.clip(np.rint(random.laplace(0, 12, count)), -255, 255)


DISTRIBUTIONS: dict[str, Draw] = {
    "zeros": lambda random: np.zeros(500),
    "one value": lambda random: np.full(300, -7),
    "one weight": lambda random: np.array([3]),
    "two values": lambda random: random.choice([-3, 4], 1000),
    "a palette": lambda random: random.choice(random.integers(-255, 256, 30), 3000),
    "a small palette and a tail": lambda random: np.where(random.random(4000) < 0.9, random.choice([1, -1, 5], 4000),
                                                          bell(random, 4000)),
    "uniform, 9 bits": lambda random: random.integers(-255, 256, 3000),
    "uniform, 4 bits": lambda random: random.integers(-8, 8, 3000),
    "a bell": lambda random: bell(random, 5000),
    "mostly zeros": lambda random: np.where(random.random(6000) < 0.95, 0, bell(random, 6000)),
    "long runs of zeros": lambda random: np.where(np.arange(6000) % 500 < 3, bell(random, 6000), 0),
    "more than a slice": lambda random: bell(random, 100_000),
    "two parts of other ranges": lambda random: np.concatenate([bell(random, 20_000), random.choice([1, 2], 20_000)]),
}


@pytest.mark.parametrize("draw", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_streams_hold_what_was_put_into_them(draw: Draw) -> None:
    for seed in range(3):
        weights = draw(np.random.default_rng(seed)).astype(np.int64)
        stream = bytes(mlw_codec.encode([int(w) for w in weights]))
        assert decode_weights(stream, len(weights)).tolist() == weights.tolist()


def test_a_stream_of_more_than_is_expected_is_refused() -> None:
    stream = bytes(mlw_codec.encode([1, 2, 3] * 50))
    with pytest.raises(ModelError, match="a slice of 150 weights; 148 are left"):
        decode_weights(stream, 148)


@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_changed_and_cut_streams_end_in_an_error_or_in_weights(count: int) -> None:
    random = np.random.default_rng(0)
    weights = bell(random, 4000).astype(int).tolist()
    stream = bytes(mlw_codec.encode(weights))
    refused = []
    for number in range(count):
        changed = bytearray(stream[:int(random.integers(1, len(stream)))] if number % 3 == 0 else stream)
        for at in random.integers(0, len(changed), 3):
            changed[at] ^= 1 << int(random.integers(0, 8))
        try:
            assert len(decode_weights(bytes(changed), len(weights))) <= len(weights)
        except ModelError as error:
            refused.append(error.findings[0].code)
    assert set(refused) == {"npusim.weight-stream"}
    assert len(refused) > 100


ORDERS = [(outputs, kernel, inputs, depth, depthwise, part, bits)
          for outputs, kernel, inputs, depth in ((13, (3, 3), 21, 16), (40, (1, 1), 70, 16), (24, (9, 11), 5, 8),
                                                 (16, (5, 1), 33, 32), (9, (1, 7), 16, 8))
          for depthwise, part, bits in ((False, False, 8), (False, True, 8), (False, False, 16), (False, True, 16),
                                        (True, False, 8))]


@pytest.mark.parametrize(("outputs", "kernel", "inputs", "depth", "depthwise", "part", "bits"), ORDERS)
def test_the_order_is_the_compilers(outputs: int, kernel: tuple[int, int], inputs: int, depth: int, depthwise: bool,
                                    part: bool, bits: int) -> None:
    inputs = 1 if depthwise else inputs
    weights = np.random.default_rng(0).integers(-127, 128, (outputs, *kernel, inputs)).astype(np.int16)
    for unit in (4, 8):
        encoded, _ = mlw_codec.reorder_encode(8, unit, weights, depth, depthwise, part, bits, 8, 8)
        walk = Traversal(outputs, kernel, inputs, depth, depthwise, part, bits, (1, 1), unit)
        assert (unpack([bytes(encoded)], walk) == weights).all()


def test_scales_of_two_cores_alternate() -> None:
    rows = [(bias & (1 << 40) - 1).to_bytes(5, "little") + scale.to_bytes(4, "little") + bytes([shift])
            for bias, scale, shift in ((-5, 1 << 30, 31), (1 << 39 - 1, 7, 63), (-(1 << 39), (1 << 32) - 1, 0))]
    found = read_scales([rows[0] + rows[2], rows[1]], 3)
    assert found.bias.tolist() == [-5, 1 << 38, -(1 << 39)]
    assert found.scale.tolist() == [1 << 30, 7, (1 << 32) - 1]
    assert found.shift.tolist() == [31, 63, 0]
    with pytest.raises(ModelError, match="19 bytes of scales for 2 outputs"):
        read_scales([bytes(19), bytes(10)], 3)
