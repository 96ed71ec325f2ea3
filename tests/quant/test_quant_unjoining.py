"""Parts that are joined only to be cut again: the way round the join gives the same values."""

from collections.abc import Callable

import numpy as np
import pytest
from quant_graphs import Net, kinds, noise, run

import vitrify.ops as ops
from vitrify.ir import Model, Tensor
from vitrify.ir.validation import validate
from vitrify.quant.copying import copy_model
from vitrify.quant.outputs.unjoining import unjoin_cuts


def cut(net: Net, tensor: Tensor, axis: int, *sizes: int) -> list[Tensor]:
    inputs = [tensor, net.constant(list(sizes)), net.constant(axis)]
    return list(net.graph.add(ops.SplitV(num_splits=len(sizes)), inputs, name="cut").outputs)


def finish(net: Net, parts: list[Tensor]) -> Model:
    return net.model(*(net.add(ops.Tanh(), p) for p in parts))


def level(net: Net, stride: int) -> Tensor:
    """One level of a detection head: boxes and classes joined and flattened."""
    boxes = net.conv(net.x, 4, stride_h=stride, stride_w=stride)
    classes = net.conv(net.x, 3, stride_h=stride, stride_w=stride)
    joined = net.add(ops.Concatenation(axis=3), boxes, classes)
    count = joined.shape[1] * joined.shape[2]
    return net.add(ops.Reshape(new_shape=(1, count, 7)), joined, net.constant([1, count, 7]))


def levels(net: Net) -> Model:
    return finish(net, cut(net, net.add(ops.Concatenation(axis=1), level(net, 1), level(net, 2)), 2, 4, 3))


def transposed(net: Net) -> Model:
    return finish(net, cut(net, net.add(ops.Transpose(), level(net, 1), net.constant([0, 2, 1])), 1, 4, 3))


def inside_a_member(net: Net) -> Model:
    return finish(net, cut(net, level(net, 1), 2, 5, 2))


def no_join(net: Net) -> Model:
    return finish(net, cut(net, net.conv(net.x, 7), 3, 4, 3))


def read_as_a_whole(net: Net) -> Model:
    whole = level(net, 1)
    return net.model(*(net.add(ops.Tanh(), p) for p in cut(net, whole, 2, 4, 3)), net.add(ops.Relu(), whole))


@pytest.mark.parametrize(("make", "undone"), [
    (levels, 1), (transposed, 1), (read_as_a_whole, 1), (inside_a_member, 0), (no_join, 0)],
    ids=lambda value: getattr(value, "__name__", str(value)))
def test_cuts_between_members_go(make: Callable[[Net], Model], undone: int) -> None:
    model = make(Net(1, 4, 4, 3))
    changed = copy_model(model)
    assert unjoin_cuts(changed.main) == undone
    validate(changed)
    assert kinds(changed).count("SPLIT_V") == 1 - undone
    sample = noise(model)[0]
    wanted, found = run(model, sample), run(changed, sample)
    assert all(np.array_equal(wanted[name], found[name]) for name in wanted)
