"""What `check` says of files for chips whose compilers are closed, with the cases that people met there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import schema_models as made
from vitrify.cli.main import call
from vitrify.pipeline.checking.check import check_file
from vitrify.pipeline.checking.compiled import check_compiled
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.results import CheckResult
from vitrify.targets import load


def check(path: Path, target: str, rules_only: bool = True) -> CheckResult:
    return check_file(path, target, DataOptions(), ConvertOptions(), rules_only=rules_only)


def values(file: made.Maker, name: str, *shape: int) -> int:
    return file.tensor(name, shape, "int8", 0.05)


def add(file: made.Maker, x: int, name: str, *shape: int) -> int:
    y = values(file, name, *shape)
    file.node(made.BUILTIN.ADD, [x, x], [y], "AddOptions", version=2)
    return y


def resized(path: Path, before: int, after: int, centred: bool) -> Path:
    """Nearest neighbours between two ADDs."""
    file = made.Maker()
    x = values(file, "x", 1, before, before, 8)
    first = add(file, x, "first", 1, before, before, 8)
    size = file.tensor("size", (2,), "int32", data=np.array([after, after], np.int32))
    big = values(file, "big", 1, after, after, 8)
    file.node(made.BUILTIN.RESIZE_NEAREST_NEIGHBOR, [first, size], [big], "ResizeNearestNeighborOptions", version=3,
              halfPixelCenters=centred)
    return file.write(path, [x], [add(file, big, "last", 1, after, after, 8)])


def packed(path: Path) -> Path:
    """PACK of two int8 values in the middle, and a detector's post-processing at the end."""
    file = made.Maker()
    x = values(file, "x", 4, 8)
    one, other = add(file, x, "one", 4, 8), add(file, x, "other", 4, 8)
    both = values(file, "both", 2, 4, 8)
    file.node(made.BUILTIN.PACK, [one, other], [both], "PackOptions", version=2, valuesCount=2, axis=0)
    last, found = add(file, both, "last", 2, 4, 8), values(file, "found", 1, 4)
    file.node(made.BUILTIN.CUSTOM, [last], [found], custom="TFLite_Detection_PostProcess")
    return file.write(path, [x], [found])


def codes(result: CheckResult) -> dict[str, list[str]]:
    return {row.node: [rule.code for rule in row.rules] for row in result.verdicts if row.placement == "cpu"}


@pytest.mark.parametrize(("after", "centred", "cpu"), [(16, True, True), (20, True, True), (16, False, False)])
def test_nearest_neighbours_with_centred_pixels_are_declined(after: int, centred: bool, cpu: bool,
                                                             tmp_path: Path) -> None:
    found = check(resized(tmp_path / "resize.tflite", 8, after, centred), "imx8mp")
    assert list(codes(found).values()) == ([["vip8000.half-pixel"]] if cpu else [])
    assert len([part for part in found.partitions if part.placement == "npu"]) == (2 if cpu else 1)


def test_pack_cuts_the_graph_and_a_custom_tail_does_not(tmp_path: Path) -> None:
    found = check(packed(tmp_path / "ssd.tflite"), "imx8mp")
    assert list(codes(found).values()) == [["vip8000.no-pack"], ["vip8000.custom-operator"]]
    severity = {finding.code: finding.severity.value for finding in found.findings}
    assert severity["vip8000.no-pack"] == "warning"
    assert severity["vip8000.custom-operator"] == "info"
    assert [part.placement for part in found.partitions] == ["npu", "cpu", "npu", "cpu"]
    custom = next(f for f in found.findings if f.code == "vip8000.custom-operator")
    assert "TFLite_Detection_PostProcess" in custom.headline


def block(path: Path, size: int) -> Path:
    """The widest part of MobileNetV2: 96 channels at half the size, depthwise."""
    file = made.Maker()
    x = values(file, "x", 1, size, size, 96)
    weights = file.tensor("w", (1, 3, 3, 96), "int8", 0.01, data=np.ones((1, 3, 3, 96), np.int8))
    bias = file.tensor("b", (96,), "int32", 0.0005, data=np.zeros(96, np.int32))
    y = values(file, "y", 1, size, size, 96)
    file.node(made.BUILTIN.DEPTHWISE_CONV_2D, [x, weights, bias], [y], "DepthwiseConv2DOptions", version=3,
              strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1, depthMultiplier=1)
    return file.write(path, [x], [y])


