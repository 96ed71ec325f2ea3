"""The same network from other exporters and converters, in other types, compiled; and files that are none of it.

``diff_files``: a small detector exported by PyTorch's two exporters (what they note about source lines taken out), and
what onnx2tf makes of the first; its TFLite file has place-holders for shapes it could not tell.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from diff_models import FILES, Maker, network
from sweep_models import residuals

import vitrify as vt
from vitrify import ops, tflite
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.results import DiffResult

ONE, OTHER = FILES / "one_exporter.onnx", FILES / "other_exporter.onnx"
CONVERTED = FILES / "other_converter.tflite"


def relations(result: DiffResult) -> dict[str, int]:
    return {name: count for name, count in result.counts.items() if name != "same"}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The exported network as float, int8 and compiled TFLite."""
    folder = tmp_path_factory.mktemp("forms")
    found = {name: folder / f"{name}.tflite" for name in ("float", "int8", "compiled")}
    vt.convert(ONE, found["float"])
    samples = [{"image": np.random.default_rng(n).normal(size=(1, 3, 32, 32)).astype(np.float32)} for n in range(4)]
    tflite.write(vt.quantize(ONE, data=samples), found["int8"])
    vt.compile(found["int8"], "imx93", found["compiled"])
    return found


def test_two_exporters_write_one_network() -> None:
    result = vt.diff(ONE, OTHER)
    assert relations(result) == {}
    assert result.counts == {"same": 60}
    assert not any(c.kind != "float-rounding" for row in result.nodes for c in row.changes)


def test_another_converter() -> None:
    result = vt.diff(ONE, CONVERTED)
    matched = [row for row in result.nodes if row.a and row.b]
    assert all(set(row.a_operators) == set(row.b_operators) for row in matched if row.relation != "split")
    assert [(row.a, row.b_operators) for row in matched if row.relation == "split"] == [
        ([f"/{block}/Split"], ["SLICE", "SLICE", "TRANSPOSE"]) for block in ("b1", "b2")]
    assert [row.a_operators for row in result.nodes if row.relation == "removed"] == [["RESHAPE"]]
    added = Counter(op for row in result.nodes if row.relation == "added" for op in row.b_operators)
    assert added["TRANSPOSE"] == 11
    assert not added.keys() & {"CONV_2D", "LOGISTIC", "MUL", "ADD", "RESIZE_NEAREST_NEIGHBOR"}
    assert "B has 13 TRANSPOSEs more (0, then 13)" in result.summary
    assert result.counts.get("changed", 0) == 0


def test_its_own_conversion_differs_in_layout_of_the_ends_alone(forms: dict[str, Path]) -> None:
    result = vt.diff(ONE, forms["float"])
    assert relations(result) == {}
    assert [c.kind for row in result.inputs for c in row.changes] == ["layout"]
    assert {row.how for row in result.sources} == {"kept", "split", "folded"}
    assert all(row.into for row in result.sources)


def test_its_quantization(forms: dict[str, Path]) -> None:
    result = vt.diff(forms["float"], forms["int8"])
    assert result.counts["quantized"] == 60
    assert relations(result).keys() <= {"quantized", "added"}
    added = [row for row in result.nodes if row.relation == "added"]
    assert all(row.b_operators == ["QUANTIZE"] and "quantize" in row.passes for row in added)
    assert result.summary[0].startswith("A is float32, B is int8")
    assert [c.kind for row in result.inputs for c in row.changes] == ["type"]


@pytest.mark.parametrize("form", ["float", "int8", "source"])
def test_what_was_compiled(forms: dict[str, Path], form: str) -> None:
    source = ONE if form == "source" else forms[form]
    result = vt.diff(source, forms["compiled"])
    assert relations(result).keys() == {"compiled"}
    assert sum(len(row.a) for row in result.nodes) == result.a.nodes
    assert all(row.b_operators == ["ethos-u"] for row in result.nodes)
    if form == "source":
        assert {row.how for row in result.sources} <= {"compiled", "folded"}


