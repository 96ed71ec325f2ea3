"""Whatever a file says, inference and checks answer with types or with an error of ours, never with another one."""

import random
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

from vitrify.core.errors import VitrifyError
from vitrify.ir import DType, Graph, Quantization, Tensor
from vitrify.ir.operator import REGISTRY
from vitrify.ops.checking import check_node
from vitrify.ops.cost import Cost

DTYPES = [DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.BOOL, DType.STRING]


def random_tensor(rng):
    if rng.random() < 0.1:
        return None
    dtype = rng.choice(DTYPES)
    tensor = Tensor("t", dtype, rng.choices([0, 1, 2, 3, 4, 2**31 - 1], [1, 4, 4, 4, 4, 1], k=rng.randrange(6)))
    if dtype is DType.INT8:
        tensor.quantization = Quantization.per_tensor(0.5, 3)
    if dtype.numpy is not None and tensor.size <= 64 and max(tensor.shape, default=0) < 9 and rng.random() < 0.6:
        values = [rng.randrange(-3, 6) for _ in range(tensor.size)]
        tensor.data = np.array(values).astype(dtype.numpy).reshape(tensor.shape)
    return tensor


def random_operator(cls, rng):
    hints = get_type_hints(cls)
    values = {int: lambda: rng.choice([-2, -1, 0, 1, 2, 3, 99]), bool: lambda: rng.random() < 0.5,
              tuple[int, ...]: lambda: tuple(rng.randrange(-2, 5) for _ in range(rng.randrange(4)))}
    return cls(**{f.name: values[hints[f.name]]() for f in fields(cls) if hints[f.name] in values})


@pytest.mark.parametrize("name", REGISTRY)
def test_random_inputs(name):
    rng = random.Random(name)
    for _ in range(300):
        op = random_operator(REGISTRY[name], rng)
        inputs = [random_tensor(rng) for _ in range(rng.randrange(7))]
        try:
            types = op.infer(inputs)
        except VitrifyError:
            continue
        assert all(extent >= 0 for found in types for extent in found.shape)
        node = Graph().add(op, inputs)
        check_node(node)
        Cost.of(node)
        assert op.version(node) >= 1
