"""Between source arrays and a file's tensors: layout, quantization, parts, host programs."""

from typing import Any

import numpy as np
import pytest

import vitrify.ops as ops
from vitrify.core.errors import DataError, ModelError
from vitrify.data.binding import identity_interface, to_file_inputs, to_source_outputs
from vitrify.data.host import attributes_of, run_host
from vitrify.ir import (
    DType,
    Graph,
    InputBinding,
    Interface,
    Model,
    OutputBinding,
    Part,
    Quantization,
    Signature,
    Tensor,
)
from vitrify.ir.host import HostConstant, HostProgram, HostStep


def details(shape: tuple[int, ...], dtype: type = np.float32, scale: float = 0.0,
            zero_point: int = 0) -> dict[str, Any]:
    """What LiteRT says of a tensor."""
    scales = np.array([scale], np.float32) if scale else np.array([], np.float32)
    return {"shape": np.array(shape), "dtype": dtype, "quantization_parameters": {
        "scales": scales, "zero_points": np.array([zero_point] if scale else [], np.int32), "quantized_dimension": 0}}


def taking(shape: tuple[int, ...], perm: tuple[int, ...] = (), dtype: str = "float32") -> Interface:
    return Interface(inputs=(InputBinding(name="x", shape=shape, dtype=dtype, position=0, perm=perm),), outputs=())


X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 2, 3, 4)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
def test_inputs_are_moved_and_quantized(dtype: type) -> None:
    zero_point = 3 if dtype is np.int8 else 131
    file = details((1, 3, 4, 2), dtype, 0.01, zero_point)
    (found,) = to_file_inputs(taking((1, 2, 3, 4), (0, 2, 3, 1)), {"x": X}, [file])
    assert found.dtype == dtype
    real = (found.astype(np.float32) - zero_point) * 0.01
    assert np.allclose(real, X.transpose(0, 2, 3, 1), atol=0.00501)


def test_floats_and_integers_pass() -> None:
    assert np.array_equal(to_file_inputs(taking((1, 2, 3, 4)), {"x": X}, [details((1, 2, 3, 4))])[0], X)
    ids = np.array([[5, 6]], np.int64)
    (found,) = to_file_inputs(taking((1, 2), dtype="int64"), {"x": ids}, [details((1, 2), np.int32)])
    assert found.dtype == np.int32
    assert np.array_equal(found, ids)


@pytest.mark.parametrize(("arrays", "message"), [
    ({}, "no array for input 'x'"), ({"y": X}, "the sample has: 'y'"),
    ({"x": X[0]}, r"input 'x' takes \[1,2,3,4\], got \[2,3,4\]")], ids=["nothing", "other name", "shape"])
def test_inputs_that_do_not_fit(arrays: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(DataError, match=message):
        to_file_inputs(taking((1, 2, 3, 4)), arrays, [details((1, 2, 3, 4))])


def giving(shape: tuple[int, ...], *parts: Part, axis: int = 0, host: HostProgram | None = None) -> Interface:
    bindings = (OutputBinding(name="y", shape=shape, dtype="float32", parts=parts, axis=axis),)
    return Interface(inputs=(), outputs=bindings, host=host)


def test_outputs_are_dequantized_moved_scaled_and_joined() -> None:
    boxes, scores = np.array([[[0], [100], [-100], [7]]], np.int8), np.array([[[-128, 127]]], np.int8)
    parts = Part(position=1, perm=(0, 1, 2), scale=10.0), Part(position=0, perm=(0, 2, 1))
    interface = giving((1, 6, 1), *parts, axis=1)
    found = to_source_outputs(interface, [scores, boxes], [details((1, 1, 2), np.int8, 1 / 256, -128),
                                                            details((1, 4, 1), np.int8, 0.5)])["y"]
    assert found.dtype == np.float32
    assert found.reshape(-1).tolist() == [0, 500, -500, 35, 0, 255 / 256]


def test_a_part_can_be_reshaped() -> None:
    found = to_source_outputs(giving((2, 12), Part(position=0, shape=(2, 12))), [X], [details((1, 2, 3, 4))])["y"]
    assert np.array_equal(found, X.reshape(2, 12))


def program(operator: str = "ADD") -> HostProgram:
    step = HostStep(operator=operator, attributes=attributes_of(ops.Add()), inputs=(0, 1), outputs=(2,))
    return HostProgram(takes=1, constants=(HostConstant.of(np.float32([1, 2, 3, 4])),), steps=(step,), gives=(2,))


def test_a_host_program_runs_on_the_real_values() -> None:
    quantized = np.array([[1, 2, 3, 4]], np.int8)
    found = to_source_outputs(giving((1, 4), Part(position=0), host=program()), [quantized],
                              [details((1, 4), np.int8, 0.5)])["y"]
    assert found.tolist() == [[1.5, 3, 4.5, 6]]
    assert program().describe() == "%2 = ADD(output 0, constant float32[4])\ngives %2"


def test_an_unknown_host_operator_is_refused() -> None:
    with pytest.raises(ModelError, match="unknown operator 'WARP'"):
        run_host(program("WARP"), [np.zeros((1, 4), np.float32)])


def test_a_model_is_its_own_source() -> None:
    graph = Graph()
    graph.inputs = [Tensor("in", DType.INT8, (1, 4), quantization=Quantization.per_tensor(0.1))]
    graph.set_outputs([graph.add(ops.Relu(), graph.inputs, name="relu").output])
    model = Model([graph], [Signature("serving_default", 0, {"first": 0}, {"last": 0})])
    interface = identity_interface(model)
    assert (interface.inputs[0].name, interface.inputs[0].dtype) == ("first", "float32")
    assert interface.outputs[0].name == "last"
    assert identity_interface(Model([graph])).inputs[0].name == "in"
