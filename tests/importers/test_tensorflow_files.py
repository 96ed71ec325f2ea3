"""TensorFlow's and Keras' files without TensorFlow: which they are, what they hold, what is refused."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vitrify.core.errors import ModelError, UsageError, VitrifyError
from vitrify.importers import load
from vitrify.importers.exchange import front_end
from vitrify.importers.tensorflow.configs import refuse_code
from vitrify.importers.tensorflow.kinds import kind_of
from vitrify.importers.tensorflow.saved import describe
from vitrify.importers.tensorflow.wire import WireError, fields
from vitrify.pipeline.inspecting.inspect import inspect_path


def field(number: int, value: int | bytes | str) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = b""
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def port(name: str, dtype: int, *shape: int) -> bytes:
    """An entry of a signature's inputs or outputs."""
    dims = b"".join(field(2, field(1, extent)) for extent in shape)
    return field(1, name) + field(2, field(1, f"{name}:0") + field(2, dtype) + field(3, dims))


def saved_model(folder: Path, *operators: str) -> Path:
    """A SavedModel of one signature and the operators given, the last inside a function."""
    signature = field(1, port("x", 1, -1, 8)) + field(2, port("y", 9, 1, 4))
    nodes = b"".join(field(1, field(1, f"n{i}") + field(2, kind)) for i, kind in enumerate(operators[:-1]))
    inside = field(1, field(1, field(1, "fn")) + field(3, field(1, "last") + field(2, operators[-1])))
    meta = field(1, field(5, "2.21.0")) + field(2, nodes + field(2, inside))
    meta += field(5, field(1, "serving_default") + field(2, signature))
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(field(1, 1) + field(2, meta))
    return folder


def keras_file(path: Path, *layers: dict[str, Any], entries: dict[str, bytes] | None = None) -> Path:
    config = {"module": "keras", "class_name": "Sequential", "registered_name": None,
              "config": {"name": "net", "layers": list(layers)}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", "{}")
        for name, data in (entries or {}).items():
            archive.writestr(name, data)
    return path


def layer(kind: str, name: str, module: str = "keras.layers", **more: Any) -> dict[str, Any]:
    return {"module": module, "class_name": kind, "registered_name": more.pop("registered_name", None),
            "config": {"name": name, **more}}


INPUT = layer("InputLayer", "x", batch_shape=[None, 8], dtype="float32")


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    assert kind_of(saved_model(tmp_path / "model", "MatMul")) == "saved"
    assert kind_of(keras_file(tmp_path / "renamed.bin", INPUT)) == "keras"
    (tmp_path / "weights.bin").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    assert kind_of(tmp_path / "weights.bin") == "h5"
    (tmp_path / "other.zip").write_bytes(b"PK\x03\x04")
    assert kind_of(tmp_path / "other.zip") is None
    (tmp_path / "empty").mkdir()
    assert front_end(tmp_path / "empty") is None


def test_a_saved_model_is_described(tmp_path: Path) -> None:
    result = inspect_path(saved_model(tmp_path / "model", "MatMul", "MatMul", "Relu"))
    assert (result.format, result.operators) == ("savedmodel", {"MatMul": 2, "Relu": 1})
    assert [(row.name, row.shape, row.dtype) for row in result.inputs] == [("x", ["?", 8], "float32")]
    assert [(row.name, row.shape, row.dtype) for row in result.outputs] == [("y", [1, 4], "int64")]
    assert result.signatures == {"serving_default": {"inputs": ["x"], "outputs": ["y"]}}


def test_a_keras_file_is_described(tmp_path: Path) -> None:
    result = inspect_path(keras_file(tmp_path / "net.keras", INPUT, layer("Dense", "a"), layer("Dense", "b")))
    assert (result.format, result.operators) == ("keras", {"Dense": 2})
    assert [(row.name, row.shape) for row in result.inputs] == [("x", ["?", 8])]


LAMBDA = layer("Lambda", "twice", function={"class_name": "__lambda__", "config": {"code": "4wEAAAA="}})
CODE: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "lambda": (lambda p: keras_file(p / "m.keras", INPUT, LAMBDA), "tf.lambda", "layer 'twice' is a Lambda"),
    "custom_class": (lambda p: keras_file(p / "m.keras", layer("Mine", "own", "mine", registered_name="mine>Mine")),
                     "tf.custom-class", "layer 'own' needs code that the file does not hold: Mine 'mine>Mine'"),
    "custom_function": (lambda p: keras_file(p / "m.keras", layer("Dense", "d", activation={
        "module": "builtins", "class_name": "function", "config": "squash", "registered_name": "function"})),
        "tf.custom-class", "layer 'd' needs code that the file does not hold: function 'squash'"),
    "inner_model": (lambda p: keras_file(p / "m.keras", layer("Sequential", "inner", "keras", layers=[LAMBDA])),
                    "tf.lambda", "layer 'twice'"),
    "python": (lambda p: saved_model(p / "m", "MatMul", "EagerPyFunc"), "tf.code", "EagerPyFunc 'fn/last'"),
    "file": (lambda p: saved_model(p / "m", "WriteFile", "MatMul"), "tf.code", "WriteFile 'n0'"),
}


