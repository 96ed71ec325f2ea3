"""A scale and an offset per channel become one depthwise convolution before a model is quantized."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graph_maker import Maker, check_kept, kinds

import vitrify as vt
from vitrify import ops
from vitrify.ir import Model
from vitrify.passes import INTEGER_FORMS, Runner


def scaled(shape: tuple[int, ...] = (1, 6, 5, 8), scales: tuple[int, ...] = (8,),
           offsets: tuple[int, ...] = (1, 1, 1, 8), *, first: bool = False,
           activation: ops.Activation = ops.Activation.NONE) -> Model:
    m = Maker()
    x = m.op(ops.Concatenation(axis=len(shape) - 1), m.input(*shape[:-1], shape[-1] // 2),
             m.input(*shape[:-1], shape[-1] // 2, name="y"))
    s, b = m.weights(*scales), m.weights(*offsets)
    product = m.op(ops.Mul(), *((s, x) if first else (x, s)))
    return m.model(m.op(ops.Add(fused_activation_function=activation), *((b, product) if first else (product, b))))


def of_the_input() -> Model:
    m = Maker()
    x = m.input(1, 6, 5, 8)
    return m.model(m.op(ops.Add(), m.op(ops.Mul(), x, m.weights(8)), m.weights(8)))


def used_twice() -> Model:
    m = Maker()
    product = m.op(ops.Mul(), m.op(ops.Relu(), m.input(1, 6, 5, 8)), m.weights(8))
    return m.model(m.op(ops.Add(), product, m.weights(8)), product)


KEPT = ["CONCATENATION", "MUL", "ADD"]
MADE = ["CONCATENATION", "DEPTHWISE_CONV_2D"]
CASES: dict[str, tuple[Callable[[], Model], list[str]]] = {
    "map": (scaled, MADE),
    "constants first": (lambda: scaled(first=True), MADE),
    "activation": (lambda: scaled(activation=ops.Activation.RELU), MADE),
    "batch": (lambda: scaled((3, 6, 5, 8)), MADE),
    "one scale": (lambda: scaled(scales=(1,)), KEPT),
    "a scale for each column": (lambda: scaled((1, 6, 8, 8), scales=(8, 1)), KEPT),
    "rows": (lambda: scaled((1, 6, 8), offsets=(1, 1, 8)), KEPT),
    "input": (of_the_input, ["MUL", "ADD"]),
    "product used twice": (used_twice, ["RELU", "MUL", "ADD"]),
}


@pytest.mark.parametrize("case", CASES)
def test_form(case: str) -> None:
    build, wanted = CASES[case]
    model = build()
    check_kept(model, lambda model: Runner(model).run(INTEGER_FORMS))
    assert kinds(model) == wanted


def test_int8() -> None:
    model = scaled()
    int8 = vt.quantize(model, random_calibration=True)
    assert vt.check(int8, "imx93").coverage.nodes == 1.0
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(size=(1, 6, 5, 4)).astype(np.float32) for _ in range(2))
    wanted, found = (np.asarray(next(iter(vt.run(one, {"x": x, "y": y}).values()))) for one in (model, int8))
    assert np.abs(wanted - found).max() < 0.02 * np.abs(wanted).max()
