"""Reading between the pixels against ONNX Runtime: grids, regions, moved taps, and every form of Resize."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, imported, same_as_runtime

from vitrify.core.errors import ModelError, UnsupportedError

RNG = np.random.default_rng(23)
NONE = np.zeros(0, np.float32)


def f(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def grid(*shape: int, reach: float = 1.6) -> Feed:
    return Feed(RNG.uniform(-reach, reach, shape).astype(np.float32))


def sampled(mode: str, padding: str, aligned: int, x: tuple[int, ...] = (2, 3, 5, 7)) -> Case:
    axes = len(x) - 2
    options = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    return Case("GridSample", [x, grid(x[0], *(4, 6, 3)[:axes], axes)], options, 20, tolerance=2e-5)


GRIDS = {
    **{
        f"{mode}, {padding}, corners {aligned}": sampled(mode, padding, aligned)
        for mode, padding, aligned in product(("linear", "nearest"), ("zeros", "border", "reflection"), (0, 1))
    },
    **{f"cubic, zeros, corners {aligned}": sampled("cubic", "zeros", aligned) for aligned in (0, 1)},
    **{
        f"volume, {mode}, {padding}": sampled(mode, padding, 0, (1, 2, 3, 4, 5))
        for mode, padding in product(("linear", "nearest"), ("zeros", "border"))
    },
    "opset 16": Case("GridSample", [(1, 3, 4, 4), grid(1, 5, 5, 2)], {"mode": "bilinear"}, 16, tolerance=2e-5),
    "one pixel": Case("GridSample", [(1, 2, 1, 1), grid(1, 2, 2, 2)], {"padding_mode": "border"}, 16, tolerance=2e-5),
    "far outside": Case("GridSample", [(1, 2, 3, 3), grid(1, 2, 2, 2, reach=1e6)], {}, 16),
    "affine": Case("AffineGrid", [(2, 2, 3), i64(2, 3, 4, 5)], {}, 20),
    "affine, corners": Case("AffineGrid", [(2, 2, 3), i64(2, 3, 4, 5)], {"align_corners": 1}, 20),
    "affine volume": Case("AffineGrid", [(1, 3, 4), i64(1, 1, 2, 3, 4)], {}, 20),
}
ROIS = Feed(np.array([[0, 0, 6, 4], [1.3, 2.2, 5.1, 6.7], [-3, -2, 12, 9], [4, 4, 4.2, 4.1]], np.float32))
SIZE = {"output_height": 3, "output_width": 2, "sampling_ratio": 2}
REGIONS = {
    "half pixel": Case("RoiAlign", [(1, 3, 7, 8), ROIS, i64(0, 0, 0, 0)], SIZE, 16, tolerance=2e-5),
    "output half pixel": Case(
        "RoiAlign",
        [(1, 3, 7, 8), ROIS, i64(0, 0, 0, 0)],
        {**SIZE, "coordinate_transformation_mode": "output_half_pixel"},
        16,
        tolerance=2e-5,
    ),
    "opset 10, scaled": Case(
        "RoiAlign", [(1, 3, 7, 8), ROIS, i64(0, 0, 0, 0)], {**SIZE, "spatial_scale": 0.5}, 10, tolerance=2e-5
    ),
    "two pictures": Case("RoiAlign", [(2, 3, 7, 8), ROIS, Feed(i64(0, 1, 1, 0))], SIZE, 16, tolerance=2e-5),
    "one sample": Case(
        "RoiAlign", [(1, 3, 7, 8), ROIS, i64(0, 0, 0, 0)], {**SIZE, "sampling_ratio": 1}, 16, tolerance=2e-5
    ),
}


def deformed(
    x: tuple[int, ...], kernel: np.ndarray, parts: int, size: tuple[int, int], masked: bool, **more: object
) -> Case:
    taps = kernel.shape[2] * kernel.shape[3]
    offsets = grid(x[0], parts * taps * 2, *size, reach=2.5)
    mask = grid(x[0], parts * taps, *size) if masked else None
    bias = f(kernel.shape[0])
    inputs = [x, kernel, offsets, bias, *([mask] if masked else [])]
    return Case("DeformConv", inputs, {"offset_group": parts, **more}, 19, tolerance=2e-5)


DEFORMED = {
    "plain": deformed((1, 3, 6, 7), f(4, 3, 3, 3), 1, (4, 5), False),
    "masked, padded": deformed((1, 3, 6, 7), f(4, 3, 3, 3), 1, (6, 7), True, pads=[1, 1, 1, 1]),
    "two groups of offsets": deformed((2, 4, 5, 5), f(4, 4, 2, 2), 2, (4, 4), True),
    "grouped, strided, dilated": deformed(
        (1, 4, 9, 9), f(6, 2, 3, 3), 1, (3, 3), False, group=2, strides=[2, 2], dilations=[2, 2]
    ),
}


def resized(mode: str, sizes: list[int] | None = None, scales: list[float] | None = None, **more: object) -> Case:
    scale = NONE if scales is None else np.array([1, 1, *scales], np.float32)
    x = (1, 3, 6, 8)
    inputs = [x, None, scale] if sizes is None else [x, None, None, i64(1, 3, *sizes)]
    return Case("Resize", inputs, {"mode": mode, **more}, 19, tolerance=2e-5)


COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
RESIZED = {
    **{
        f"{mode}, {place}, {sizes}": resized(mode, list(sizes), coordinate_transformation_mode=place)
        for mode, place, sizes in product(("linear", "cubic"), COORDINATES, ((4, 5), (11, 19)))
    },
    **{
        f"nearest, {place}, {rounding}": resized(
            "nearest", [4, 11], coordinate_transformation_mode=place, nearest_mode=rounding
        )
        for place, rounding in product(COORDINATES, ROUNDINGS)
    },
    **{
        f"antialias, {mode}, {sizes}": resized(mode, list(sizes), antialias=1)
        for mode, sizes in product(("linear", "cubic"), ((3, 3), (2, 13)))
    },
    "outside left out": resized("cubic", [4, 5], exclude_outside=1),
    "cubic, -0.5": resized("cubic", [9, 13], cubic_coeff_a=-0.5),
    "cubic by odd scales": resized("cubic", None, [1.3, 0.7]),
    "linear by odd scales": resized("linear", None, [1.3, 0.7]),
    "linear, a scale that changes no size": resized("linear", None, [1.1, 1.05]),
    "crop": Case(
        "Resize",
        [(1, 2, 6, 8), np.array([0, 0, 0.2, 0.1, 1, 1, 0.7, 0.9], np.float32), None, i64(1, 2, 3, 4)],
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
        19,
        tolerance=2e-5,
    ),
    "crop, reaching outside": Case(
        "Resize",
        [(1, 2, 6, 8), np.array([0, 0, -0.2, 0.1, 1, 1, 1.3, 0.9], np.float32), None, i64(1, 2, 5, 4)],
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5},
        19,
        tolerance=2e-5,
    ),
    "ratio kept, not larger": Case(
        "Resize",
        [(1, 3, 6, 8), None, None, i64(13, 13)],
        {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"},
        19,
        tolerance=2e-5,
    ),
    "ratio kept, not smaller": Case(
        "Resize",
        [(1, 3, 6, 8), None, None, i64(13, 13)],
        {"mode": "nearest", "axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"},
        19,
    ),
    "one dimension": Case("Resize", [(1, 3, 9), None, None, i64(1, 3, 7)], {"mode": "linear"}, 19, tolerance=2e-5),
    "two dimensions": Case("Resize", [(5, 9), None, None, i64(7, 4)], {"mode": "linear"}, 19, tolerance=2e-5),
    "three dimensions": Case(
        "Resize", [(1, 2, 3, 4, 5), None, None, i64(1, 2, 5, 7, 4)], {"mode": "linear"}, 19, tolerance=2e-5
    ),
    "three dimensions, nearest": Case("Resize", [(1, 2, 3, 4, 5), None, None, i64(1, 2, 6, 8, 10)], {}, 19),
    "channels, nearest": Case("Resize", [(1, 2, 3, 4), None, None, i64(1, 4, 6, 4)], {}, 19),
    "integers, nearest": Case(
        "Resize",
        [Feed(RNG.integers(0, 9, (1, 1, 3, 3)).astype(np.int32)), None, np.array([1, 1, 2, 3], np.float32)],
        {},
        19,
    ),
    "upsample, attribute": Case("Upsample", [(1, 3, 6, 8)], {"mode": "nearest", "scales": [1.0, 1.0, 2.0, 3.0]}, 7),
}
FAMILIES = {"grid": GRIDS, "region": REGIONS, "deformed": DEFORMED, "resize": RESIZED}
CASES = {f"{family}: {name}": case for family, cases in FAMILIES.items() for name, case in cases.items()}


@pytest.mark.parametrize("name", CASES)
def test_sampling_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(CASES[name], tmp_path)


NATIVE = {
    "nearest x2": (resized("nearest", None, [2, 2]), "RESIZE_NEAREST_NEIGHBOR"),
    "linear x2": (resized("linear", None, [2, 2]), "RESIZE_BILINEAR"),
    "linear x2, corners": (
        resized("linear", [12, 16], coordinate_transformation_mode="align_corners"),
        "RESIZE_BILINEAR",
    ),
}


@pytest.mark.parametrize("name", NATIVE)
def test_own_operators_stay(name: str, tmp_path: Path) -> None:
    case, kind = NATIVE[name]
    built = imported(case.proto(), tmp_path)
    assert [n.op.kind for n in built.main.nodes if n.op.kind != "TRANSPOSE"] == [kind]


REFUSED = {
    "adaptive samples": (
        Case("RoiAlign", [(1, 3, 7, 8), ROIS, i64(0, 0, 0, 0)], {"output_height": 2}, 16),
        "as many samples as each region is large",
    ),
    "huge grid": (
        Case("GridSample", [(1, 512, 4, 4), Feed(np.zeros((1, 512, 512, 2), np.float32))], {}, 16),
        "262144 points of 4 taps would take 536,870,912 elements.*at most 268,435,456",
    ),
    "long axis": (Case("Resize", [(1, 1, 1), None, None, i64(1, 1, 2**28)], {}, 19), "at most 16,777,216 places"),
    "many points": (Case("AffineGrid", [(1, 2, 3), i64(1, 1, 2**14, 2**14)], {}, 20), "at most 8,388,608 points"),
    "many samples": (
        Case("RoiAlign", [(1, 3, 7, 8), ROIS, i64(0, 0, 0, 0)], {**SIZE, "output_width": 2**30}, 16),
        "at most 4096 on a side",
    ),
    "corners with an odd scale": (
        resized("linear", None, [0.6, 0.6], coordinate_transformation_mode="align_corners"),
        "the specification divides by that number, ONNX Runtime by the rounded one",
    ),
    "huge matrix": (
        Case("Resize", [(1, 1, 5000), None, None, i64(1, 1, 9999)], {"mode": "cubic"}, 19),
        "more than 16,777,216 weights",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, tmp_path: Path) -> None:
    case, words = REFUSED[name]
    with pytest.raises(UnsupportedError, match=words):
        imported(case.proto(), tmp_path)


INVALID = {
    "grid of another batch": (Case("GridSample", [(2, 3, 4, 4), (1, 2, 2, 2)], {}, 16), "does not fit"),
    "offsets that do not fit": (
        Case("DeformConv", [(1, 3, 6, 6), f(4, 3, 3, 3), (1, 9, 4, 4)], {}, 19),
        "for 9 taps and an output of 4x4",
    ),
    "unknown mode": (resized("area", [3, 3]), "mode 'area' is not one of"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_nodes_say_what_does_not_fit(name: str, tmp_path: Path) -> None:
    case, words = INVALID[name]
    with pytest.raises(ModelError, match=words):
        imported(case.proto(), tmp_path)
