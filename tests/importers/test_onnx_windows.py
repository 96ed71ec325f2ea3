"""Convolutions and pools of every form against ONNX Runtime, before and after the passes."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, imported, same_as_runtime

from scale import examples
from vitrify.core.errors import ModelError, UnsupportedError

RNG = np.random.default_rng(9)
ROW, X, CUBE = (2, 4, 20), (2, 4, 9, 11), (2, 4, 6, 7, 8)
SHAPES = {1: ROW, 2: X, 3: CUBE}


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def small(*shape: int, kind: str = "uint8") -> Feed:
    span = np.iinfo(kind)
    return Feed(RNG.integers(span.min, span.max + 1, shape).astype(kind))


FORMS = {
    "plain": {},
    "pads": {"pads": 1},
    "strides": {"strides": 2, "pads": 1},
    "dilations": {"dilations": 2, "pads": 2},
    "same upper": {"auto_pad": "SAME_UPPER", "strides": 2},
    "same lower": {"auto_pad": "SAME_LOWER", "strides": 2},
}


def each(form: dict[str, object], rank: int) -> dict[str, object]:
    """Attributes with a number for every spatial axis."""
    return {k: [v] * (rank * (2 if k == "pads" else 1)) if isinstance(v, int) else v for k, v in form.items()}


CONVOLUTIONS = {
    f"{rank}-D {kind}, {name}": Case("Conv", [SHAPES[rank], weights, f(8)], {**each(form, rank), "group": group})
    for rank in (1, 2, 3)
    for name, form in FORMS.items()
    for kind, group, weights in (
        ("kernel", 1, f(8, 4, *[3] * rank)),
        ("kernel of a tensor", 1, (8, 4, *[3] * rank)),
        ("groups", 2, f(8, 2, *[3] * rank)),
        ("groups of a tensor", 2, (8, 2, *[3] * rank)),
        ("depthwise", 4, f(8, 1, *[3] * rank)),
        ("depthwise of a tensor", 4, (8, 1, *[3] * rank)),
    )
}
MORE_CONVOLUTIONS = {
    "bias of a tensor": Case("Conv", [X, f(8, 4, 3, 3), (8,)]),
    "3-D, one tap of depth": Case("Conv", [CUBE, f(8, 4, 1, 3, 3)]),
    "3-D, pads differ": Case("Conv", [CUBE, f(8, 4, 3, 2, 1)], {"pads": [2, 0, 1, 0, 1, 3], "strides": [1, 2, 3]}),
    "3-D, dilations differ": Case("Conv", [CUBE, f(8, 4, 2, 3, 2)], {"dilations": [3, 2, 1]}),
    **{
        f"{rank}-D transposed depthwise {name}, {form}": Case(
            "ConvTranspose", [(2, 9, *[7] * rank), weights, f(18)], {**each(attributes, rank), "group": 9}
        )
        for rank in (1, 2)
        for form, attributes in {
            **FORMS,
            "output padding": {"strides": 3, "output_padding": 2},
            "cut": {"pads": 2},
        }.items()
        for name, weights in (("kernel", f(9, 2, *[3] * rank)), ("of a tensor", (9, 2, *[3] * rank)))
    },
    "3-D transposed depthwise": Case("ConvTranspose", [(1, 9, 3, 4, 5), f(9, 1, 3, 3, 3)], {"group": 9}),
    "transposed in 9 groups": Case("ConvTranspose", [(1, 18, 4, 5), f(18, 2, 3, 3)], {"group": 9, "strides": [2, 2]}),
    "transposed 3-D, output shape": Case(
        "ConvTranspose", [CUBE, f(4, 6, 3, 3, 3)], {"strides": [2, 2, 2], "output_shape": [12, 13, 16]}
    ),
    "valid": Case("Conv", [CUBE, f(8, 4, 2, 3, 2)], {"auto_pad": "VALID"}),
}
TRANSPOSED = {
    f"{rank}-D transposed {kind}, {name}": Case(
        "ConvTranspose", [SHAPES[rank], weights, f(6)], {**each(form, rank), "group": group}
    )
    for rank in (1, 2, 3)
    for name, form in {
        **FORMS,
        "output padding": {"strides": 2, "output_padding": 1},
        "output shape": {"strides": 2, "output_shape": [18, 22]},
    }.items()
    if rank == 2 or name != "output shape"
    for kind, group, weights in (
        ("kernel", 1, f(4, 6, *[3] * rank)),
        ("kernel of a tensor", 1, (4, 6, *[3] * rank)),
        ("groups", 2, f(4, 3, *[3] * rank)),
        ("groups of a tensor", 2, (4, 3, *[3] * rank)),
    )
}
POOL_FORMS = {
    **FORMS,
    "ceil": {"ceil_mode": 1, "strides": 2, "pads": 1},
    "ceil, dilations": {"ceil_mode": 1, "strides": 2, "dilations": 2},
    "wide strides": {"strides": 4},
}


def pool(kind: str, rank: int, form: dict[str, object], opset: int = 22, outputs: int = 1, **more: object) -> Case:
    attributes = {
        "kernel_shape": [3] * rank,
        **{k: v if k == "ceil_mode" else w for (k, v), w in zip(form.items(), each(form, rank).values(), strict=True)},
        **more,
    }
    return Case(kind, [SHAPES[rank]], attributes, opset, outputs, tolerance=5e-6)


POOLS = {
    f"{rank}-D {kind}, {name}": made
    for rank, (name, form) in product((1, 2, 3), POOL_FORMS.items())
    for kind, made in {
        "max": pool("MaxPool", rank, form),
        "max with places": pool("MaxPool", rank, form, outputs=2),
        "average": pool("AveragePool", rank, form),
        "average of pads": pool("AveragePool", rank, form, count_include_pad=1),
        "norm": pool("LpPool", rank, form),
    }.items()
}
MORE_POOLS = {
    "norm 1": pool("LpPool", 2, FORMS["pads"], p=1),
    "norm 3": pool("LpPool", 2, FORMS["pads"], p=3),
    "places, column by column": pool("MaxPool", 2, FORMS["strides"], outputs=2, storage_order=1),
    "places of equal values": Case(
        "MaxPool", [Feed(np.ones((1, 2, 6, 6), np.float32))], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, 12, 2
    ),
    **{
        f"max of {kind}, {name}": Case(
            "MaxPool", [small(1, 3, 8, 8, kind=kind)], {"kernel_shape": [3, 3], **each(FORMS[name], 2)}, 12
        )
        for kind in ("uint8", "int8")
        for name in ("plain", "pads", "strides", "dilations")
    },
    "global norm": Case("GlobalLpPool", [X], tolerance=5e-6),
    "global norm 1": Case("GlobalLpPool", [X], {"p": 1}, tolerance=5e-6),
    "global norm 3": Case("GlobalLpPool", [X], {"p": 3}, tolerance=5e-6),
    "global max 3-D": Case("GlobalMaxPool", [CUBE]),
    "global average 3-D": Case("GlobalAveragePool", [CUBE], tolerance=5e-6),
    **{
        f"average, {same} of a stride {stride} above the kernel, {extent}": Case(
            "AveragePool", [(1, 2, extent)], {"kernel_shape": [kernel], "strides": [stride], "auto_pad": same}, 19
        )
        for same in ("SAME_UPPER", "SAME_LOWER")
        for stride, kernel in ((4, 1), (5, 2))
        for extent in (7, 8, 9, 10)
    },
}
BOXES = np.array(
    [
        [0, 0, 0, 3, 3],
        [1, 1, 1, 6, 4],
        [0, 5, 5, 12, 14],
        [1, 3, 3, 2, 2],
        [0, 1.5, 0.5, 4.5, 2.5],
        [0, 30, 30, 40, 40],
    ],
    np.float32,
)
BOX_POOLS = {
    "boxes": Case("MaxRoiPool", [(2, 3, 9, 11), BOXES], {"pooled_shape": [2, 3]}, 16),
    "boxes, scaled": Case("MaxRoiPool", [(2, 3, 9, 11), BOXES], {"pooled_shape": [3, 2], "spatial_scale": 0.5}, 16),
    "one box of one part": Case("MaxRoiPool", [(1, 3, 9, 11), BOXES[:1]], {"pooled_shape": [1, 1]}, 16),
}
PLACES = np.stack([RNG.permutation(72)[:12].reshape(3, 4) + 72 * i for i in range(4)]).reshape(2, 2, 3, 4)
UNPOOLS = {
    "unpooled": Case("MaxUnpool", [(2, 2, 3, 4), Feed(PLACES)], {"kernel_shape": [3, 2], "strides": [3, 2]}, 11),
    "unpooled, windows overlap": Case(
        "MaxUnpool",
        [Feed(np.array([[[5.0, 5.0, 7.0]]], np.float32)), Feed(np.array([[[1, 1, 3]]]))],
        {"kernel_shape": [2]},
        11,
    ),
}
CASES = {**UNPOOLS, **BOX_POOLS, **CONVOLUTIONS, **MORE_CONVOLUTIONS, **TRANSPOSED, **POOLS, **MORE_POOLS}


@pytest.mark.parametrize("name", CASES)
def test_windows_equal_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(CASES[name], tmp_path)


REFUSED = {
    "4-D": (Case("Conv", [(1, 2, 3, 3, 3, 3), f(2, 2, 1, 1, 1, 1)]), UnsupportedError, "4 spatial dimensions"),
    "channels": (Case("Conv", [X, f(8, 3, 3, 3)]), ModelError, "the input has 4 channels"),
    "window": (Case("MaxPool", [X], {"kernel_shape": [10, 3]}), ModelError, "larger than its padded input"),
    "places": (Case("MaxPool", [(1, 1, 20, 20)], {"kernel_shape": [17, 17]}, 12, 2), UnsupportedError, "of up to 256"),
    "output": (
        Case(
            "MaxUnpool",
            [(1, 1, 2, 2), Feed(np.array([[[[5, 7], [13, 15]]]])), np.array([1, 1, 5, 5])],
            {"kernel_shape": [2, 2], "strides": [2, 2]},
            11,
        ),
        UnsupportedError,
        "count in the latter",
    ),
    "pads": (Case("MaxPool", [X], {"kernel_shape": [3, 3], "pads": [2**30] * 4}), UnsupportedError, "at run time"),
    "dilations": (
        Case("ConvTranspose", [X, f(4, 2, 3, 3)], {"dilations": [2**30] * 2}),
        UnsupportedError,
        "at most 268,435,456",
    ),
    "boxes": (
        Case("MaxRoiPool", [(1, 3, 9, 11), (2, 5)], {"pooled_shape": [1, 1]}, 16),
        UnsupportedError,
        "list of boxes",
    ),
    "boxes of no numbers": (
        Case("MaxRoiPool", [X, np.array([[0, np.nan, 0, 1, 2]], np.float32)], {"pooled_shape": [2, 2]}, 16),
        ModelError,
        "corners are numbers",
    ),
    "output_shape": (
        Case("ConvTranspose", [X, f(4, 4, 3, 3)], {"output_shape": [9]}),
        ModelError,
        r"output_shape \[9\]",
    ),
    "norm": (Case("LpPool", [X], {"kernel_shape": [2, 2], "p": 0}, 18), ModelError, "p is 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str, tmp_path: Path) -> None:
    case, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        imported(case.proto(), tmp_path)


@pytest.mark.parametrize("name", [n for n in {**CONVOLUTIONS, **POOLS} if "same lower" not in n and "norm" not in n])
def test_no_operator_is_without_an_integer_kernel(name: str, tmp_path: Path) -> None:
    model = imported(CASES[name].proto(), tmp_path)
    assert not {node.op.kind for node in model.main} & {"CONV_3D", "L2_POOL_2D", "POW", "DIV"}


@pytest.mark.parametrize("seed", range(examples(40)))
def test_random_windows(seed: int, tmp_path: Path) -> None:
    """Attributes drawn at random for any rank; what ONNX Runtime itself refuses is drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        case = _drawn(rng)
        try:
            same_as_runtime(case, tmp_path)
        except Exception as error:
            if "onnxruntime" not in type(error).__module__:
                raise
            continue
        return