@pytest.mark.parametrize(("size", "told"), [(112, False), (113, True), (160, True)])
def test_sizes_at_which_a_conversion_fell_apart_are_told(size: int, told: bool, tmp_path: Path) -> None:
    found = check(block(tmp_path / "block.tflite", size), "imx95")
    assert any(finding.code == "neutron.size-cliff" for finding in found.findings) == told
    assert found.coverage.nodes == 1.0, "it is told, and not counted"
    assert "neutron.size-cliff" not in {f.code for f in check(block(tmp_path / "b.tflite", size), "imxrt700").findings}


def hybrid(path: Path) -> Path:
    """A dynamic-range file: float values, int8 weights."""
    file = made.Maker()
    x, y = file.tensor("x", (1, 8)), file.tensor("y", (1, 4))
    weights = file.tensor("w", (4, 8), "int8", 0.01, data=np.ones((4, 8), np.int8))
    file.node(made.BUILTIN.FULLY_CONNECTED, [x, weights, -1], [y], "FullyConnectedOptions", version=9)
    return file.write(path, [x], [y])


@pytest.mark.parametrize("target", ["imx95", "imxrt700", "mcxn947"])
def test_a_dynamic_range_file_gives_no_graph_and_one_cause(target: str, tmp_path: Path) -> None:
    found = check(hybrid(tmp_path / "hybrid.tflite"), target)
    assert found.as_it_is is not None
    assert found.as_it_is.nodes == 0.0
    assert [row.code for row in found.diagnoses] == ["float.dynamic-range"]
    assert "neutron.float-tensor" not in {finding.code for finding in found.findings}, "told once, by the diagnosis"


def test_without_the_sdk_the_command_for_later_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = resized(tmp_path / "m.tflite", 8, 16, False)
    (later,) = (f for f in check(file, "imx95").findings if f.code == "check.not-compiled")
    assert later.headline == "verdict by rules; compile not possible here for imx95"
    assert f"neutron-converter --input {file} --output m_neutron.tflite --target imx95" in later.help
    (board,) = (f for f in check(file, "imx8mp").findings if f.code == "check.not-compiled")
    assert "on the board" in board.why


@pytest.mark.parametrize(("kind", "target", "fits"), [
    ("NeutronGraph", "imx95", True), ("NeutronGraph", "mcxn947", True), ("NeutronGraph", "imx93", False),
    ("NeutronGraph", "imx8mp", False), ("ethos-u", "imx95", False), ("ethos-u", "imx93", True)])
def test_compiled_files_are_recognized(kind: str, target: str, fits: bool, tmp_path: Path) -> None:
    file = made.Maker()
    x, y, z = (values(file, name, 1, 8) for name in "xyz")
    file.node(made.BUILTIN.CUSTOM, [x], [y], custom=kind)
    file.node(made.BUILTIN.LOGISTIC, [y], [z], version=2)
    found = check_compiled(file.write(tmp_path / "c.tflite", [x], [z]), load(target))
    assert found is not None
    assert [row.placement for row in found.verdicts] == ["npu", "cpu"]
    assert found.findings[0].severity.value == ("info" if fits else "warning")
    assert ("runs none of it" in found.findings[0].headline) != fits


def test_json_says_how_sure_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = resized(tmp_path / "m.tflite", 8, 24, False)
    assert call(["check", str(file), "--target", "imx95", "--rules-only", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["coverage"]["unsure_nodes"] == pytest.approx(1 / 3)
    assert answer["coverage"]["unsure_time"] > 0
    assert {row["node"]: (row["placement"], row["confidence"]) for row in answer["verdicts"]}["big"] == (
        "cpu", "inferred")
    assert all(row["source"] for row in answer["verdicts"])
    assert answer["estimate"]["low_ms"] < answer["estimate"]["latency_ms"] < answer["estimate"]["high_ms"]


def test_the_text_says_how_sure_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = resized(tmp_path / "m.tflite", 8, 24, False)
    call(["check", str(file), "--target", "imx95", "--rules-only"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "inferred, or unknown and counted as the CPU's: 33.3% of the nodes" in shown
    assert "of the estimated time" in shown
    assert "not a measurement" in shown
