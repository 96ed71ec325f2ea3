"""What an operator class gets from its annotations: the behaviour of a frozen dataclass, without generated methods."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

import vitrify.ops as ops
from vitrify.ir.operator import Operator, operator


@pytest.mark.parametrize(("kind", "values", "named"), [
    (ops.Conv2D, (), {"wrong": 3}), (ops.Conv2D, (ops.Padding.SAME,), {"padding": ops.Padding.SAME}),
    (ops.Abs, (1,), {})], ids=["unknown", "twice", "too-many"])
def test_wrong_attributes_are_refused(kind: type[Operator], values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="takes"):
        kind(*values, **named)


def test_values_by_position_by_name_and_by_default() -> None:
    conv = ops.Conv2D(ops.Padding.VALID, 2, dilation_h_factor=3)
    assert (conv.padding, conv.stride_w, conv.stride_h, conv.dilation_h_factor) == (ops.Padding.VALID, 2, 1, 3)
    assert [f.name for f in fields(conv)][:3] == ["padding", "stride_w", "stride_h"]
    assert replace(conv, stride_h=5) == ops.Conv2D(ops.Padding.VALID, 2, 5, dilation_h_factor=3)


def test_attributes_do_not_change() -> None:
    conv = ops.Conv2D()
    with pytest.raises(FrozenInstanceError, match="stride_w"):
        conv.stride_w = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="stride_w"):
        del conv.stride_w


def test_equal_means_the_same_class_and_values() -> None:
    assert ops.Conv2D(stride_w=2) == ops.Conv2D(stride_w=2) != ops.Conv2D()
    assert hash(ops.Conv2D(stride_w=2)) == hash(ops.Conv2D(stride_w=2))
    assert ops.Abs() != ops.Neg()
    assert ops.Opaque("X", table=1) == ops.Opaque("X", table=2)      # the table is not compared
    assert ops.Abs() != "ABS"


def test_copies_are_equal() -> None:
    conv = ops.Conv2D(stride_w=2)
    assert pickle.loads(pickle.dumps(conv)) == copy.deepcopy(conv) == conv


def test_what_is_printed() -> None:
    assert repr(ops.Concatenation(axis=1)).startswith("Concatenation(axis=1, ")
    assert str(ops.Concatenation(axis=1)) == "CONCATENATION(axis=1)"


def test_an_attribute_without_default_must_be_given() -> None:
    from vitrify.ir.operator import attributes

    @attributes
    class Needy(Operator):
        wanted: int

    assert Needy(3).wanted == 3
    with pytest.raises(TypeError, match="misses"):
        Needy()  # type: ignore[call-arg]


def test_a_name_is_registered_once() -> None:
    with pytest.raises(TypeError, match="described twice"):
        @operator
        class Again(Operator):
            name = "ABS"