def test_compiled_on_both_sides(forms: dict[str, Path], tmp_path: Path) -> None:
    assert vt.diff(forms["compiled"], forms["compiled"]).equal
    other = tmp_path / "other.tflite"
    vt.compile(forms["int8"], "ethos-u65-512", other)
    result = vt.diff(forms["compiled"], other)
    assert (result.related, result.equal) == (True, False)
    assert {c.kind for row in result.nodes for c in row.changes} <= {"constant", "shape", "attribute"}


def test_operators_left_to_the_cpu_stand_beside_the_compiled_ones(tmp_path: Path) -> None:
    make = Maker()
    x = Tensor("image", DType.FLOAT32, (1, 8, 8, 8))
    make.graph.inputs = [x]
    first = make.op("relu", ops.Relu(), make.op("before", ops.Conv2D(), x, make.weights("w", 8, 3, 3, 8),
                                             make.weights("b", 8)))
    turned = make.op("gather", ops.Gather(axis=3), first, make.ints("order", 3, 1, 0, 2, 7, 5, 6, 4))
    make.graph.set_outputs([make.op("after", ops.Conv2D(), turned, make.weights("v", 4, 3, 3, 8),
                                    make.weights("c", 4))])
    data = [{"image": np.random.default_rng(0).normal(size=(1, 8, 8, 8)).astype(np.float32)}]
    tflite.write(vt.quantize(Model([make.graph]), data=data), tmp_path / "int8.tflite")
    vt.compile(tmp_path / "int8.tflite", "imx93", tmp_path / "vela.tflite")
    result = vt.diff(tmp_path / "int8.tflite", tmp_path / "vela.tflite")
    told = {tuple(row.a_operators): (row.relation, row.b_operators) for row in result.nodes}
    assert told[("GATHER",)] == ("same", ["GATHER"])
    assert sum(row.relation == "compiled" for row in result.nodes) == 2
    assert not {"added", "removed"} & result.counts.keys()


def test_why_one_works_and_the_other_does_not(forms: dict[str, Path]) -> None:
    told = vt.diff(forms["int8"], CONVERTED).summary
    assert told[0].startswith("A is int8")
    assert told[1:3] == ["B computes 77 operators in float, the other none", "input 'image': int8, then float32"]
    assert any(sentence.startswith("B has 13 TRANSPOSEs more") for sentence in told)


@pytest.mark.parametrize("shape", [(1, 3, 96, 96), (1, 3, 64, 96)], ids=["smaller", "not square"])
def test_another_size_is_no_other_network(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = residuals(tmp_path / "free.onnx", "n")
    result = vt.diff(vt.load(path, shapes={"image": (1, 3, 128, 128)}), vt.load(path, shapes={"image": shape}))
    assert relations(result).keys() == {"resized"}
    assert result.summary[0] == f"input 'image': [1, 128, 128, 3], then [1, {shape[2]}, {shape[3]}, 3]"


def test_another_batch_is_no_other_network() -> None:
    one, four = network(), network()
    for tensor in four.main.tensors():
        if not tensor.is_constant:
            tensor.shape = (4, *tensor.shape[1:])
    assert relations(vt.diff(one, four)).keys() == {"resized"}


def small(*names: str) -> Model:
    graph = Graph()
    graph.inputs = [Tensor("x", DType.FLOAT32, (1, 4))]
    last = graph.inputs[0]
    for name in names:
        last = graph.add(ops.Neg() if name == "neg" else ops.Abs(), [last], name=name).output
    graph.set_outputs([last])
    return Model([graph])


UNRELATED: dict[str, tuple[Any, Any, str]] = {
    "no nodes": (small(), small(), "A and B are the same"),
    "no nodes in B": (small("neg"), small(), "B has no nodes"),
    "another network": (network(), ONE, "A and B are different models"),
    "nothing in common": (small("neg"), ONE, "A and B are different models"),
}


@pytest.mark.parametrize(("a", "b", "said"), UNRELATED.values(), ids=UNRELATED)
def test_models_that_have_nothing_to_do_with_each_other(a: Any, b: Any, said: str) -> None:
    result = vt.diff(a, b)
    assert result.summary[0].startswith(said)
    assert result.related == (said == "A and B are the same")


BAD = {
    "missing": ("nothing.tflite", None, "file.missing", 2),
    "empty": ("empty.tflite", b"", "file.empty", 1),
    "text": ("text.onnx", b"hello, this is no model", "file.unknown", 1),
    "cut off": ("cut.tflite", CONVERTED.read_bytes()[:9000], "", 1),
    "damaged": ("damaged.tflite", CONVERTED.read_bytes()[:200] + bytes(400) + CONVERTED.read_bytes()[600:], "", 1),
}


@pytest.mark.parametrize(("name", "data", "code", "status"), BAD.values(), ids=BAD)
def test_bad_files(name: str, data: bytes | None, code: str, status: int, tmp_path: Path) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    for pair in ((path, CONVERTED), (CONVERTED, path)):
        with pytest.raises(vt.VitrifyError) as caught:
            vt.diff(*pair)
        assert code in caught.value.findings[0].code
        assert caught.value.exit_status == status
        assert name in str(caught.value)


def cli(*words: str | Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "vitrify", "diff", "-q", *map(str, words)], capture_output=True,
                          text=True, timeout=120)
    return done.returncode, done.stdout


