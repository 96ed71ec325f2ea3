"""Measurements of a board: read in the shapes that benchmarks print, kept, and correcting later estimates."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from measured_logs import CSV, DELEGATED, LITERT, SPACES, TEXT, WITHOUT_START

from vitrify import ops, tflite
from vitrify.core.errors import DataError, ModelError, UsageError
from vitrify.ir import DType, Graph, Model, Quantization, Tensor
from vitrify.pipeline.checking.check import check_file
from vitrify.pipeline.measuring import store
from vitrify.pipeline.measuring.correcting import factors_of, load_target
from vitrify.pipeline.measuring.measure import measure
from vitrify.pipeline.measuring.reading import read_file, read_run
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.results import Estimate
from vitrify.targets import load


class Log(NamedTuple):
    text: str
    ms: float | None
    threads: int | None
    side: str
    operators: list[tuple[str, float]]


LOGS = {
    "text": Log(TEXT, 4.3965, 2, "cpu", [("CONV_2D", 2.0), ("DEPTHWISE_CONV_2D", 2.2), ("CONV_2D", 0.19)]),
    "npu": Log(WITHOUT_START, 8.70866, None, "npu", [("EthosuDelegate", 8.272), ("SOFTMAX", 0.365)]),
    "spaces": Log(SPACES, None, None, "cpu", [("QUANTIZE", 0.093), ("CONV_2D", 3.64)]),
    "litert": Log(LITERT, 0.44, None, "cpu", [("FULLY_CONNECTED", 0.382)]),
    "csv": Log(CSV, None, None, "cpu", [("CONV_2D", 9.0), ("DEPTHWISE_CONV_2D", 3.0)]),
    "delegate": Log(DELEGATED, 4.3965, None, "npu", []),
    "nothing": Log("hello\n[node type] avg\n", None, None, "cpu", []),
    "broken rows": Log(TEXT.replace("2.200", "oops").replace("0.190", "-1"), 4.3965, 2, "cpu", [("CONV_2D", 2.0)]),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_what_a_benchmark_prints(log: Log) -> None:
    run = read_run(log.text)
    assert run.ms == (None if log.ms is None else pytest.approx(log.ms))
    assert (run.threads, run.side) == (log.threads, log.side)
    assert [(one.kind, one.ms) for one in run.operators] == log.operators


def test_names_stay_whole() -> None:
    assert [one.name for one in read_run(TEXT).operators] == ["[conv;a,  b]:0", "[dw]:1", "[late]:2"]
    assert read_run(CSV).operators[0].name == "[a,b]:0"
    assert [one.side for one in read_run(WITHOUT_START).operators] == ["npu", "cpu"]


REFUSED = {"missing": (None, "measure.no-file"), "nothing": (b"hello\n", "measure.nothing"),
           "bytes": (bytes(range(256)), "measure.nothing"), "large": (b"x" * ((16 << 20) + 1), "measure.too-large")}


@pytest.mark.parametrize(("content", "code"), REFUSED.values(), ids=REFUSED)
def test_files_that_tell_nothing_are_refused(content: bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_file(path)
    assert caught.value.findings[0].code == code


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(store.VARIABLE, raising=False)
    return tmp_path


def network(path: Path, size: int = 32) -> Path:
    """Two convolutions with a depthwise one between."""
    graph, scale = Graph("g"), Quantization.per_tensor(0.05)
    x = Tensor("x", DType.INT8, (1, size, size, 16), quantization=scale)
    graph.inputs.append(x)
    for count, (kind, shape) in enumerate((("conv", (16, 1, 1, 16)), ("depthwise", (1, 3, 3, 16)),
                                           ("conv", (16, 1, 1, 16)))):
        op = ops.Conv2D() if kind == "conv" else ops.DepthwiseConv2D(depth_multiplier=1)
        weights = Tensor(f"w{count}", DType.INT8, shape, data=np.ones(shape, np.int8),
                         quantization=Quantization.per_tensor(0.01))
        bias = Tensor(f"b{count}", DType.INT32, (16,), data=np.zeros(16, np.int32),
                      quantization=Quantization.per_tensor(0.0005))
        y = Tensor(f"y{count}", DType.INT8, x.shape, quantization=scale)
        graph.add(op, [x, weights, bias], [y], name=f"n{count}")
        x = y
    graph.set_outputs([x])
    tflite.write(Model(graphs=[graph]), path)
    return path


def checked(model: Path) -> Estimate | None:
    return check_file(model, "imx95", DataOptions(), ConvertOptions(), rules_only=True).estimate


def test_a_log_of_operators_corrects_by_kind(workspace: Path) -> None:
    model = network(workspace / "m.tflite")
    (workspace / "log.txt").write_text(TEXT)
    found = measure(model, "imx93", workspace / "log.txt")
    assert (found.side, found.threads, found.measured_ms) == ("cpu", 2, pytest.approx(4.3965))
    assert [(part.kind, part.count, part.measured_ms) for part in found.parts] == [
        ("CONV_2D", 2, pytest.approx(2.19)), ("DEPTHWISE_CONV_2D", 1, pytest.approx(2.2))]
    assert found.error_before is not None
    assert found.error_after is not None
    assert found.error_after < 0.01 < found.error_before
    assert found.corrected_ms == pytest.approx(4.39, rel=0.01)
    assert found.error_of_others is None
    chip = load_target("imx93")
    conv, depthwise = (part.measured_ms / part.estimated_ms for part in found.parts if part.measured_ms)
    assert chip.correction("cpu", "CONV_2D") == pytest.approx(conv)
    assert chip.correction("cpu", "DEPTHWISE_CONV_2D") == pytest.approx(depthwise)
    assert min(conv, depthwise) < chip.correction("cpu", "ADD") < max(conv, depthwise)
    assert "corrected by 1 measurement in vitrify-measurements.json" in chip.told("a model")
    assert load_target("imx95").corrections == {}


def test_a_typed_in_latency_corrects_the_npu(workspace: Path) -> None:
    models = [network(workspace / f"m{size}.tflite", size) for size in (32, 64, 96)]
    before = checked(models[0])
    assert before is not None
    found = [measure(model, "imx95", ms=ms) for model, ms in zip(models, (2.0, 2.2, 2.6), strict=True)]
    assert [one.measurements for one in found] == [1, 2, 3]
    last = found[-1]
    assert last.error_before is not None
    assert last.error_after is not None
    assert last.error_of_others is not None
    assert last.error_after < last.error_before
    after = checked(models[0])
    assert after is not None
    assert after.latency_ms > before.latency_ms
    assert "corrected by 3 measurements" in after.source
    assert "corrected" not in before.source
    again = measure(models[0], "imx95", ms=1.9)
    assert again.measurements == 3


def test_measurements_of_other_facts_are_not_used(workspace: Path) -> None:
    model = network(workspace / "m.tflite")
    measure(model, "imx95", ms=2.0)
    kept = store.read()
    older = msgspec.structs.replace(kept.measurements[0], stamp="0" * 12, model="older.tflite")
    store.add(older)
    assert load_target("imx95").corrections == factors_of(kept.measurements)
    found = measure(model, "imx95", ms=2.1)
    assert [finding.code for finding in found.findings] == ["measure.older"]
    assert found.measurements == 1


def test_what_cannot_be_taken_in(workspace: Path) -> None:
    model = network(workspace / "m.tflite")
    with pytest.raises(UsageError, match="nothing says what it took"):
        measure(model, "imx95")
    with pytest.raises(UsageError, match="no latency"):
        measure(model, "imx95", ms=-1.0)
    with pytest.raises(UsageError, match="unknown target"):
        measure(model, "imx59", ms=1.0)
    graph = Graph("g")
    x, y = (Tensor(name, DType.FLOAT32, (1, 4)) for name in "xy")
    graph.inputs.append(x)
    graph.add(ops.Relu(), [x], [y], name="relu")
    graph.set_outputs([y])
    tflite.write(Model(graphs=[graph]), workspace / "float.tflite")
    with pytest.raises(ModelError, match="computes in float"):
        measure(workspace / "float.tflite", "imx95", ms=1.0)
    assert not store.place().exists()


def test_a_file_that_holds_no_measurements_is_named(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "other.json").write_text('{"version": 1, "colour": "red"}')
    monkeypatch.setenv(store.VARIABLE, str(workspace / "other.json"))
    with pytest.raises(DataError, match=r"other\.json does not hold measurements"):
        load_target("imx93")
    monkeypatch.delenv(store.VARIABLE)
    assert load_target("imx93") == load("imx93")


def test_operators_that_the_model_lacks_are_told(workspace: Path) -> None:
    model = network(workspace / "m.tflite")
    (workspace / "log.csv").write_text(CSV.replace("DEPTHWISE_CONV_2D", "TfLiteXNNPackDelegate"))
    found = measure(model, "imx93", workspace / "log.csv")
    assert [finding.code for finding in found.findings] == ["measure.other-operators"]
    assert "TfLiteXNNPackDelegate" in found.findings[0].headline
    assert [part.measured_ms for part in found.parts] == [pytest.approx(9.0), None]
