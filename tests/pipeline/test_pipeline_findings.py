"""What the importer assumed is told by every command that imports."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vitrify as vt
from vitrify.cli.main import call
from vitrify.core.errors import ModelError
from vitrify.results import RESULTS

TAKEN = "input 'x' leaves the batch open; 1 is taken"


@pytest.fixture
def open_model(tmp_path: Path) -> Path:
    """A convolution and a gain that is an input; the batch is open."""
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Mul", ["c", "gain"], ["s"]),
         helper.make_node("Relu", ["s"], ["y"])], "open",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8]),
         helper.make_tensor_value_info("gain", TensorProto.FLOAT, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4, 8, 8])],
        [numpy_helper.from_array(weights, "w")])
    path = tmp_path / "open.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(tmp_path / "data.npy", np.random.default_rng(1).uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32))
    return path


@pytest.mark.parametrize("command", [
    "convert {model} -o {folder}/f.tflite", "quantize {model} --data {folder}/data.npy -o {folder}/q.tflite",
    "check {model} --target imx93 --data {folder}/data.npy",
    "build {model} --target imx93 --data {folder}/data.npy -o {folder}/run"], ids=lambda c: str(c).split()[0])
def test_the_batch_that_was_taken_is_told(open_model: Path, command: str,
                                          capfd: pytest.CaptureFixture[str]) -> None:
    line = f"{command} --value gain=2.5".format(model=open_model, folder=open_model.parent).split()
    assert call([*line, "--json"]) == 0
    out, _ = capfd.readouterr()
    result = msgspec.json.decode(out, type=RESULTS[line[0]])
    assert [f.headline for f in result.findings if f.code == "onnx.open-batch"] == [TAKEN]
    assert call([*line, "-q"]) == 0
    out, err = capfd.readouterr()
    assert TAKEN in out + err


def test_values_stand_for_inputs_in_python(open_model: Path, tmp_path: Path) -> None:
    values: dict[str, int | float | list[int | float]] = {"gain": 2.5}
    x = np.random.default_rng(2).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
    doubled = {g: vt.run(open_model, {"x": x}, values={"gain": g})["y"] for g in (2.5, 5.0)}
    np.testing.assert_allclose(doubled[5.0], 2 * doubled[2.5], rtol=1e-6)
    loaded = vt.load(open_model, values=values)
    int8 = vt.quantize(open_model, data=tmp_path / "data.npy", values=values)
    vt.convert(open_model, tmp_path / "f.tflite", values=values)
    for form in (loaded, tmp_path / "f.tflite"):
        np.testing.assert_allclose(vt.run(form, {"x": x})["y"], doubled[2.5], rtol=1e-5, atol=1e-5)
    assert np.abs(vt.run(int8, {"x": x})["y"] - doubled[2.5]).mean() < 0.1        # one step of 26 / 255
    assert vt.verify(open_model, tmp_path / "f.tflite", data=tmp_path / "data.npy", values=values).ok


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    """Two rows of scores below two rows of pixels: one scale for all leaves the scores nothing."""
    pixels = numpy_helper.from_array(np.full((1, 2, 1), 640, np.float32), "pixels")
    graph = helper.make_graph(
        [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["s", "pixels"], ["b"]),
         helper.make_node("Concat", ["b", "s"], ["y"], axis=1)], "detector",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 50])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 50])], [pixels])
    path = tmp_path / "detector.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(tmp_path / "data.npy", np.random.default_rng(1).uniform(-4, 4, (6, 1, 2, 50)).astype(np.float32))
    return path


@pytest.mark.parametrize(("outputs", "status"), [("split", 0), ("keep", 1)])
def test_answers_that_are_not_good_end_a_quantization_with_1(detector: Path, outputs: str, status: int,
                                                             capfd: pytest.CaptureFixture[str]) -> None:
    folder = detector.parent
    line = ["quantize", str(detector), "--data", str(folder / "data.npy"), "-o", str(folder / "q.tflite"), "--outputs",
            outputs, "-q"]
    assert call(line) == status
    out, _ = capfd.readouterr()
    assert (folder / "q.tflite").exists()
    assert ("4 samples: good" in out) is (status == 0)
    assert ("is written, but its answers are not good" in out) is (status == 1)
    assert call(["verify", str(detector), str(folder / "q.tflite"), "--data", str(folder / "data.npy"), "-q"]) == status


def _broken(change: str) -> onnx.ModelProto:
    """A convolution with one thing wrong."""
    weights = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv"), helper.make_node("Relu", ["c"], ["y"], "relu")]
    if change in ("missing", "escaping"):
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        weights.external_data.add(key="location", value="no.bin" if change == "missing" else "../../etc/passwd")
    if change == "cycle":
        nodes[0].input[0] = "y"
    if change == "undefined":
        nodes[1].input[0] = "nobody"
    if change == "negative":
        weights.dims[0] = -4
    proto = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weights]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    proto.metadata_props.add(key="long", value="x" * 500)
    return proto


BROKEN = {"": "", "missing": "onnx.external", "escaping": "onnx.external", "cycle": "onnx.cycle",
          "undefined": "onnx.dangling-input", "negative": "onnx.tensor-size"}


@pytest.mark.parametrize("change", BROKEN, ids=lambda c: c or "whole")
def test_inspect_and_verify_tell_what_is_broken(change: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_broken(change).SerializeToString())
    seen = vt.inspect(path)
    assert [f.code.startswith(BROKEN[change]) for f in seen.findings] == [True] * len(seen.findings)
    assert seen.ok is (not change)
    assert seen.parameters >= 0
    assert seen.metadata["long"].endswith("... (500 characters)")
    if change:
        with pytest.raises(ModelError) as told:
            vt.verify(path, path, random_inputs=True)
        assert told.value.findings[0].code.startswith(BROKEN[change])


@pytest.mark.parametrize(("name", "told"), [("x", False), ("arr_0", False), ("picture", True)])
def test_an_array_of_another_name_is_told(detector: Path, name: str, told: bool) -> None:
    data = detector.parent / "data.npz"
    np.savez(data, **{name: np.load(detector.parent / "data.npy")})
    found = vt.verify(detector, detector, data=data).findings
    assert [f.code for f in found if f.code.startswith("data.")] == ["data.other-name"] * told


@pytest.mark.parametrize("command", ["quantize", "check"])
def test_errors_name_the_users_file_and_no_passing_one(detector: Path, command: str,
                                                       capfd: pytest.CaptureFixture[str]) -> None:
    samples = np.full((2, 1, 2, 50), np.nan, np.float32)
    np.save(detector.parent / "bad.npy", samples)
    more = ["--target", "imx93"] if command == "check" else ["-o", str(detector.parent / "q.tflite")]
    assert call([command, str(detector), "--data", str(detector.parent / "bad.npy"), *more, "-q"]) == 1
    out, err = capfd.readouterr()
    assert "NaN" in out + err
    assert "vitrify-" not in out + err
