"""LiteRT and ONNX Runtime by the source model's names: values against the runtimes called directly."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from onnx import TensorProto, helper, numpy_helper

import schema_models as made
from vitrify import runtimes
from vitrify.core.errors import DataError, ModelError, UnsupportedError, UsageError
from vitrify.ir import InputBinding, Interface, OutputBinding, Part
from vitrify.runtimes.litert import LiteRT

Array = np.ndarray[Any, Any]
MODELS = ["basic_pitch/nmp.tflite", "mltk_int8/keyword_spotting/keyword_spotting.tflite",
          "mltk_int8/rock_paper_scissors/rock_paper_scissors.tflite", "mediapipe_face/face_landmark.tflite"]
DIRECT = {"reference": OpResolverType.BUILTIN_REF, "optimized": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
          "xnnpack": OpResolverType.BUILTIN}


def _inputs(runtime: runtimes.Runtime, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {b.name: rng.random(b.shape).astype(b.dtype) for b in runtime.interface.inputs}


@pytest.mark.models
@pytest.mark.parametrize("kernels", DIRECT)
@pytest.mark.parametrize("name", MODELS)
def test_litert_gives_what_the_interpreter_gives(name: str, kernels: str, model_file) -> None:
    path = model_file(name)
    direct = Interpreter(str(path), experimental_op_resolver_type=DIRECT[kernels], num_threads=1)
    direct.allocate_tensors()
    raw = [np.random.default_rng(1).integers(-100, 100, d["shape"]).astype(d["dtype"])
           for d in direct.get_input_details()]
    for details, array in zip(direct.get_input_details(), raw, strict=True):
        direct.set_tensor(details["index"], array)
    direct.invoke()
    with runtimes.open(path, kernels=kernels) as runtime:
        assert isinstance(runtime, LiteRT)
        for details, got in zip(direct.get_output_details(), runtime.invoke_raw(raw), strict=True):
            np.testing.assert_array_equal(got, direct.get_tensor(details["index"]))


@pytest.mark.models
def test_litert_traces_inner_tensors(model_file) -> None:
    path = model_file("mltk_int8/keyword_spotting/keyword_spotting.tflite")
    direct = Interpreter(str(path), experimental_op_resolver_type=DIRECT["reference"],
                         experimental_preserve_all_tensors=True)
    direct.allocate_tensors()
    with LiteRT(path) as runtime:
        inputs = _inputs(runtime)
        traced = runtime.trace(inputs)
        assert set(traced) == set(runtime.tensors)
        assert len(traced) > 10
        only = runtime.tensors[1]
        assert set(runtime.trace(inputs, [only])) == {only}
        details = direct.get_input_details()[0]
        value = next(iter(inputs.values()))
        direct.set_tensor(details["index"], value)
        direct.invoke()
        for tensor in direct.get_tensor_details():
            if tensor["name"] in traced:
                np.testing.assert_array_equal(traced[tensor["name"]].raw, direct.get_tensor(tensor["index"]))
        scale = traced[only].quantization.scale
        assert traced[only].value.dtype == np.float32
        assert np.abs(traced[only].value).max() <= 256 * float(scale[0])
        seen = runtime.observe(inputs, [only])
        assert list(seen.outputs) == [b.name for b in runtime.interface.outputs]
        np.testing.assert_array_equal(seen.tensors[only].raw, traced[only].raw)


@pytest.mark.models
def test_names_come_from_the_signature(model_file) -> None:
    with runtimes.open(model_file("basic_pitch/nmp.tflite")) as runtime:
        assert [b.name for b in runtime.interface.inputs] == ["input_2"]
        assert {b.name for b in runtime.interface.outputs} == {"contour", "note", "onset"}
        assert runtime.aliases["serving_default_input_2:0"] == "input_2"


@pytest.mark.models
def test_variables_start_afresh_unless_kept(model_file) -> None:
    path = model_file("micro_wakeword_int8/alexa.tflite")
    with LiteRT(path) as runtime, LiteRT(path, keep_state=True) as streaming:
        inputs = _inputs(runtime)
        first, again = (next(iter(runtime.run(inputs).values())) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        kept = [next(iter(streaming.run(inputs).values())) for _ in range(12)]
        np.testing.assert_array_equal(kept[0], first)
        assert any(not np.array_equal(k, first) for k in kept)


def test_interface_undoes_layout_and_quantization(tmp_path: Path) -> None:
    path = made.logistic(tmp_path / "m.tflite", 1 / 256)
    binding = InputBinding(name="image", shape=(8, 1), dtype="float32", position=0, perm=(1, 0))
    output = OutputBinding(name="score", shape=(8, 1), dtype="float32", parts=(Part(position=0, perm=(1, 0)),))
    with LiteRT(path, interface=Interface(inputs=(binding,), outputs=(output,))) as runtime:
        x = np.linspace(-4, 4, 8, dtype=np.float32).reshape(8, 1)
        seen = runtime.observe({"image": x})
        np.testing.assert_allclose(seen.outputs["score"], 1 / (1 + np.exp(-x)), atol=0.02)
        assert seen.steps["score"].shape == (8, 1)
        assert float(seen.steps["score"][0, 0]) == 1 / 256
        assert seen.saturated == {"score": 0.0}
        assert runtime.precision == "integer"


PRECISIONS = {"basic_pitch/nmp.tflite": "float32", "mediapipe_face/face_detection_front.tflite": "float16",
              "mltk_int8/keyword_spotting/keyword_spotting.tflite": "integer", "basic_pitch/nmp.onnx": "float32"}


@pytest.mark.models
@pytest.mark.parametrize("name", PRECISIONS)
def test_precision(name: str, model_file) -> None:
    with runtimes.open(model_file(name)) as runtime:
        assert runtime.precision == PRECISIONS[name]


def test_an_onnx_file_with_quantizing_nodes_holds_integers(tmp_path: Path) -> None:
    scale, zero = (numpy_helper.from_array(np.array(v), n) for v, n in ((np.float32(0.1), "s"), (np.int8(0), "z")))
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4)) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [scale, zero])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
              str(tmp_path / "m.onnx"))
    with runtimes.open(tmp_path / "m.onnx") as runtime:
        assert runtime.precision == "integer"


def test_death_in_the_middle_leaves_the_runtime_usable(tmp_path: Path) -> None:
    with LiteRT(made.rounding(tmp_path / "m.tflite", (1, 4), 0.1)) as runtime:
        x = {"x": np.array([[0.1, 0.2, 0.3, 0.4]], np.float32)}
        before = runtime.run(x)["y"]
        runtime._worker.close()
        np.testing.assert_array_equal(runtime.run(x)["y"], before)


def test_a_file_that_kills_litert_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="died of SIGABRT"):
        LiteRT(made.add(tmp_path / "m.tflite", 1e-7))


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "missing": (lambda r: r.run({}), DataError, "no array for input 'x'"),
    "shape": (lambda r: r.run({"x": np.zeros((1, 5), np.float32)}), DataError, r"takes \[1, ?4\]"),
    "tensor": (lambda r: r.trace({"x": np.zeros((1, 4), np.float32)}, ["nope"]), UsageError, "'nope'"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("kind", ["tflite", "onnx"])
def test_wrong_use(case: str, kind: str, tmp_path: Path) -> None:
    path = made.rounding(tmp_path / "m.tflite", (1, 4), 0.1) if kind == "tflite" else _onnx(tmp_path / "m.onnx")
    call, error, text = WRONG[case]
    with runtimes.open(path) as runtime, pytest.raises(error, match=text):
        call(runtime)


def test_xnnpack_hides_inner_tensors(tmp_path: Path) -> None:
    with LiteRT(made.rounding(tmp_path / "m.tflite", (1, 4), 0.1), kernels="xnnpack") as runtime:
        assert not runtime.capabilities.trace
        with pytest.raises(UsageError, match="xnnpack kernels hide inner tensors"):
            runtime.trace({"x": np.zeros((1, 4), np.float32)})


AUTO = {"integers": (lambda p: made.logistic(p, 1 / 256), "reference", "reference"),
        "floats": (lambda p: made.negation_twice(p, (1, 4)), "xnnpack", "optimized")}


@pytest.mark.parametrize("case", AUTO)
def test_auto_kernels(case: str, tmp_path: Path) -> None:
    make, kernels, traced_by = AUTO[case]
    with LiteRT(make(tmp_path / "m.tflite"), kernels="auto") as runtime:
        assert (runtime.kernels, runtime.traced_by) == (kernels, traced_by)
        x = {"x": np.full(runtime.interface.inputs[0].shape, 0.5, np.float32)}
        seen = runtime.observe(x, runtime.tensors)
        assert set(seen.tensors) == set(runtime.tensors)
        np.testing.assert_array_equal(seen.outputs["y"], runtime.run(x)["y"])


def test_unknown_kernels(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no kernels 'fast'"):
        runtimes.open(made.rounding(tmp_path / "m.tflite", (1, 4), 0.1), kernels="fast")


def test_profile_measures(tmp_path: Path) -> None:
    with runtimes.open(made.rounding(tmp_path / "m.tflite", (1, 4), 0.1)) as runtime:
        profile = runtime.profile(runs=7, warmup=2)
    assert profile.runs == 7
    assert 0 < profile.min_ms <= profile.median_ms <= profile.p90_ms <= profile.max_ms


def _onnx(path: Path, external: bool = False, dims: tuple[Any, ...] = (1, 4)) -> Path:
    weight = numpy_helper.from_array(np.arange(16, dtype=np.float32).reshape(4, 4), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path), save_as_external_data=external, location="weights.bin", size_threshold=0)
    return path


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external_weights"])
def test_onnxruntime_runs_and_traces(external: bool, tmp_path: Path) -> None:
    path = _onnx(tmp_path / "m.onnx", external)
    before = {f.name: hashlib.sha256(f.read_bytes()).digest() for f in tmp_path.iterdir()}
    x = np.array([[1, -2, 3, -4]], np.float32)
    with runtimes.open(path) as runtime:
        direct = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(runtime.run({"x": x})["y"], direct.run(None, {"x": x})[0])
        traced = runtime.trace({"x": x})
        assert list(traced) == ["h", "y"]
        np.testing.assert_array_equal(traced["h"].value, x @ np.arange(16, dtype=np.float32).reshape(4, 4))
        assert runtime.profile(runs=3, warmup=1).median_ms > 0
    assert {f.name: hashlib.sha256(f.read_bytes()).digest() for f in tmp_path.iterdir()} == before


def test_open_dimensions_are_fixed_by_shapes(tmp_path: Path) -> None:
    path = _onnx(tmp_path / "m.onnx", dims=("n", "k"))
    with pytest.raises(UnsupportedError, match="--shape x="):
        runtimes.open(path)
    with runtimes.open(path, shapes={"x": (2, 4)}) as runtime:
        assert runtime.interface.inputs[0].shape == (2, 4)
        assert runtime.run({"x": np.ones((2, 4), np.float32)})["y"].shape == (2, 4)


def test_values_become_constants(tmp_path: Path) -> None:
    with runtimes.open(_onnx(tmp_path / "m.onnx"), values={"x": np.ones((1, 4), np.float32)}) as runtime:
        assert runtime.interface.inputs == ()
        np.testing.assert_array_equal(runtime.run({})["y"], [[24, 28, 32, 36]])


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "noise.onnx").write_bytes(np.random.default_rng(0).bytes(500))
    with pytest.raises(ModelError, match="is not an ONNX model, or is cut off"):
        runtimes.open(tmp_path / "noise.onnx")
    (tmp_path / "half.tflite").write_bytes(made.add(tmp_path / "m.tflite", 0.1).read_bytes()[:200])
    with pytest.raises(Exception, match=r"LiteRT|damaged|died"):
        runtimes.open(tmp_path / "half.tflite")
    with pytest.raises(UsageError, match="cannot read"):
        runtimes.open(tmp_path / "none.onnx")
    with pytest.raises(UsageError, match="not a file"):
        runtimes.open(tmp_path)


def test_importing_runtimes_loads_no_outside_code() -> None:
    import subprocess
    import sys

    code = ("import sys, vitrify.verify, vitrify.runtimes.prepare, vitrify.runtimes.litert; "
            "import vitrify.runtimes.onnxruntime; "
            "print([m for m in ('onnx', 'onnxruntime', 'ai_edge_litert') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_model_in_memory(tmp_path: Path) -> None:
    from vitrify.tflite import read

    model = read(made.rounding(tmp_path / "m.tflite", (1, 4), 0.1))
    with runtimes.open(model) as runtime:
        folder = runtime.path.parent
        assert runtime.run({"x": np.zeros((1, 4), np.float32)})["y"].tolist() == [[0, 0, 0, 0]]
    assert not folder.exists()
