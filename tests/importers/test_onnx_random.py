"""Random attributes: whatever ONNX Runtime takes, the importer gives the same or says that it does not do it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, by_litert, by_runtime, saved

from vitrify.core.errors import UnsupportedError
from vitrify.importers import load

ROUNDS = 40
Random = np.random.Generator


def numbers(rng: Random, count: int, low: int, high: int) -> list[int]:
    return [int(v) for v in rng.integers(low, high + 1, count)]


def weights(rng: Random, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def convolution(rng: Random) -> Case:
    rank = int(rng.choice([1, 2, 2, 2]))
    group, outputs = int(rng.choice([1, 1, 2, 4])), int(rng.choice([4, 8]))
    attributes = {"strides": numbers(rng, rank, 1, 3), "group": group}
    if rng.random() < 0.3:
        # ONNX Runtime takes no dilation with automatic pads, and no stride above the kernel's reach.
        attributes |= {"auto_pad": str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))}
    else:
        attributes |= {"pads": numbers(rng, 2 * rank, 0, 3), "dilations": numbers(rng, rank, 1, 2)}
    size = numbers(rng, rank, 9, 13)
    return Case(
        "Conv",
        [(1, 4, *size), weights(rng, outputs, 4 // group, *numbers(rng, rank, 3, 4)), weights(rng, outputs)],
        attributes,
        tolerance=5e-6,
    )


def transposed(rng: Random) -> Case:
    group, strides = int(rng.choice([1, 1, 2, 4])), numbers(rng, 2, 1, 3)
    attributes = {"strides": strides, "dilations": numbers(rng, 2, 1, 2), "group": group}
    if rng.random() < 0.3:
        attributes |= {"auto_pad": str(rng.choice(["SAME_UPPER", "SAME_LOWER"]))}
    else:
        attributes |= {"pads": numbers(rng, 4, 0, 2), "output_padding": [int(rng.integers(0, s)) for s in strides]}
    shape = (4, *numbers(rng, 1, 1, 3), *numbers(rng, 2, 3, 5))
    return Case("ConvTranspose", [(1, 4, *numbers(rng, 2, 3, 7)), weights(rng, *shape)], attributes, tolerance=5e-6)


def pool(rng: Random) -> Case:
    rank = int(rng.choice([1, 2, 2, 2]))
    kind, kernel = str(rng.choice(["MaxPool", "AveragePool"])), numbers(rng, rank, 2, 4)
    attributes = {"kernel_shape": kernel, "strides": [int(rng.integers(1, k + 1)) for k in kernel]}
    if rng.random() < 0.25:
        attributes |= {"auto_pad": str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))}
    else:
        attributes |= {"pads": [int(rng.integers(0, k)) for k in kernel * 2], "ceil_mode": int(rng.integers(0, 2))}
    if kind == "AveragePool":
        attributes |= {"count_include_pad": int(rng.integers(0, 2))}
    return Case(kind, [(1, 3, *numbers(rng, rank, 5, 11))], attributes, 19, low=-5, high=-1, tolerance=5e-6)


def resize(rng: Random) -> Case:
    attributes = {
        "mode": str(rng.choice(["nearest", "linear"])),
        "coordinate_transformation_mode": str(
            rng.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
        ),
    }
    if attributes["mode"] == "nearest":
        attributes |= {"nearest_mode": str(rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))}
    if rng.random() < 0.5:
        scales = np.array([1, 1, rng.choice([0.5, 1, 1.5, 2, 3, 4]), rng.choice([0.5, 1, 2, 3, 1.3])], np.float32)
        return Case("Resize", [(1, 3, *numbers(rng, 2, 3, 9)), None, scales], attributes)
    return Case(
        "Resize", [(1, 3, *numbers(rng, 2, 3, 9)), None, None, np.array([1, 3, *numbers(rng, 2, 2, 20)])], attributes
    )


def slices(rng: Random) -> Case:
    axes = rng.permutation(3)[: rng.integers(1, 4)]
    bounds = [rng.integers(-8, 8, len(axes)) for _ in range(2)]
    steps = rng.choice([-3, -2, -1, 1, 2, 3], len(axes))
    return Case("Slice", [tuple(numbers(rng, 3, 2, 6)), *bounds, axes, steps])


def pad(rng: Random) -> Case:
    mode = str(rng.choice(["constant", "reflect", "edge", "wrap"]))
    low = -1 if mode == "constant" else 0
    table = np.array([0, *numbers(rng, 3, low, 2), 0, *numbers(rng, 3, low, 2)])
    value = [np.array(rng.choice([0, 1.5]), np.float32)] if mode == "constant" else []
    return Case("Pad", [(1, *numbers(rng, 3, 3, 6)), table, *value], {"mode": mode}, 19)


def matmul(rng: Random) -> Case:
    stacks = [(), (2,), (3, 2), (3, 1), (1,)]
    m, k, n = numbers(rng, 3, 1, 4)
    a, b = (*stacks[rng.integers(5)], m, k), (*stacks[rng.integers(5)], k, n)
    a, b = (k,) if rng.random() < 0.1 else a, (k,) if rng.random() < 0.1 else b
    return Case("MatMul", [a, b if rng.random() < 0.5 else weights(rng, *b)], tolerance=5e-6)


FAMILIES: dict[str, Callable[[Random], Case]] = {
    "convolution": convolution,
    "transposed": transposed,
    "pool": pool,
    "resize": resize,
    "slice": slices,
    "pad": pad,
    "matmul": matmul,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_random_form_equals_onnx_runtime(family: str, tmp_path: Path) -> None:
    done = 0
    for seed in range(ROUNDS):
        case = FAMILIES[family](np.random.default_rng(seed))
        path = saved(case.proto(), tmp_path)
        try:
            model = load(path)
        except UnsupportedError:
            continue
        feeds = case.feeds()
        wanted, got = by_runtime(path, feeds)["y0"], by_litert(model, feeds)["y0"]
        assert got.shape == wanted.shape, (seed, case)
        assert np.abs(got - wanted).max() <= case.tolerance * np.abs(wanted).max(), (seed, case)
        done += 1
    assert done >= ROUNDS / 5
