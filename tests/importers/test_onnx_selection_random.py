"""Random indices, axes and forms of picking, placing and sampling, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, by_runtime, same_as_runtime, saved

from scale import examples
from vitrify.core.errors import UnsupportedError

ROUNDS = 15
REDUCTIONS = ("none", "add", "mul", "max", "min")
Random = np.random.Generator


def extents(rng: Random, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(int(v) for v in rng.integers(1, 6, int(rng.integers(least, most + 1))))


def now_or_later(rng: Random, indices: np.ndarray) -> np.ndarray | Feed:
    return Feed(indices) if rng.random() < 0.5 else indices


def gather_elements(rng: Random) -> Case:
    shape = extents(rng)
    axis = int(rng.integers(0, len(shape)))
    wanted = [int(rng.integers(1, d + 1)) if rng.random() < 0.5 else d for d in shape]
    wanted[axis] = int(rng.integers(1, 7))
    indices = rng.integers(-shape[axis], shape[axis], wanted)
    if rng.random() < 0.3:
        first = indices[(*[slice(None)] * (axis + 1), *[slice(0, 1)] * (len(shape) - axis - 1))]
        indices = np.broadcast_to(first, wanted).copy()
    return Case("GatherElements", [shape, now_or_later(rng, indices)], {"axis": axis})


def gather_nd(rng: Random) -> Case:
    shape = extents(rng, 2)
    batch = int(rng.integers(0, len(shape)))
    depth = int(rng.integers(1, len(shape) - batch + 1))
    picked = extents(rng, 0, 2 if batch == 0 else 1)
    columns = [rng.integers(-d, d, (*shape[:batch], *picked)) for d in shape[batch : batch + depth]]
    return Case("GatherND", [shape, now_or_later(rng, np.stack(columns, -1))], {"batch_dims": batch})


def scatter_elements(rng: Random) -> Case:
    shape, reduction = extents(rng), str(rng.choice(REDUCTIONS))
    axis = int(rng.integers(0, len(shape)))
    wanted = [int(rng.integers(1, d + 1)) for d in shape]
    if reduction == "none":  # the same place twice has no defined result
        order = np.argsort(rng.random(shape), axis)
        indices = order[tuple(slice(0, d) for d in wanted)]
    else:
        wanted[axis] = int(rng.integers(1, 7))
        indices = rng.integers(-shape[axis], shape[axis], wanted)
    inputs = [shape, now_or_later(rng, indices), tuple(indices.shape)]
    return Case("ScatterElements", inputs, {"axis": axis, "reduction": reduction}, 18, tolerance=1e-5)


def scatter_nd(rng: Random) -> Case:
    shape, reduction = extents(rng), str(rng.choice(REDUCTIONS))
    depth = int(rng.integers(1, len(shape) + 1))
    places = int(np.prod(shape[:depth]))
    count = int(rng.integers(1, min(places, 8) + 1))
    rows = rng.permutation(places)[:count] if reduction == "none" else rng.integers(0, places, count)
    indices = np.stack(np.unravel_index(rows, shape[:depth]), -1).astype(np.int64)
    inputs = [shape, now_or_later(rng, indices), (count, *shape[depth:])]
    return Case("ScatterND", inputs, {"reduction": reduction}, 18, tolerance=1e-5)


def top_k(rng: Random) -> Case:
    shape = extents(rng)
    axis = int(rng.integers(-len(shape), len(shape)))
    kind = str(rng.choice(["float32", "int32", "int64"]))
    x = Feed(rng.integers(-3, 3, shape).astype(kind)) if rng.random() < 0.5 else shape
    k = np.array([int(rng.integers(1, shape[axis] + 1))])
    return Case("TopK", [x, k], {"axis": axis, "largest": int(rng.integers(0, 2))}, 17, 2)


def resize(rng: Random) -> Case:
    rank = int(rng.choice([1, 2, 2, 3]))
    mode = str(rng.choice(["nearest", "linear", "cubic"] if rank == 2 else ["nearest", "linear"]))
    places = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
    attributes: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": str(rng.choice(places))}
    if mode == "nearest":
        attributes["nearest_mode"] = str(rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    elif rank == 2 and rng.random() < 0.3:
        attributes |= {"antialias": 1, "coordinate_transformation_mode": "half_pixel"}
    shape = (1, 2, *(int(v) for v in rng.integers(1, 9, rank)))
    if rng.random() < 0.5:
        scales = np.array([1, 1, *rng.uniform(1, 3, rank).round(2)], np.float32)
        return Case("Resize", [shape, None, scales], attributes, 19, tolerance=3e-5)
    sizes = np.array([1, 2, *rng.integers(1, 15, rank)])
    return Case("Resize", [shape, None, None, sizes], attributes, 19, tolerance=3e-5)


def grid_sample(rng: Random) -> Case:
    axes = int(rng.choice([2, 2, 3]))
    shape = (int(rng.integers(1, 3)), 2, *(int(v) for v in rng.integers(1, 6, axes)))
    points = rng.uniform(-1.7, 1.7, (shape[0], *(int(v) for v in rng.integers(1, 5, axes)), axes)).astype(np.float32)
    attributes = {
        "mode": str(rng.choice(["linear", "nearest"])),
        "padding_mode": str(rng.choice(["zeros", "border", "reflection"])),
        "align_corners": int(rng.integers(0, 2)),
    }
    return Case("GridSample", [shape, Feed(points)], attributes, 20, tolerance=1e-4)


def running_sum(rng: Random) -> Case:
    shape = extents(rng)
    x = shape if rng.random() < 0.6 else Feed(rng.integers(-5, 5, shape).astype(np.int32))
    axis = np.array(int(rng.integers(-len(shape), len(shape))))
    attributes = {"exclusive": int(rng.integers(0, 2)), "reverse": int(rng.integers(0, 2))}
    return Case("CumSum", [x, axis], attributes, tolerance=5e-6)


FAMILIES: dict[str, Callable[[Random], Case]] = {
    "gather elements": gather_elements,
    "gather nd": gather_nd,
    "scatter elements": scatter_elements,
    "scatter nd": scatter_nd,
    "top k": top_k,
    "resize": resize,
    "grid sample": grid_sample,
    "running sum": running_sum,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_random_selection_equals_onnx_runtime(family: str, tmp_path: Path) -> None:
    done, rounds = 0, examples(ROUNDS)
    for seed in range(rounds):
        case = FAMILIES[family](np.random.default_rng(seed))
        by_runtime(saved(case.proto(), tmp_path), case.feeds())  # a case that it does not take is a wrong case
        try:
            same_as_runtime(case, tmp_path)
        except UnsupportedError:
            continue
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {case}") from error
        done += 1
    assert done >= rounds / 2
