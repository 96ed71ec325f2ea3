"""Large files: weights stay in the file, and what is cut out of the message is what the parser would have read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_makers import by_litert, by_runtime, saved, value

from vitrify.importers import load
from vitrify.importers.onnx.reading import weights
from vitrify.importers.onnx.reading.messages import model_proto

RNG = np.random.default_rng(5)
X = RNG.standard_normal((1, 64)).astype(np.float32)


def matrix(name: str, seed: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32), name)


def product(*tensors: onnx.TensorProto) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", [f"x{i}", t.name], [f"x{i + 1}"]) for i, t in enumerate(tensors)]
    graph = helper.make_graph(nodes, "g", [value("x0", [1, 64])], [value(f"x{len(tensors)}", [1, 64])], list(tensors))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def values_as_numbers() -> onnx.ModelProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64, 64])
    tensor.float_data.extend(RNG.standard_normal(64 * 64))
    return product(tensor)


def with_small_ones() -> onnx.ModelProto:
    model = product(matrix("a", 1), matrix("b", 2))
    model.graph.node.append(helper.make_node("Add", ["x2", "small"], ["y"]))
    model.graph.initializer.insert(0, numpy_helper.from_array(np.ones(64, np.float32), "small"))
    model.graph.output[0].name = "y"
    return model


MODELS: dict[str, tuple[onnx.ModelProto, int]] = {
    "one": (product(matrix("w", 1)), 1),
    "three": (product(matrix("a", 1), matrix("b", 2), matrix("c", 3)), 3),
    "small ones between": (with_small_ones(), 2),
    "numbers instead of raw data": (values_as_numbers(), 0),
}


@pytest.fixture
def mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LEAST_FILE_BYTES", 0)


@pytest.mark.usefixtures("mapping")
@pytest.mark.parametrize("name", MODELS)
def test_the_message_keeps_all_but_the_large_weights(name: str, tmp_path: Path) -> None:
    proto, cut = MODELS[name]
    path = saved(proto, tmp_path)
    found = weights.mapped(path)
    assert len(found.weights) == cut
    back = model_proto().FromString(found.message)
    for number, raw in found.weights.items():
        assert not back.graph.initializer[number].raw_data
        back.graph.initializer[number].raw_data = raw.tobytes()
    assert back.SerializeToString(deterministic=True) == proto.SerializeToString(deterministic=True)


@pytest.mark.usefixtures("mapping")
@pytest.mark.parametrize("name", MODELS)
def test_mapped_weights_compute_the_same(name: str, tmp_path: Path) -> None:
    path = saved(MODELS[name][0], tmp_path)
    imported = load(path)
    (wanted,), (found,) = by_runtime(path, {"x0": X}).values(), by_litert(imported, {"x0": X}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


def two_graphs(data: bytes) -> bytes:
    return data + data


def wild_tag(data: bytes) -> bytes:
    return data + b"\x0f"


def endless_number(data: bytes) -> bytes:
    return data + b"\x08" + b"\xff" * 20


def group(data: bytes) -> bytes:
    return data + b"\x0b\x0c"


@pytest.mark.usefixtures("mapping")
@pytest.mark.parametrize("change", [two_graphs, wild_tag, endless_number, group, lambda data: data[:-3]])
def test_odd_bytes_are_left_to_the_parser(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(change(MODELS["three"][0].SerializeToString()))
    found = weights.mapped(path)
    assert found.message == path.read_bytes()
    assert not found.weights


@pytest.mark.usefixtures("mapping")
def test_a_wrong_size_is_named(tmp_path: Path) -> None:
    proto = product(matrix("w", 1))
    proto.graph.initializer[0].dims[0] = 63
    with pytest.raises(Exception, match=r"tensor 'w' holds 4096 elements, its shape \[63, 64\] needs 4032"):
        load(saved(proto, tmp_path))
