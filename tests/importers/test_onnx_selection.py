"""Picking, placing and ranking against ONNX Runtime, before and after the passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx_makers import Case, Feed, imported, model, same_as_runtime

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.importers.onnx.lowerings import LOWERINGS
from vitrify.ir import Model

RNG = np.random.default_rng(11)
X = (2, 3, 4, 5)


def places(*shape: int, low: int, high: int) -> Feed:
    return Feed(RNG.integers(low, high, shape))


def constant(*shape: int, low: int, high: int) -> np.ndarray:
    return RNG.integers(low, high, shape)


def distinct(count: int, high: int, turned: bool = False) -> np.ndarray:
    found = RNG.permutation(high)[:count]
    return np.where(found % 2 == 0, found - high, found) if turned else found


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def whole(*shape: int, kind: str = "int32", low: int = -9, high: int = 9) -> Feed:
    return Feed(RNG.integers(low, high, shape).astype(kind))


GATHERING = {
    "gather, negative": Case("Gather", [X, places(3, low=-4, high=4)], {"axis": 2}),
    "gather, matrix of indices": Case("Gather", [X, places(2, 2, low=-3, high=3)], {"axis": 1}),
    "gather, scalar": Case("Gather", [X, Feed(np.array(-1))], {"axis": -1}),
    "gather, int8": Case("Gather", [whole(4, 3, kind="int8"), places(2, low=-4, high=4)]),
    "elements": Case("GatherElements", [X, places(2, 2, 4, 4, low=-3, high=3)], {"axis": 1}),
    "elements, last axis": Case("GatherElements", [X, places(2, 3, 4, 7, low=-5, high=5)], {"axis": -1}),
    "elements, first axis": Case("GatherElements", [X, places(3, 3, 4, 5, low=-2, high=2)]),
    "elements, one row": Case("GatherElements", [(1, 9), places(1, 4, low=-9, high=9)], {"axis": 1}),
    "elements, constant": Case("GatherElements", [X, constant(1, 3, 6, 5, low=-4, high=4)], {"axis": 2}),
    "elements, constant rows": Case(
        "GatherElements", [(1, 6, 4), np.repeat(constant(1, 3, 1, low=0, high=6), 4, 2)], {"axis": 1}
    ),
    "nd": Case("GatherND", [X, places(3, 2, low=-2, high=2)]),
    "nd, all axes": Case("GatherND", [X, places(3, 4, low=-2, high=2)]),
    "nd, one axis": Case("GatherND", [X, places(3, 1, low=-2, high=2)]),
    "nd, a batch": Case("GatherND", [X, places(2, 3, 2, low=-3, high=3)], {"batch_dims": 1}),
    "nd, two batches": Case("GatherND", [X, places(2, 3, 1, low=-4, high=4)], {"batch_dims": 2}),
    "nd, constant": Case("GatherND", [X, constant(3, 2, low=-2, high=2)]),
    "nd, constant in batches": Case("GatherND", [X, constant(2, 1, low=-3, high=3)], {"batch_dims": 1}),
    "compress": Case("Compress", [X, np.array([True, False, True])], {"axis": 1}),
    "compress, flat": Case("Compress", [(2, 3), np.array([False, True, True, False, True])]),
}
ROW = np.stack([distinct(3, 5, True) for _ in range(6)]).reshape(2, 3, 3)
SCATTERING = {
    "elements": Case("ScatterElements", [(2, 3, 5), Feed(ROW), (2, 3, 3)], {"axis": 2}),
    "elements, constant": Case("ScatterElements", [(2, 3, 5), ROW, (2, 3, 3)], {"axis": 2}),
    "elements, first axis": Case("ScatterElements", [(4, 3), Feed(i64(2, -4, 1).reshape(1, 3)), (1, 3)]),
    "elements, old": Case("Scatter", [(4, 3), Feed(i64(2, -4, 1).reshape(1, 3)), (1, 3)], {}, 10),
    **{
        f"elements, {name}, {kind}": Case(
            "ScatterElements", [(2, 5), given, (2, 6)], {"axis": 1, "reduction": name}, 18
        )
        for name in ("add", "mul", "max", "min")
        for kind, given in (
            ("run time", places(2, 6, low=-5, high=5)),
            ("constant", constant(2, 6, low=-5, high=5)),
        )
    },
    "nd": Case("ScatterND", [(6, 4), Feed(distinct(3, 6, True).reshape(3, 1)), (3, 4)]),
    "nd, elements": Case("ScatterND", [(3, 4), Feed(i64(0, 1, 2, -1, 1, 0).reshape(3, 2)), (3,)]),
    "nd, constant": Case("ScatterND", [(6, 4), distinct(3, 6, True).reshape(3, 1), (3, 4)]),
    "nd, a run": Case("ScatterND", [(6, 4), i64(2, 3, 4).reshape(3, 1), (3, 4)]),
    "nd, a box": Case(
        "ScatterND",
        [(2, 5, 6), np.stack(np.meshgrid(range(2), range(1, 4), range(2, 6), indexing="ij"), -1), (2, 3, 4)],
    ),
    "nd, every second": Case(
        "ScatterND", [(2, 6), np.stack(np.meshgrid(range(2), range(0, 6, 2), indexing="ij"), -1), (2, 3)]
    ),
    "nd, int64": Case("ScatterND", [whole(5, kind="int64"), Feed(i64(3, -5).reshape(2, 1)), whole(2, kind="int64")]),
    **{
        f"nd, {name}, {kind}": Case("ScatterND", [(3, 4), given, (5, 4)], {"reduction": name}, 18)
        for name in ("add", "mul", "max", "min")
        for kind, given in (
            ("run time", places(5, 1, low=-3, high=3)),
            ("constant", constant(5, 1, low=-3, high=3)),
        )
    },
    "cache": Case("TensorScatter", [(2, 3, 5, 4), (2, 3, 2, 4), Feed(i64(1, 3))], {}, 24),
    "cache, circular": Case("TensorScatter", [(2, 5, 4), (2, 3, 4), Feed(i64(4, 0))], {"mode": "circular"}, 24),
    "cache, from the start": Case("TensorScatter", [(2, 5, 4), (2, 3, 4)], {}, 24),
    "cache, one batch": Case("TensorScatter", [(1, 2, 5, 4), (1, 2, 2, 4), Feed(i64(3))], {}, 24),
    "nd, sum of integers": Case(
        "ScatterND", [whole(4, 2), places(6, 1, low=0, high=4), whole(6, 2)], {"reduction": "add"}, 18
    ),
    "nd, product of integers": Case(
        "ScatterND", [whole(4, 2), places(3, 1, low=0, high=4), whole(3, 2)], {"reduction": "mul"}, 18
    ),
}
TIES = Feed(np.array([[3, 1, 3, 2, 1], [0, 0, 0, 0, 0]], np.float32))
RANKING = {
    "top k": Case("TopK", [(3, 8), i64(3)], {}, 17, 2),
    "top k, smallest": Case("TopK", [(3, 8), i64(3)], {"largest": 0}, 17, 2),
    "top k, first axis": Case("TopK", [(6, 3), i64(4)], {"axis": 0}, 17, 2),
    "top k, middle axis": Case("TopK", [X, i64(2)], {"axis": 1, "largest": 0}, 17, 2),
    "top k, all": Case("TopK", [(2, 5), i64(5)], {}, 17, 2),
    "top k, equal values": Case("TopK", [TIES, i64(4)], {}, 17, 2),
    "top k, equal values, smallest": Case("TopK", [TIES, i64(4)], {"largest": 0}, 17, 2),
    "top k, integers": Case("TopK", [whole(3, 8, kind="int64"), i64(3)], {"largest": 0}, 17, 2),
    "top k, lowest integer": Case("TopK", [Feed(np.array([1, -(2**31), 5], np.int32)), i64(2)], {"largest": 0}, 17, 2),
    "top k, old": Case("TopK", [(3, 8)], {"k": 3}, 9, 2),
    "arg max, last": Case("ArgMax", [TIES], {"axis": 1, "select_last_index": 1}, 13),
    "arg min, last": Case("ArgMin", [TIES], {"axis": 1, "select_last_index": 1, "keepdims": 0}, 13),
    "arg max, first axis": Case("ArgMax", [X], {"axis": 0, "keepdims": 0}, 13),
    "one hot": Case("OneHot", [places(2, 3, low=-8, high=8), i64(5), np.array([0.5, 2], np.float32)]),
    "one hot, run-time values": Case("OneHot", [places(4, low=0, high=5), i64(5), (2,)], {"axis": 0}),
    "one hot, of floats": Case(
        "OneHot", [Feed(np.array([1, 3, 0], np.float32)), np.array(4, np.int64), i64(0, 7)], {"axis": 1}
    ),
    "hardmax": Case("Hardmax", [X], {"axis": 1}),
    "reverse, time first": Case("ReverseSequence", [(5, 3, 2), Feed(i64(1, 5, 3))]),
    "reverse, batch first": Case("ReverseSequence", [(3, 5), Feed(i64(1, 5, 3))], {"time_axis": 1, "batch_axis": 0}),
    "running product": Case("CumProd", [(3, 5), np.array(1, np.int64)], {}, 26),
    "running product, backwards": Case("CumProd", [(6, 2), np.array(0, np.int64)], {"reverse": 1, "exclusive": 1}, 26),
    "running sum of integers": Case("CumSum", [whole(3, 4), np.array(-1, np.int64)], {"exclusive": 1}),
}
SHAPING = {
    "slice, nothing joined": Case("Slice", [(2, 5), i64(9), i64(1), i64(1), i64(-3)]),
    "slice, negative steps on two axes": Case("Slice", [(4, 6), i64(-1, 4), i64(-9, 0), i64(0, 1), i64(-2, -3)]),
    "expand int64": Case("Expand", [whole(3, 1, kind="int64"), i64(2, 1, 4)]),
    "tile": Case("Tile", [(2, 1, 3), i64(1, 4, 2)]),
    "tile integers": Case("Tile", [whole(2, 3), i64(2, 2)]),
    "upper": Case("Trilu", [(2, 3, 4)]),
    "lower, above the diagonal": Case("Trilu", [(3, 4), np.array(1, np.int64)], {"upper": 0}),
    "upper, run-time k": Case("Trilu", [(3, 4), Feed(np.array(-1))]),
    "lower, run-time k": Case("Trilu", [(4, 3), Feed(np.array(1))], {"upper": 0}),
    "upper, bools": Case("Trilu", [Feed(np.ones((3, 3), bool)), np.array(1, np.int64)]),
    "upper, all of it": Case("Trilu", [(3, 4), np.array(-2, np.int64)]),
    "eye": Case("EyeLike", [(3, 5)], {"k": 1}),
    "eye, int32": Case("EyeLike", [(3, 3)], {"dtype": 6}),
    "centre": Case("CenterCropPad", [(1, 7, 3), i64(4, 6)], {"axes": [1, 2]}, 18),
    "where, integers": Case("Where", [Feed(np.array([[True], [False]])), whole(2, 3), whole(3)]),
    "where, scalars": Case("Where", [Feed(np.array([True, False])), np.array(1, np.float32), np.array(2, np.float32)]),
    "col2im": Case("Col2Im", [(2, 8, 12), i64(4, 5), i64(2, 2)], {}, 18),
    "col2im, all of it": Case(
        "Col2Im",
        [(1, 12, 6), i64(5, 6), i64(3, 2)],
        {"pads": [1, 0, 0, 1], "strides": [2, 2], "dilations": [1, 2]},
        18,
    ),
    "unpool": Case(
        "MaxUnpool",
        [(1, 1, 2, 2), Feed(i64(5, 7, 13, 15).reshape(1, 1, 2, 2))],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
}
SHAPING["unpool, overlapping"] = Case(
    "MaxUnpool",
    [Feed(np.array([[[[5, 5, 3]]]], np.float32)), Feed(i64(5, 5, 11).reshape(1, 1, 1, 3))],
    {"kernel_shape": [3, 2], "strides": [1, 1]},
)
FAMILIES = {"gathering": GATHERING, "scattering": SCATTERING, "ranking": RANKING, "shaping": SHAPING}
CASES = {f"{family}: {name}": case for family, cases in FAMILIES.items() for name, case in cases.items()}


@pytest.mark.parametrize("name", CASES)
def test_selection_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(CASES[name], tmp_path)


def kinds(built: Model) -> list[str]:
    return [node.op.kind for node in built.main.nodes]


def test_places_of_top_k_are_not_negative(tmp_path: Path) -> None:
    """What a ranking gives needs no arithmetic before it is an index, not even repeated for whole rows."""
    nodes = [
        helper.make_node("TopK", ["scores", "k"], ["best", "where"], axis=1),
        helper.make_node("Unsqueeze", ["where", "last"], ["column"]),
        helper.make_node("Tile", ["column", "repeats"], ["rows"]),
        helper.make_node("GatherElements", ["boxes", "rows"], ["y"], axis=1),
    ]
    feeds = {"scores": np.zeros((1, 9), np.float32), "boxes": np.zeros((1, 9, 4), np.float32)}
    fixed = {"k": i64(3), "last": i64(-1), "repeats": i64(1, 1, 4)}
    built = imported(model(nodes, feeds, fixed, ["best", "y"]), tmp_path)
    assert [k for k in kinds(built) if k != "RESHAPE"] == ["TOPK_V2", "GATHER"]


def test_constant_box_is_put_between_slices(tmp_path: Path) -> None:
    built = imported(SCATTERING["nd, a box"].proto(), tmp_path)
    assert set(kinds(built)) == {"SLICE", "CONCATENATION"}


FORMS = {
    "expand": (Case("Expand", [(1, 3, 1), i64(2, 1, 3, 4)]), ["RESHAPE", "TILE"]),
    "running sum": (Case("CumSum", [(2, 3, 4), np.array(1, np.int64)]), ["BATCH_MATMUL"]),
    "running sum, last axis": (Case("CumSum", [(3, 4), np.array(1, np.int64)]), ["FULLY_CONNECTED"]),
    "triangle": (Case("Trilu", [(3, 4)]), ["MUL"]),
    "updates of zeros": (Case("ScatterND", [np.zeros((4, 2), np.float32), Feed(i64(3, 1).reshape(2, 1)), (2, 2)]),
                         ["FLOOR_MOD", "SCATTER_ND"]),
    "one step of a cache": (
        Case("TensorScatter", [(1, 2, 5, 3), (1, 2, 1, 3), Feed(i64(2))], {}, 24),
        ["FLOOR_MOD", "CONCATENATION", "DYNAMIC_UPDATE_SLICE"],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_those_that_targets_have(name: str, tmp_path: Path) -> None:
    case, wanted = FORMS[name]
    assert [k for k in kinds(imported(case.proto(), tmp_path)) if k != "RESHAPE" or "RESHAPE" in wanted] == wanted


REFUSED = {
    "unpool to another shape": (
        Case(
            "MaxUnpool",
            [(1, 1, 2, 2), Feed(i64(5, 7, 13, 15).reshape(1, 1, 2, 2)), i64(1, 1, 5, 5)],
            {"kernel_shape": [2, 2], "strides": [2, 2]},
        ),
        "an output of .1, 1, 5, 5. where its windows make .1, 1, 4, 4.",
    ),
    "huge table": (
        Case("ScatterND", [(60000, 8), places(60000, 1, low=0, high=9), (60000, 8)], {"reduction": "max"}, 18),
        "at most 268,435,456",
    ),
    "found at run time": (Case("NonZero", [(2, 3)]), "how many elements it finds.*'x0'"),
    "unique at run time": (Case("Unique", [(6,)]), "how many elements it finds.*'x0'"),
    "kept at run time": (Case("Compress", [(2, 3), Feed(np.ones(3, bool))], {"axis": 1}), "how many elements it keeps"),
    "range at run time": (
        Case("Range", [np.array(0, np.int64), Feed(np.array(5)), np.array(1, np.int64)]),
        "its length is known at run time only .from 'x1'",
    ),
    "non-maximum suppression": (
        Case("NonMaxSuppression", [(1, 6, 4), (1, 2, 6), i64(3)]),
        "how many boxes it selects is known at run time only",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_open_shapes_are_refused(name: str, tmp_path: Path) -> None:
    case, words = REFUSED[name]
    with pytest.raises(UnsupportedError, match=words) as caught:
        imported(case.proto(), tmp_path)
    assert caught.value.findings[0].help


def test_suppression_names_the_tensors_to_end_at(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        imported(REFUSED["non-maximum suppression"][0].proto(), tmp_path)
    assert "extract_model('model.onnx', 'cut.onnx', ['x0', 'x1'], ['x0', 'x1'])" in caught.value.findings[0].help


INVALID = {
    "gather outside": (Case("Gather", [(3,), i64(3)]), "outside of 3 elements"),
    "k too large": (Case("TopK", [(3,), i64(4)], {}, 17, 2), "the 4 best"),
    "batches that differ": (Case("GatherND", [(2, 3), i64(0, 0, 0).reshape(3, 1)], {"batch_dims": 1}), "do not fit"),
    "updates that do not fit": (Case("ScatterND", [(4, 3), i64(1).reshape(1, 1), (2, 3)]), "do not fit"),
    "unknown reduction": (
        Case("ScatterND", [(4, 3), i64(1).reshape(1, 1), (1, 3)], {"reduction": "mean"}, 18),
        "'mean' is not one of",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_selections_say_what_does_not_fit(name: str, tmp_path: Path) -> None:
    case, words = INVALID[name]
    with pytest.raises(ModelError, match=words):
        imported(case.proto(), tmp_path)


def test_all_families_are_registered() -> None:
    assert {case.kind for case in CASES.values()} <= set(LOWERINGS)