def _drawn(rng: np.random.Generator) -> Case:
    rank = int(rng.integers(1, 4))
    kernel, strides, dilations = (rng.integers(1, high, rank).tolist() for high in (4, 4, 3))
    pads = [int(rng.integers(0, k)) for k in kernel * 2]
    attributes = {"strides": strides, "dilations": dilations, "pads": pads}
    kind = str(rng.choice(["Conv", "ConvTranspose", "MaxPool", "AveragePool"]))
    shape = (int(rng.integers(1, 3)), 4, *rng.integers(7, 12, rank).tolist())
    if kind == "Conv":
        group = int(rng.choice([1, 2, 4]))
        return Case(kind, [shape, f(8, 4 // group, *kernel), f(8)], {**attributes, "group": group}, 22, tolerance=5e-6)
    if kind == "ConvTranspose":
        group = int(rng.choice([1, 2]))
        extra = [int(rng.integers(0, s)) for s in strides]
        return Case(
            kind, [shape, f(4, 3, *kernel)], {**attributes, "group": group, "output_padding": extra}, 22, tolerance=5e-6
        )
    more = {"kernel_shape": kernel, "ceil_mode": int(rng.integers(0, 2))}
    if kind == "AveragePool":
        more["count_include_pad"] = int(rng.integers(0, 2))
        return Case(kind, [shape], {**attributes, **more}, 22, tolerance=5e-6)
    return Case(kind, [shape], {**attributes, **more}, 22, int(rng.integers(1, 3)))