@pytest.mark.parametrize("case", CODE)
def test_code_needs_trust(case: str, tmp_path: Path) -> None:
    make, code, text = CODE[case]
    with pytest.raises(VitrifyError) as caught:
        load(make(tmp_path))
    finding = next(f for f in caught.value.findings if f.code == code)
    assert text in finding.headline
    assert finding.help


def test_a_trusted_lambda_may_run(tmp_path: Path) -> None:
    config = {"class_name": "Sequential", "config": {"layers": [LAMBDA]}}
    refuse_code(tmp_path, config, None, trust=True)
    with pytest.raises(UsageError, match="twice"):
        refuse_code(tmp_path, config, None, trust=False)


def test_a_class_that_keras_2_does_not_know(tmp_path: Path) -> None:
    config = {"class_name": "Sequential", "config": {"layers": [{"class_name": "Mine", "config": {"name": "own"}}]}}
    with pytest.raises(UsageError, match="layer 'own'"):
        refuse_code(tmp_path, config, frozenset({"Sequential"}), trust=False)


def truncated(path: Path, make: Callable[[Path], Path]) -> Path:
    made = make(path)
    file = made / "saved_model.pb" if made.is_dir() else made
    file.write_bytes(file.read_bytes()[:-7])
    return made


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "garbage": (lambda p: written(p / "m/saved_model.pb", b"\xff" * 4096).parent, "tf.damaged"),
    "empty": (lambda p: written(p / "m/saved_model.pb", b"").parent, "file.empty"),
    "no_graph": (lambda p: written(p / "m/saved_model.pb", field(1, 1)).parent, "tf.damaged"),
    "huge_field": (lambda p: written(p / "m/saved_model.pb", b"\x12" + varint(1 << 60)).parent, "tf.damaged"),
    "truncated": (lambda p: truncated(p, lambda q: saved_model(q / "m", "MatMul")), "tf.damaged"),
    "truncated_keras": (lambda p: truncated(p, lambda q: keras_file(q / "m.keras", INPUT)), "tf.damaged"),
    "no_json": (lambda p: _with_config(p / "m.keras", b"{not json"), "tf.damaged"),
    "deep_json": (lambda p: _with_config(p / "m.keras", b"[" * 100_000), "tf.damaged"),
    "list_json": (lambda p: _with_config(p / "m.keras", b"[]"), "tf.damaged"),
    "traversal": (lambda p: keras_file(p / "m.keras", entries={"../../escaped.h5": b"x"}), "tf.archive"),
    "absolute": (lambda p: keras_file(p / "m.keras", entries={"/etc/escaped": b"x"}), "tf.archive"),
    "bomb": (lambda p: keras_file(p / "m.keras", entries={"model.weights.h5": bytes(1 << 29)}), "tf.archive"),
}


def _with_config(path: Path, config: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", config)
        archive.writestr("metadata.json", "{}")
    return path


@pytest.mark.parametrize("read", [load, inspect_path], ids=["load", "inspect"])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused(case: str, read: Callable[[Path], Any], tmp_path: Path) -> None:
    make, code = HOSTILE[case]
    path = make(tmp_path / "place") if (tmp_path / "place").mkdir() is None else tmp_path
    with pytest.raises(ModelError) as caught:
        read(path)
    assert caught.value.findings[0].code == code
    assert {entry.name for entry in tmp_path.iterdir()} == {"place"}


@pytest.mark.parametrize("data", [b"\x00", b"\x0b", b"\x80" * 11, struct.pack("<B", 0x0A) + b"\x05ab"],
                         ids=["field_0", "group", "endless", "short"])
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(WireError):
        list(fields(memoryview(data)))


@pytest.mark.models
def test_a_real_saved_model(model_file: Callable[[str], Path]) -> None:
    found = describe(model_file("basic_pitch_saved/basic_pitch/saved_models/icassp_2022/nmp"))
    inputs, outputs = found.signatures["serving_default"]
    assert {name: port.shape for name, port in inputs.items()} == {"input_2": [-1, 43844, 1]}
    assert set(outputs) == {"contour", "note", "onset"}
    assert not found.code
