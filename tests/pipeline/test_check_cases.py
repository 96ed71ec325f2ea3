"""What `check` says of small files as people bring them: each its own diagnosis, and the command that mends it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import schema_models as made
from vitrify import tflite
from vitrify.cli.main import call
from vitrify.core.findings import Severity
from vitrify.ir import DType, Quantization
from vitrify.pipeline.checking.check import check_file
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.results import CheckResult

NOTHING, PLAIN = DataOptions(), ConvertOptions()


def check(path: Path, target: str = "imx93", rules_only: bool = False) -> CheckResult:
    return check_file(path, target, NOTHING, PLAIN, rules_only=rules_only)


def convolution(file: made.Maker, x: int, name: str, *, weights: str = "int8", values: str = "int8",
                zero: int = 0) -> int:
    """A 1x1 convolution over the tensor ``x`` [1,8,8,4]; returns its output."""
    data = np.arange(16, dtype=np.dtype(weights)).reshape(4, 1, 1, 4)
    kernel = file.tensor(f"{name}/w", data.shape, weights, None if weights == "float32" else 0.1, zero, data=data)
    wide = "float32" if values == "float32" else "int32"
    bias = file.tensor(f"{name}/b", (4,), wide, None if wide == "float32" else 0.005, data=np.zeros(4, np.dtype(wide)))
    y = file.tensor(name, (1, 8, 8, 4), values, None if values == "float32" else 0.4)
    file.node(made.BUILTIN.CONV_2D, [x, kernel, bias], [y], "Conv2DOptions", version=5, strideH=1, strideW=1,
              dilationHFactor=1, dilationWFactor=1)
    return y


def hybrid(path: Path) -> Path:
    file = made.Maker()
    x = file.tensor("x", (1, 8, 8, 4), "float32")
    return file.write(path, [x], [convolution(file, x, "conv", values="float32")])


def whole(path: Path) -> Path:
    file = made.Maker()
    x = file.tensor("x", (1, 8, 8, 4), "float32")
    return file.write(path, [x], [convolution(file, x, "conv", weights="float32", values="float32")])


def island(path: Path) -> Path:
    """An integer graph with DEQUANTIZE, TANH, QUANTIZE in its middle."""
    file = made.Maker()
    x = file.tensor("x", (1, 8, 8, 4), "int8", 0.05)
    before = convolution(file, x, "before")
    real, out = file.tensor("real", (1, 8, 8, 4), "float32"), file.tensor("tanh", (1, 8, 8, 4), "float32")
    after = file.tensor("after", (1, 8, 8, 4), "int8", 0.05)
    file.node(made.BUILTIN.DEQUANTIZE, [before], [real], "DequantizeOptions", version=2)
    file.node(made.BUILTIN.TANH, [real], [out])
    file.node(made.BUILTIN.QUANTIZE, [out], [after], "QuantizeOptions")
    return file.write(path, [x], [convolution(file, after, "last")])


def float_ends(path: Path) -> Path:
    file = made.Maker()
    x, q = file.tensor("x", (1, 8, 8, 4), "float32"), file.tensor("q", (1, 8, 8, 4), "int8", 0.05)
    last = file.tensor("last", (1, 8, 8, 4), "float32")
    file.node(made.BUILTIN.QUANTIZE, [x], [q], "QuantizeOptions")
    file.node(made.BUILTIN.DEQUANTIZE, [convolution(file, q, "conv")], [last], "DequantizeOptions", version=2)
    return file.write(path, [x], [last])


def asymmetric(path: Path) -> Path:
    file = made.Maker()
    x = file.tensor("x", (1, 8, 8, 4), "int8", 0.05)
    return file.write(path, [x], [convolution(file, x, "conv", zero=3)])


def unsigned(path: Path) -> Path:
    file = made.Maker()
    x = file.tensor("x", (1, 8, 8, 4), "uint8", 0.05, 128)
    return file.write(path, [x], [convolution(file, x, "conv", weights="uint8", values="uint8", zero=8)])


def unsigned_ends(path: Path) -> Path:
    file = made.Maker()
    x, q = file.tensor("x", (1, 8, 8, 4), "uint8", 0.05, 128), file.tensor("q", (1, 8, 8, 4), "int8", 0.05)
    last = file.tensor("last", (1, 8, 8, 4), "uint8", 0.4, 128)
    file.node(made.BUILTIN.QUANTIZE, [x], [q], "QuantizeOptions", version=2)
    file.node(made.BUILTIN.QUANTIZE, [convolution(file, q, "conv")], [last], "QuantizeOptions", version=2)
    return file.write(path, [x], [last])


def wide(path: Path) -> Path:
    return made.squared_difference(path)


CASES: dict[str, tuple[Callable[[Path], Path], str, bool]] = {
    # name -> (file, the first diagnosis, whether the file is good as it is)
    "dynamic-range": (hybrid, "float.dynamic-range", False),
    "float": (whole, "float.whole-graph", False),
    "island": (island, "float.island", True),
    "float-ends": (float_ends, "float.border", True),
    "asymmetric": (asymmetric, "quantized.asymmetric-weights", False),
    "uint8": (unsigned, "quantized.uint8", True),
    "uint8-ends": (unsigned_ends, "quantized.uint8-ends", True),
    "int16": (wide, "quantized.int16", False)}


@pytest.mark.parametrize("name", CASES)
def test_each_trap_has_its_diagnosis_and_its_command_mends_it(name: str, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    build, code, good = CASES[name]
    monkeypatch.chdir(tmp_path)
    file = build(Path("my model.tflite"))
    before = check(file)
    assert before.ok == good
    assert [row.code for row in before.diagnoses] == [code]
    assert before.diagnoses[0].headline
    assert before.diagnoses[0].nodes
    command = shlex.split(before.diagnoses[0].command.replace("--data FOLDER", "--random-calibration"))
    assert command[0] == "vitrify"
    assert call([*command[1:], "-q"]) == 0
    after = check(Path(command[command.index("-o") + 1]))
    assert after.ok
    assert {v.placement for v in after.verdicts} <= {"npu", "folded"}
    assert not after.diagnoses


def test_one_cause_is_told_once_and_not_node_by_node(tmp_path: Path) -> None:
    found = check(hybrid(tmp_path / "m.tflite"))
    assert found.as_it_is is not None
    assert found.as_it_is.nodes == 0.0
    assert found.coverage.macs == 1.0
    assert found.form == "quantized on random values"
    assert sum(f.code.startswith("ethos-u.") for f in found.findings) == 0
    assert found.findings[0].code == "model.float"
    assert found.findings[0].severity is Severity.ERROR


def test_an_island_names_the_values_on_both_sides(tmp_path: Path) -> None:
    (row,) = check(island(tmp_path / "m.tflite"), rules_only=True).diagnoses
    assert "'before'" in row.headline
    assert "'after'" in row.headline
    assert row.nodes == 3      # with what changes to float and back
    assert (row.time_ms or 0) > 0


def test_all_broken_rules_of_a_node_are_told_with_values(tmp_path: Path) -> None:
    file = made.Maker()
    x, axes = file.tensor("x", (4, 5000, 2, 8), "int8", 0.05), file.tensor("axes", (1,), "int32",
                                                                        data=np.array([1], np.int32))
    y = file.tensor("y", (4, 1, 2, 8), "int8", 0.05)
    file.node(made.BUILTIN.MEAN, [x, axes], [y], "ReducerOptions", version=2, keepDims=True)
    found = check(file.write(tmp_path / "mean.tflite", [x], [y]))
    (verdict,) = found.verdicts
    rules = {rule.code: rule for rule in verdict.rules}
    assert set(rules) == {"ethos-u.batch", "ethos-u.mean-extent"}
    assert rules["ethos-u.mean-extent"].values["extent"] == 5000
    assert rules["ethos-u.mean-extent"].values["limit"] == 4096
    for rule in rules.values():
        assert rule.nearest
        assert rule.fix
        assert rule.source
        assert rule.confidence in ("documented", "observed", "inferred")
        assert rule.versions


def test_a_file_that_the_runtime_refuses_still_gets_verdicts(tmp_path: Path) -> None:
    found = check(made.add(tmp_path / "add.tflite", 1e-7))
    assert not found.ok
    assert "ops.multiplier" in {f.code for f in found.findings}
    assert {v.placement for v in found.verdicts} == {"npu"}
    assert found.estimate is None


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_other_targets(target: str, tmp_path: Path) -> None:
    found = check(island(tmp_path / "m.tflite"), target)
    assert found.target == target
    assert any(judge.startswith("Vela ") for judge in found.judges)
    assert not [f for f in found.findings if f.code == "check.disagreement"]


def test_a_model_is_judged_as_it_was_before_its_integer_form(tmp_path: Path) -> None:
    file = made.Maker()
    x, y = file.tensor("x", (1, 8, 8, 4)), file.tensor("y", (1, 8, 8, 1))
    axes = file.tensor("axes", (1,), "int32", data=np.array([3], np.int32))
    file.node(made.BUILTIN.MEAN, [x, axes], [y], "ReducerOptions", keepDims=True)      # becomes a product with weights
    found = check(file.write(tmp_path / "mean.tflite", [x], [y]))
    assert [row.nodes for row in found.diagnoses] == [1]
    assert found.as_it_is is not None
    assert (found.as_it_is.nodes, found.coverage.nodes) == (0.0, 1.0)


def test_rules_alone_ask_nobody_else(tmp_path: Path) -> None:
    found = check(island(tmp_path / "m.tflite"), rules_only=True)
    assert found.judges == ["rules"]
    assert found.estimate is None
    assert found.coverage.time is None
    assert found.coverage.macs == 1.0


def test_a_free_dimension_is_fixed_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = made.Maker()
    x = file.tensor("x", (1, 8, 8, 4), "int8", 0.05)
    y = convolution(file, x, "conv")
    for tensor in (x, y):
        file.graph.tensors[tensor].shapeSignature = [-1, -1, 8, 4]
    found = check(file.write(Path("free.tflite"), [x], [y]))
    assert [row.code for row in found.diagnoses] == ["shape.free"]
    command = found.diagnoses[0].command.split()
    assert call([*command[1:], "-q"]) == 0
    after = check(Path(command[-1]))
    assert {v.placement for v in after.verdicts} == {"npu"}


def test_a_free_batch_needs_nothing(tmp_path: Path) -> None:
    file = made.Maker()
    x = file.tensor("x", (1, 8, 8, 4), "int8", 0.05)
    y = convolution(file, x, "conv")
    file.graph.tensors[x].shapeSignature = [-1, 8, 8, 4]
    found = check(file.write(tmp_path / "free.tflite", [x], [y]))
    assert found.ok
    assert not found.diagnoses


def test_ten_thousand_nodes(tmp_path: Path) -> None:
    file = made.Maker()
    x = file.tensor("x", (1, 4, 4, 4), "int8", 0.05)
    y = x
    for index in range(10_000):
        y2 = file.tensor(f"y{index}", (1, 4, 4, 4), "int8", 0.05)
        file.node(made.BUILTIN.ROUND if index % 50 == 0 else made.BUILTIN.RELU, [y], [y2])
        y = y2
    found = check(file.write(tmp_path / "long.tflite", [x], [y]), rules_only=True)
    assert len(found.verdicts) == 10_000
    assert sum(v.placement == "cpu" for v in found.verdicts) == 200
    assert len(found.partitions) == 400
    assert len(found.findings) < 20


def test_undoing_integers_keeps_weights_to_the_bit(tmp_path: Path) -> None:
    from vitrify.pipeline.steps import undo_integers

    model = tflite.read(island(tmp_path / "m.tflite"))
    stored = {t.name: (t.quantization or Quantization.per_tensor(1)).dequantize(t.data)
              for t in model.main.tensors() if t.data is not None and t.dtype is DType.INT8}
    undo_integers(model)
    weights = {t.name: t.data for t in model.main.tensors() if t.name in stored}
    assert {t.dtype for t in model.main.tensors()} == {DType.FLOAT32}
    assert [node.op.kind for node in model.main] == ["CONV_2D", "TANH", "CONV_2D"]
    for name, wanted in stored.items():
        np.testing.assert_array_equal(weights[name], wanted)


def test_python_can_fix(tmp_path: Path) -> None:
    import vitrify as vt

    found = vt.check(float_ends(tmp_path / "m.tflite"), "imx93", fix=tmp_path / "fixed.tflite")
    assert found.fixes is not None
    assert (found.fixes.cpu_before, found.fixes.cpu_after) == (2, 0)
    assert vt.check(tmp_path / "fixed.tflite", "imx93", rules_only=True).coverage.nodes == 1.0


def test_what_is_wrong_with_the_integer_form_of_a_float_model_is_told_too(tmp_path: Path,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = made.Maker()
    x, y = file.tensor("x", (4, 8, 8, 4)), file.tensor("y", (4, 1, 1, 4))
    axes = file.tensor("axes", (2,), "int32", data=np.array([1, 2], np.int32))
    file.node(made.BUILTIN.MEAN, [x, axes], [y], "ReducerOptions", keepDims=True)
    found = check(file.write(Path("mean.tflite"), [x], [y]))
    rows = {row.code: row for row in found.diagnoses}
    assert set(rows) == {"float.whole-graph", "shape.batch"}
    assert found.coverage.nodes == 0.0
    words = rows["shape.batch"].command.replace("--data FOLDER", "--random-calibration").split()
    assert "--fix" in words
    assert call([*words[1:], "--rules-only", "-q"]) == 0      # one mean alone is not worth a call of the NPU
    assert check(Path(words[-1]), rules_only=True).coverage.nodes == 1.0


def test_a_model_that_cannot_be_quantized_is_judged_as_it_is(tmp_path: Path) -> None:
    file = made.Maker()
    x, y = file.tensor("x", (1, 4)), file.tensor("y", (1, 4))
    zero = file.tensor("zero", (1,), data=np.zeros(1, np.float32))
    file.node(made.BUILTIN.DIV, [x, zero], [y], "DivOptions")      # infinities, whatever goes in
    found = check(file.write(tmp_path / "div.tflite", [x], [y]))
    assert not found.ok
    assert found.coverage.nodes == 0.0
    assert [v.operator for v in found.verdicts] == ["DIV"]


def test_variables_are_named_and_become_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              model_file: Callable[[str], Path]) -> None:
    file = model_file("micro_wakeword_int8/okay_nabu.tflite")
    monkeypatch.chdir(tmp_path)
    before = check(file)
    assert before.diagnoses[0].code == "graph.variables"
    assert not [row for row in before.diagnoses if row.code == "quantized.uint8-ends"]
    assert call([*shlex.split(before.diagnoses[0].command)[1:], "-q"]) == 0
    after = check(next(tmp_path.glob("*_fixed.tflite")))
    assert [verdict for verdict in after.verdicts if verdict.placement == "cpu"] == []
