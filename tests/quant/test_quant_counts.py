"""Integers and truth values that become numbers: exact steps of 1, no float left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vitrify as vt
import vitrify.ops as ops
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.passes import to_integer_forms

VALUES: dict[DType, Any] = {DType.INT32: [0, 1, 7, 79], DType.UINT8: [0, 3, 200, 255], DType.INT8: [-9, 0, 1, 100],
                            DType.BOOL: [False, True, True, False]}


def weighed(kind: DType) -> Model:
    """A mask or a count, multiplied with a float input."""
    graph = Graph("main")
    x, mask = Tensor("x", DType.FLOAT32, (1, 4)), Tensor("mask", kind, (1, 4))
    graph.inputs.extend([x, mask])
    cast = ops.Cast(in_data_type=kind.value, out_data_type=DType.FLOAT32.value)
    number = graph.add(cast, [mask], name="number").output
    product = graph.add(ops.Mul(), [x, number], name="product").output
    graph.set_outputs([product, number])
    return Model([graph])


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.label)
def test_numbers_in_int8(kind: DType, tmp_path: Any) -> None:
    model = weighed(kind)
    given = {"x": np.array([[0.1, -0.6, 1.0, 0.9]], np.float32), "mask": np.array([VALUES[kind]], kind.numpy)}
    np.savez(tmp_path / "one.npz", **given)
    wanted = vt.run(model, given)
    int8 = vt.quantize(model, data=tmp_path)
    assert not any(node.op.kind == "CAST" for node in int8.main)
    assert not any(t.dtype.is_float for node in int8.main for t in node.outputs)
    for name, value in vt.run(int8, given).items():
        np.testing.assert_allclose(value, wanted[name], atol=float(np.ptp(wanted[name])) / 100)


def test_a_truth_value_is_a_choice() -> None:
    model = weighed(DType.BOOL)
    to_integer_forms(model)
    assert [node.op.kind for node in model.main] == ["SELECT_V2", "MUL"]