def test_the_command(tmp_path: Path) -> None:
    copy = tmp_path / "copy.tflite"
    shutil.copy(CONVERTED, copy)
    assert cli(CONVERTED, copy, "--exit-code")[0] == 0
    assert cli(ONE, CONVERTED)[0] == 0
    status, out = cli(ONE, CONVERTED, "--exit-code", "--json")
    result = msgspec.json.decode(out, type=DiffResult)
    assert (status, result.ok, result.equal, result.command) == (1, False, False, "diff")
    assert sum(len(row.b) for row in result.nodes) == result.b.nodes
    text = cli(ONE, CONVERTED, "--all")[1]
    assert "% split SPLIT '/b1/Split' -> SLICE" in text
    assert "  Conv '/b1/one/c/Conv' kept: wa/b1/one/c/Conv_output_nhwc" in text


def test_a_compiled_file_whose_npu_operators_write_parts_of_one_tensor(tmp_path: Path) -> None:
    make = Maker()
    x = Tensor("image", DType.FLOAT32, (1, 16, 16, 8))
    make.graph.inputs = [x]

    def conv(name: str, read: Tensor, out: int) -> Tensor:
        weights, bias = make.weights(f"w_{name}", out, 3, 3, 8), make.weights(f"b_{name}", out)
        return make.op(name, ops.Conv2D(), read, weights, bias)

    first = conv("first", x, 8)
    parts = [conv(f"part{n}", make.op(f"turn{n}", ops.Gather(axis=3), first, make.ints(
        f"order{n}", 3, 1, 0, 2, 7, 5, 6, n)), 8) for n in range(3)]
    make.graph.set_outputs([make.op("joined", ops.Concatenation(axis=3), *parts)])
    data = [{"image": np.random.default_rng(0).normal(size=(1, 16, 16, 8)).astype(np.float32)}]
    tflite.write(vt.quantize(Model([make.graph]), data=data), tmp_path / "int8.tflite")
    vt.compile(tmp_path / "int8.tflite", "imx93", tmp_path / "vela.tflite")
    with pytest.raises(vt.VitrifyError):
        tflite.read(tmp_path / "vela.tflite")
    result = vt.diff(tmp_path / "int8.tflite", tmp_path / "vela.tflite")
    told = {name: (row.relation, row.b_operators) for row in result.nodes for name in row.a}
    assert [told[f"turn{n}"] for n in range(3)] == [("same", ["GATHER"])] * 3
    assert {told[name][0] for name in ("first", "part0", "part1", "part2")} == {"compiled"}
    assert "removed" not in result.counts
