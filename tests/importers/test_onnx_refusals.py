"""Broken, hostile and unsupported ONNX files: each gets its own words, and all problems at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_makers import by_litert, by_runtime, model, saved

from vitrify.core.errors import ModelError, UnsupportedError, UsageError, VitrifyError
from vitrify.importers import load

X = np.ones((1, 3, 8, 8), np.float32)
W = np.ones((4, 3, 3, 3), np.float32)


def node(kind: str, inputs: list[str], outputs: list[str], name: str = "", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, outputs, name or f"the {kind.lower()}", **attributes)


def relu_model() -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"])], {"x": X}, {}, ["y"])


def with_tensor(change: Callable[[onnx.TensorProto], object]) -> onnx.ModelProto:
    proto = model([node("Conv", ["x", "w"], ["y"])], {"x": X}, {"w": W}, ["y"])
    change(proto.graph.initializer[0])
    return proto


def external(location: str, **entries: str) -> onnx.ModelProto:
    def change(tensor: onnx.TensorProto) -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=text)

    return with_tensor(change)


def without_outputs() -> onnx.ModelProto:
    proto = relu_model()
    proto.graph.ClearField("output")
    return proto


def string_input() -> onnx.ModelProto:
    proto = relu_model()
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    return proto


def sequence_input() -> onnx.ModelProto:
    proto = relu_model()
    proto.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [1]))
    return proto


def conditional() -> onnx.ModelProto:
    branches = [helper.make_graph([made], "branch", [], [helper.make_empty_tensor_value_info("b")])
                for made in (node("Relu", ["x"], ["b"]), node("ReduceSum", ["x"], ["b"]))]
    nodes = [node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    return model(nodes, {"x": X, "c": np.array(True)}, {}, ["y"])


def too_old() -> onnx.ModelProto:
    proto = relu_model()
    proto.opset_import[0].version = 6
    return proto


def no_opset() -> onnx.ModelProto:
    proto = relu_model()
    proto.ClearField("opset_import")
    return proto


PROTOS: dict[str, tuple[Callable[[], onnx.ModelProto], type[VitrifyError], str]] = {
    "no outputs": (lambda: without_outputs(), ModelError, "1 nodes and gives out nothing"),
    "cycle": (
        lambda: model(
            [node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"], "second")], {"x": X}, {}, ["b"]
        ),
        ModelError,
        "cycle: 'first', 'second' wait for each other",
    ),
    "dangling input": (
        lambda: model([node("Add", ["x", "nowhere"], ["y"])], {"x": X}, {}, ["y"]),
        ModelError,
        r"reads 'nowhere' \(input 1\), which nothing makes",
    ),
    "dangling output": (
        lambda: model([node("Relu", ["x"], ["y"])], {"x": X}, {}, ["z"]),
        ModelError,
        "output 'z' is made by nothing",
    ),
    "name made twice": (
        lambda: model([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])], {"x": X}, {}, ["y"]),
        ModelError,
        "'y' is made 2 times",
    ),
    "name of an input": (
        lambda: model([node("Relu", ["x"], ["x"])], {"x": X}, {}, ["x"]),
        ModelError,
        "'x' is made 2 times",
    ),
    "different types": (
        lambda: model([node("Add", ["x", "i"], ["y"])], {"x": X, "i": np.ones((1,), np.int32)}, {}, ["y"]),
        ModelError,
        r"different element types: float32\[1,3,8,8\] and int32\[1\]",
    ),
    "integers into a convolution": (
        lambda: model([node("Conv", ["x", "w"], ["y"])], {"x": X.astype(np.int32)}, {"w": W}, ["y"]),
        ModelError,
        "takes floats",
    ),
    "integers where floats are converted": (
        lambda: model([node("Relu", ["x"], ["y"])], {"x": X.astype(np.int32)}, {}, ["y"]),
        UnsupportedError,
        r"input 'x' is int32\[1,3,8,8\]; only floats are converted",
    ),
    "shapes do not broadcast": (
        lambda: model([node("Add", ["x", "i"], ["y"])], {"x": X, "i": np.ones(5, np.float32)}, {}, ["y"]),
        ModelError,
        "do not broadcast",
    ),
    "channels": (
        lambda: model([node("Conv", ["x", "w"], ["y"])], {"x": X}, {"w": W[:, :2]}, ["y"]),
        ModelError,
        "the input has 3 channels",
    ),
    "window too large": (
        lambda: model([node("Conv", ["x", "w"], ["y"])], {"x": X[:, :, :2]}, {"w": W}, ["y"]),
        ModelError,
        "larger than its padded input",
    ),
    "attribute of a wrong type": (
        lambda: model([node("Conv", ["x", "w"], ["y"], strides="two")], {"x": X}, {"w": W}, ["y"]),
        ModelError,
        "attribute 'strides' should be a list of integers, it is str",
    ),
    "missing input": (
        lambda: model([node("Conv", ["x"], ["y"])], {"x": X}, {}, ["y"]),
        ModelError,
        "input 1 is missing",
    ),
    "axis": (
        lambda: model([node("Concat", ["x", "x"], ["y"], axis=7)], {"x": X}, {}, ["y"]),
        ModelError,
        "axis 7 is outside",
    ),
    "reshape": (
        lambda: model([node("Reshape", ["x", "s"], ["y"])], {"x": X}, {"s": np.array([5, 5])}, ["y"]),
        ModelError,
        "192 elements and does not fit",
    ),
    "tensor too short": (
        lambda: with_tensor(lambda t: setattr(t, "raw_data", t.raw_data[:100])),
        ModelError,
        "tensor 'w' holds 25 elements, its shape .* needs 108",
    ),
    "tensor of a huge shape": (
        lambda: with_tensor(lambda t: t.dims.extend([1 << 40, 1 << 40])),
        ModelError,
        "tensor 'w' holds 108",
    ),
    "tensor of negative shape": (lambda: with_tensor(lambda t: t.dims.extend([-1])), ModelError, "negative dimension"),
    "tensor of a strange type": (
        lambda: with_tensor(lambda t: setattr(t, "data_type", 99)),
        ModelError,
        "element type number 99",
    ),
    "tensor of strings": (lambda: with_tensor(lambda t: setattr(t, "data_type", 8)), ModelError, "element type string"),
    "external data missing": (lambda: external("weights.bin"), ModelError, r"there is no file '.*weights\.bin'"),
    "external data above the folder": (
        lambda: external("../secret"),
        ModelError,
        "'../secret', outside the model's folder",
    ),
    "external data elsewhere": (
        lambda: external("/etc/passwd"),
        ModelError,
        "'/etc/passwd', outside the model's folder",
    ),
    "external data without a place": (lambda: external(""), ModelError, "outside the model's folder"),
    "external data with a NUL": (lambda: external("a\0b"), ModelError, "outside the model's folder"),
    "external offset": (
        lambda: external("model.onnx", offset="9999999"),
        ModelError,
        "wants bytes 9999999 to 10000431",
    ),
    "external offset below 0": (lambda: external("model.onnx", offset="-8"), ModelError, "wants bytes -8"),
    "external offset no number": (lambda: external("model.onnx", offset="x"), ModelError, "no number"),
    "strings as input": (string_input, UnsupportedError, "element type string"),
    "sequence as input": (sequence_input, ModelError, "'x' is no tensor but a sequence"),
    "condition at run time": (
        conditional,
        UnsupportedError,
        "its condition 'c' is computed at run time, from input 'c'",
    ),
    "old operator set": (too_old, UnsupportedError, "operator set 6, the oldest read is 7"),
    "constant of a wrong type": (
        lambda: model(
            [node("Constant", [], ["c"], value_float="text"), node("Add", ["x", "c"], ["y"])], {"x": X}, {}, ["y"]
        ),
        ModelError,
        "Constant 'the constant' holds no number",
    ),
    "no operator set": (no_opset, ModelError, "does not say which ONNX operator set"),
    "foreign domain": (
        lambda: model([helper.make_node("CDist", ["x"], ["y"], "f", domain="com.microsoft")], {"x": X}, {}, ["y"]),
        UnsupportedError,
        "com.microsoft::CDist is not supported: 1 node",
    ),
    "beyond int32": (
        lambda: model([node("Add", ["i", "c"], ["y"])], {"i": np.ones(1, np.int64)}, {"c": np.array([2**40])}, ["y"]),
        UnsupportedError,
        "holds 1099511627776, beyond int32",
    ),
    "too many steps": (
        lambda: model(
            [node("GRU", ["x", "w", "r"], ["y"], hidden_size=2)],
            {"x": np.ones((1999, 1, 3), np.float32)},
            {"w": np.ones((1, 6, 3), np.float32), "r": np.ones((1, 6, 2), np.float32)},
            ["y"],
        ),
        UnsupportedError,
        "1999 time steps; at most",
    ),
}


@pytest.mark.parametrize("name", PROTOS)
def test_model_is_refused(name: str, tmp_path: Path) -> None:
    make, error, message = PROTOS[name]
    with pytest.raises(error, match=message) as caught:
        load(saved(make(), tmp_path))
    assert all(f.code and f.headline for f in caught.value.findings)


BYTES: dict[str, tuple[Callable[[], bytes], type[VitrifyError], str]] = {
    "empty": (lambda: b"", ModelError, "is empty"),
    "cut off": (lambda: saved_bytes()[:60], ModelError, "cut off"),
    "cut off at every length": (lambda: saved_bytes()[:-1], ModelError, "cut off|no graph"),
    "random": (lambda: np.random.default_rng(0).bytes(2000), ModelError, "neither an ONNX nor a TFLite model"),
    "random behind a plausible start": (
        lambda: b"\x08\x08" + np.random.default_rng(0).bytes(2000),
        ModelError,
        "not an ONNX model",
    ),
    "zeros": (lambda: bytes(500), ModelError, "neither an ONNX nor a TFLite model"),
    "text": (lambda: b"hello world\n", ModelError, "neither an ONNX nor a TFLite model"),
    "zip": (lambda: b"PK\x03\x04" + bytes(100), ModelError, "a ZIP archive"),
    "git lfs pointer": (lambda: b"version https://git-lfs.github.com/spec/v1\n", ModelError, "git lfs pull"),
    "only a version": (lambda: b"\x08\x08", ModelError, "there is no graph"),
}


def saved_bytes() -> bytes:
    return model([node("Conv", ["x", "w"], ["y"])], {"x": X}, {"w": W}, ["y"]).SerializeToString()


@pytest.mark.parametrize("name", BYTES)
def test_file_is_refused(name: str, tmp_path: Path) -> None:
    make, error, message = BYTES[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(make())
    with pytest.raises(error, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_every_cut_is_refused_or_read(tmp_path: Path) -> None:
    data = saved_bytes()
    path = tmp_path / "model.onnx"
    for length in range(1, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(VitrifyError):
            load(path)


def test_damaged_bytes_never_escape(tmp_path: Path) -> None:
    data = saved_bytes()
    rng = np.random.default_rng(11)
    path = tmp_path / "model.onnx"
    outcomes = {"model": 0, "refused": 0}
    for _ in range(300):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            load(path)
            outcomes["model"] += 1
        except VitrifyError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 20, f"one-sided: {outcomes}"


def test_folder_missing_and_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(UsageError, match="there is no file"):
        load(tmp_path / "none.onnx")
    if os.geteuid():
        locked = tmp_path / "locked.onnx"
        locked.write_bytes(saved_bytes())
        locked.chmod(0)
        with pytest.raises(UsageError, match="Permission denied"):
            load(locked)


def test_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside.bin"
    outside.write_bytes(bytes(432))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "weights.bin").symlink_to(outside)
    with pytest.raises(ModelError, match="outside the model's folder"):
        load(saved(external("weights.bin"), folder))


def test_external_data_is_read(tmp_path: Path) -> None:
    weights = np.random.default_rng(2).standard_normal(W.shape).astype(np.float32)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "weights.bin").write_bytes(bytes(8) + weights.tobytes())
    path = saved(external("sub/weights.bin", offset="8", length="432"), tmp_path)
    np.testing.assert_allclose(
        by_litert(load(path), {"x": X})["y"], by_runtime(path, {"x": X})["y"], rtol=1e-5, atol=1e-6
    )


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    nodes = [
        node("Imaginary", ["x"], ["a"], "d1"),
        node("Imaginary", ["a"], ["b"], "d2"),
        node("Fictional", ["x", "b"], ["c"], "g"),
        helper.make_node("Odd", ["c"], ["d"], "o", domain="org.example"),
        node("NonZero", ["x"], ["e"], "r"),
        node("Relu", ["d"], ["y"], "fine"),
    ]
    path = saved(model(nodes, {"x": X}, {}, ["y", "e"]), tmp_path)
    with pytest.raises(UnsupportedError) as caught:
        load(path)
    assert [f.headline.split(" (")[0] for f in caught.value.findings] == [
        "Imaginary is not supported: 2 nodes",
        "Fictional is not supported: 1 node",
        "org.example::Odd is not supported: 1 node",
        "NonZero 'r': how many elements it finds is known at run time only",
    ]
    assert caught.value.findings[0].where == "nodes 'd1', 'd2'"


def test_broken_structure_is_listed_at_once(tmp_path: Path) -> None:
    nodes = [node("Add", ["x", "none"], ["a"], "one"), node("Relu", ["gone"], ["a"], "two")]
    with pytest.raises(ModelError) as caught:
        load(saved(model(nodes, {"x": X}, {}, ["a", "lost"]), tmp_path))
    assert [f.code for f in caught.value.findings] == [
        "onnx.duplicate-name",
        "onnx.dangling-input",
        "onnx.dangling-input",
        "onnx.dangling-output",
    ]


def test_unused_unsupported_node_is_left_out(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Det", ["x"], ["unused"])]
    graph = load(saved(model(nodes, {"x": X}, {}, ["y"]), tmp_path)).main
    assert [n.op.kind for n in graph] == ["RELU"]


def test_name_that_is_not_utf8(tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], ["y"], "NAME")], {"x": X}, {}, ["y"])
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString().replace(b"NAME", b"N\xff\xfeE"))
    assert next(iter(load(path).main)).name == "N\\xff\\xfeE"


def test_nodes_out_of_order_are_sorted(tmp_path: Path) -> None:
    nodes = [node("Abs", ["a"], ["y"]), node("Relu", ["x"], ["a"])]
    assert [n.op.kind for n in load(saved(model(nodes, {"x": X}, {}, ["y"]), tmp_path)).main] == ["RELU", "ABS"]


def test_wide_open_value(tmp_path: Path) -> None:
    proto = relu_model()
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match="input 'x' has no shape in the file"):
        load(saved(proto, tmp_path))
    assert load(saved(proto, tmp_path), {"x": [1, 2]}).main.inputs[0].shape == (1, 2)


def with_function(*called: str) -> onnx.ModelProto:
    """A model that calls Twice(x) = Relu(x) + Relu(x), or functions that call others."""
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = []
    for i, other in enumerate(called):
        inner = helper.make_node(other, ["a"], ["r"], domain="" if other == "Relu" else "own")
        body = [inner, helper.make_node("Add", ["r", "r"], ["b"])]
        functions.append(helper.make_function("own", f"F{i}", ["a"], ["b"], body, opset))
    graph = model([helper.make_node("F0", ["x"], ["y"], domain="own")], {"x": X}, {}, ["y"]).graph
    return helper.make_model(graph, opset_imports=opset, functions=functions, ir_version=8)


def test_functions_are_put_in(tmp_path: Path) -> None:
    path = saved(with_function("F1", "Relu"), tmp_path)
    imported = load(path)
    assert [n.op.kind for n in imported.main] == ["RELU", "ADD", "ADD"]
    np.testing.assert_array_equal(by_litert(imported, {"x": X})["y"], by_runtime(path, {"x": X})["y"])


def test_functions_in_a_circle_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="call each other in a circle"):
        load(saved(with_function("F1", "F0"), tmp_path))


def test_sparse_is_refused(tmp_path: Path) -> None:
    proto = relu_model()
    proto.graph.sparse_initializer.add().values.CopyFrom(numpy_helper.from_array(W, "s"))
    with pytest.raises(ModelError, match="initializer 's' is sparse"):
        load(saved(proto, tmp_path))
