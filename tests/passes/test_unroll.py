"""Sequence operators taken apart: the same values as LiteRT's fused kernels, in plain operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vitrify.ops as ops
from vitrify import tflite
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.ops import Activation
from vitrify.passes import to_integer_forms

Array = np.ndarray[Any, np.dtype[Any]]
STEPS, BATCH, DEPTH, HIDDEN = 5, 2, 3, 4
RNG = np.random.default_rng(3)


def noise(*shape: int) -> Array:
    return RNG.uniform(-0.9, 0.9, shape).astype(np.float32)


def constant(name: str, *shape: int) -> Tensor:
    return Tensor(name, DType.FLOAT32, shape, data=noise(*shape))


def state(name: str) -> Tensor:
    return Tensor(name, DType.FLOAT32, (BATCH, HIDDEN), is_variable=True)


def lstm(*, time_major: bool = True, holes: bool = False, activation: Activation = Activation.TANH,
         clip: float = 0.0) -> Model:
    weights: list[Tensor | None] = [constant(f"w{g}", HIDDEN, DEPTH) for g in "ifco"]
    weights += [constant(f"r{g}", HIDDEN, HIDDEN) for g in "ifco"]
    weights += [constant(f"p{g}", HIDDEN) if holes else None for g in "ifo"]
    weights += [constant(f"b{g}", HIDDEN) for g in "ifco"]
    op = ops.UnidirectionalSequenceLSTM(fused_activation_function=activation, time_major=time_major, cell_clip=clip)
    return layer(op, [*weights, None, None, state("h"), state("c"), None, None, None, None], time_major)


def rnn(*, time_major: bool = True, activation: Activation = Activation.TANH) -> Model:
    op = ops.UnidirectionalSequenceRNN(fused_activation_function=activation, time_major=time_major)
    return layer(op, [constant("w", HIDDEN, DEPTH), constant("r", HIDDEN, HIDDEN), constant("b", HIDDEN), state("h")],
                 time_major)


def layer(op: ops.Operator, others: list[Tensor | None], time_major: bool) -> Model:
    graph = Graph("main")
    x = Tensor("x", DType.FLOAT32, (STEPS, BATCH, DEPTH) if time_major else (BATCH, STEPS, DEPTH))
    graph.inputs.append(x)
    graph.set_outputs([graph.add(op, [x, *others], name="layer", output_names=["y"]).output])
    return Model([graph])


def run(model: Model, x: Array) -> Array:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=bytes(tflite.to_bytes(model)), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    found: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return found


MODELS = {
    "lstm, peepholes, batch first": lambda: lstm(time_major=False, holes=True),
    "lstm, peepholes": lambda: lstm(holes=True),
    "lstm, relu": lambda: lstm(activation=Activation.RELU),
    "rnn": lambda: rnn(),
    "rnn, batch first, relu": lambda: rnn(time_major=False, activation=Activation.RELU),
}


@pytest.mark.parametrize("name", MODELS)
def test_same_values(name: str) -> None:
    model = MODELS[name]()
    x = noise(*model.main.inputs[0].shape)
    wanted = run(model, x)
    ledger = to_integer_forms(model)
    assert ledger.entries[0].name == "unroll"
    assert not model.main.nodes_of(ops.UnidirectionalSequenceLSTM, ops.UnidirectionalSequenceRNN)
    assert model.main.outputs[0].name == "y"
    np.testing.assert_allclose(run(model, x), wanted, rtol=0, atol=5e-7)


@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_layers_with_an_integer_kernel_or_another_form_stay(clip: float) -> None:
    model = lstm(clip=clip)
    assert not to_integer_forms(model).entries
    assert len(model.main) == 1
