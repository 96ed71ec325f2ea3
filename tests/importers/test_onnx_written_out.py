"""What exporters write out node by node becomes one operator, or the fewest that NPUs have; values stay."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_makers import by_litert, by_runtime, model, saved

from vitrify.importers import load
from vitrify.passes import optimize

RNG = np.random.default_rng(17)
Step = tuple[str, str, str] | tuple[str, str, str, dict[str, Any]]


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def n(value: float) -> np.ndarray:
    return np.array(value, np.float32)


@dataclass
class Written:
    """Steps "out kind inputs [attributes]" from x to y, their constants, and the operators expected (no TRANSPOSE)."""

    steps: list[Step]
    kinds: list[str]
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    shape: tuple[int, ...] = (2, 5, 8)
    opset: int = 17
    tolerance: float = 5e-6

    def proto(self) -> onnx.ModelProto:
        nodes = [
            helper.make_node(s[1], s[2].split(), [s[0]], f"node {s[0]}", **(s[3] if len(s) == 4 else {}))
            for s in self.steps
        ]
        return model(nodes, self.feeds(), self.constants, ["y"], self.opset)

    def feeds(self) -> dict[str, np.ndarray]:
        return {"x": np.random.default_rng(3).uniform(-4, 4, self.shape).astype(np.float32)}


LAST: dict[str, Any] = {"axes": [-1], "keepdims": 1}
FLOAT = {"to": onnx.TensorProto.FLOAT}
CENTRED: list[Step] = [("m", "ReduceMean", "x", LAST), ("d", "Sub", "x m")]
SQUARED: list[Step] = [*CENTRED, ("q", "Pow", "d two"), ("v", "ReduceMean", "q", LAST), ("e", "Add", "v eps")]
AFFINE: list[Step] = [("s", "Mul", "n gamma"), ("y", "Add", "s beta")]
NORM = {"two": n(2), "eps": n(1e-5), "gamma": f(8), "beta": f(8), "half": n(-0.5), "one": n(1)}
LAYER = ["MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL", "ADD"]
RMS = ["MUL", "MEAN", "ADD", "RSQRT", "MUL", "MUL"]
SQUARES: list[Step] = [("q", "Pow", "x two"), ("v", "ReduceMean", "q", LAST), ("e", "Add", "v eps")]

NORMS = {
    "layer norm": Written([*SQUARED, ("r", "Sqrt", "e"), ("n", "Div", "d r"), *AFFINE], LAYER, NORM),
    "layer norm, square as product": Written(
        [
            *CENTRED,
            ("q", "Mul", "d d"),
            ("v", "ReduceMean", "q", LAST),
            ("e", "Add", "v eps"),
            ("r", "Sqrt", "e"),
            ("n", "Div", "d r"),
            *AFFINE,
        ],
        LAYER,
        NORM,
    ),
    "layer norm, reciprocal": Written(
        [*SQUARED, ("r", "Sqrt", "e"), ("i", "Reciprocal", "r"), ("n", "Mul", "d i"), *AFFINE], LAYER, NORM
    ),
    "layer norm, power": Written([*SQUARED, ("i", "Pow", "e half"), ("n", "Mul", "d i"), *AFFINE], LAYER, NORM),
    "layer norm between casts": Written(
        [
            *CENTRED,
            ("c", "Cast", "d", FLOAT),
            ("q", "Pow", "c two"),
            ("v", "ReduceMean", "q", LAST),
            ("e", "Add", "v eps"),
            ("r", "Sqrt", "e"),
            ("b", "Cast", "r", FLOAT),
            ("n", "Div", "d b"),
            *AFFINE,
        ],
        LAYER,
        NORM,
    ),
    "layer norm over two axes": Written(
        [
            ("m", "ReduceMean", "x", {"axes": [1, 2]}),
            ("d", "Sub", "x m"),
            ("q", "Pow", "d two"),
            ("v", "ReduceMean", "q", {"axes": [1, 2]}),
            ("e", "Add", "v eps"),
            ("r", "Sqrt", "e"),
            ("n", "Div", "d r"),
            *AFFINE,
        ],
        LAYER,
        NORM,
    ),
    "rms norm": Written(
        [*SQUARES, ("r", "Sqrt", "e"), ("i", "Reciprocal", "r"), ("n", "Mul", "x i"), ("y", "Mul", "n gamma")],
        RMS,
        NORM,
    ),
    "rms norm, one over": Written(
        [*SQUARES, ("r", "Sqrt", "e"), ("i", "Div", "one r"), ("n", "Mul", "x i"), ("y", "Mul", "gamma n")], RMS, NORM
    ),
    "group norm": Written(
        [
            ("g", "Reshape", "x groups"),
            ("i", "InstanceNormalization", "g ones zeros"),
            ("b", "Reshape", "i back"),
            ("s", "Mul", "b scale"),
            ("y", "Add", "s shift"),
        ],
        ["RESHAPE", "MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL", "RESHAPE", "MUL", "ADD"],
        {
            "groups": np.array([0, 3, -1]),
            "ones": np.ones(3, np.float32),
            "zeros": np.zeros(3, np.float32),
            "back": np.array([2, 6, 4, 5]),
            "scale": f(6, 1, 1),
            "shift": f(6, 1, 1),
        },
        (2, 6, 4, 5),
    ),
}
TINY = {"tiny": n(1e-12), "shape": np.array([2, 5, 8]), "two": n(2)}
L2: list[Step] = [("n", "ReduceL2", "x", LAST)]
UNITS = {
    "l2, clip, expand": Written(
        [*L2, ("c", "Clip", "n tiny"), ("e", "Expand", "c shape"), ("y", "Div", "x e")], ["L2_NORMALIZATION"], TINY
    ),
    "l2, max": Written([*L2, ("c", "Max", "n tiny"), ("y", "Div", "x c")], ["L2_NORMALIZATION"], TINY),
    "l2, plus": Written([*L2, ("c", "Add", "tiny n"), ("y", "Div", "x c")], ["L2_NORMALIZATION"], TINY),
    "l2 by squares": Written(
        [("q", "Pow", "x two"), ("s", "ReduceSum", "q axes", {"keepdims": 1}), ("n", "Sqrt", "s"), ("y", "Div", "x n")],
        ["L2_NORMALIZATION"],
        {**TINY, "axes": np.array([-1])},
    ),
    "l2 over channels": Written(
        [("n", "ReduceL2", "x", {"axes": [1]}), ("c", "Clip", "n tiny"), ("y", "Div", "x c")],
        ["L2_NORMALIZATION"],
        TINY,
        (1, 6, 4, 5),
    ),
}
AXES = {"last": np.array([-1]), "first": np.array([1])}
SOFTMAXES = {
    "softmax": Written([("e", "Exp", "x"), ("s", "ReduceSum", "e last"), ("y", "Div", "e s")], ["SOFTMAX"], AXES),
    "softmax less the largest": Written(
        [
            ("m", "ReduceMax", "x", LAST),
            ("d", "Sub", "x m"),
            ("e", "Exp", "d"),
            ("s", "ReduceSum", "e last"),
            ("y", "Div", "e s"),
        ],
        ["SOFTMAX"],
        AXES,
    ),
    "softmax over channels": Written(
        [("e", "Exp", "x"), ("s", "ReduceSum", "e first"), ("y", "Div", "e s")], ["SOFTMAX"], AXES
    ),
}
MISH = ["LOGISTIC", "SUB", "MUL", "SUB", "RSQRT", "MUL", "MUL", "MUL"]
SIX = {
    "three": n(3),
    "six": n(6),
    "zero": n(0),
    "sixth": n(1 / 6),
    "one": n(1),
    "half": n(0.5),
    "cube": n(3),
    "c": n(0.044715),
    "root": n(np.sqrt(2 / np.pi)),
}
GATES = {
    "mish": Written([("s", "Softplus", "x"), ("t", "Tanh", "s"), ("y", "Mul", "x t")], MISH),
    "mish written out": Written(
        [("e", "Exp", "x"), ("p", "Add", "e one"), ("l", "Log", "p"), ("t", "Tanh", "l"), ("y", "Mul", "t x")],
        MISH,
        SIX,
    ),
    "silu": Written([("s", "Sigmoid", "x"), ("y", "Mul", "x s")], ["LOGISTIC", "MUL"]),
    "hard swish by hard sigmoid": Written(
        [("s", "HardSigmoid", "x", {"alpha": 1 / 6, "beta": 0.5}), ("y", "Mul", "x s")], ["HARD_SWISH"]
    ),
    "hard swish, divided last": Written(
        [("a", "Add", "x three"), ("r", "Clip", "a zero six"), ("m", "Mul", "x r"), ("y", "Div", "m six")],
        ["HARD_SWISH"],
        SIX,
    ),
    "hard swish, divided before": Written(
        [("a", "Add", "x three"), ("r", "Clip", "a zero six"), ("d", "Div", "r six"), ("y", "Mul", "d x")],
        ["HARD_SWISH"],
        SIX,
    ),
    "gelu by tanh": Written(
        [
            ("p", "Pow", "x cube"),
            ("k", "Mul", "p c"),
            ("i", "Add", "x k"),
            ("w", "Mul", "i root"),
            ("t", "Tanh", "w"),
            ("o", "Add", "t one"),
            ("m", "Mul", "x o"),
            ("y", "Mul", "m half"),
        ],
        ["GELU"],
        SIX,
    ),
}
CASES = {**NORMS, **UNITS, **SOFTMAXES, **GATES}


@pytest.mark.parametrize("name", CASES)
def test_becomes_the_fewest_operators(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = saved(case.proto(), tmp_path)
    built = load(path)
    optimize(built, input_layout="nchw", output_layout="nchw")
    assert [node.op.kind for node in built.main if node.op.kind != "TRANSPOSE"] == case.kinds
    got, wanted = by_litert(built, case.feeds())["y"], by_runtime(path, case.feeds())["y"]
    np.testing.assert_allclose(got, wanted, rtol=case.tolerance, atol=case.tolerance * float(np.abs(wanted).max()))


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].kinds in (["SOFTMAX"], ["L2_NORMALIZATION"])])
def test_one_operator_knows_its_nodes(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    (node,) = [n for n in load(saved(case.proto(), tmp_path)).main if n.op.kind == case.kinds[0]]
    assert {s.name for s in node.origin.sources} == {f"node {step[0]}" for step in case.steps}


DIFFERENT = {
    "the sum of another": Written(
        [("e", "Exp", "x"), ("a", "Abs", "x"), ("s", "ReduceSum", "a last"), ("y", "Div", "e s")], ["SOFTMAX"], AXES
    ),
    "over two axes": Written(
        [("e", "Exp", "x"), ("s", "ReduceSum", "e both"), ("y", "Div", "e s")], ["SOFTMAX"], {"both": np.array([1, 2])}
    ),
    "without the axis": Written(
        [("e", "Exp", "x"), ("s", "ReduceSum", "e last", {"keepdims": 0}), ("y", "Div", "e s")],
        ["SOFTMAX"],
        AXES,
        (8, 8),
    ),
    "a floor that counts": Written(
        [*L2, ("c", "Max", "n floor"), ("y", "Div", "x c")], ["L2_NORMALIZATION"], {"floor": n(0.5)}
    ),
    "the norm of another": Written(
        [("a", "Exp", "x"), ("n", "ReduceL2", "a", LAST), ("y", "Div", "x n")], ["L2_NORMALIZATION"]
    ),
    "the gate of another": Written(
        [("a", "Abs", "x"), ("s", "Softplus", "a"), ("t", "Tanh", "s"), ("y", "Mul", "x t")], ["LOGISTIC"]
    ),
    "another instance norm": Written(
        [("g", "Reshape", "x rows"), ("i", "InstanceNormalization", "g ones zeros"), ("y", "Reshape", "i back")],
        ["GROUP"],
        {"rows": np.array([4, 3, -1]), "ones": f(3), "zeros": f(3), "back": np.array([2, 6, 4, 5])},
        (2, 6, 4, 5),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_only_looks_alike_keeps_its_values(name: str, tmp_path: Path) -> None:
    case = DIFFERENT[name]
    path = saved(case.proto(), tmp_path)
    built = load(path)
    optimize(built, input_layout="nchw", output_layout="nchw")
    assert not {node.op.kind for node in built.main} & set(case.kinds)
    wanted = by_runtime(path, case.feeds())["y"]
    np.testing.assert_allclose(by_litert(built, case.feeds())["y"], wanted, rtol=1e-5, atol=1e-5)
