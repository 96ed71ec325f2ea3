"""What a file takes and gives: the lines of code in Python and C, a plain cast, and the other type on demand."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import vitrify as vt
from vitrify import runtimes, tflite
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.ops import FullyConnected, Softmax
from vitrify.quant import Recipe
from vitrify.results import QuantizationRow

Array = np.ndarray[Any, np.dtype[Any]]
MICRO_SPEECH = Path(__file__).parents[2] / ".cache/models/mltk_int8/tflite_micro_speech/tflite_micro_speech.tflite"
CLASSES, FEATURES = 5, 40
RANDOM = np.random.default_rng(11)
GOLDEN = RANDOM.random((64, FEATURES), np.float32)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same network with both types at its ends."""
    folder = tmp_path_factory.mktemp("contract")
    samples = np.random.default_rng(3).random((32, FEATURES), np.float32)
    found = {}
    for io in ("int8", "uint8"):
        graph = Graph()
        graph.inputs = [Tensor("x", DType.FLOAT32, (1, FEATURES))]
        kernel = np.random.default_rng(5).standard_normal((CLASSES, FEATURES)).astype(np.float32)
        bias = (-kernel.mean(axis=1) * FEATURES / 2).astype(np.float32)
        made = graph.add(FullyConnected(), [graph.inputs[0], Tensor("w", DType.FLOAT32, kernel.shape, data=kernel),
                                            Tensor("b", DType.FLOAT32, bias.shape, data=bias)], name="fc")
        graph.set_outputs([graph.add(Softmax(beta=1.0), [made.output], name="softmax").output])
        model = vt.quantize(Model([graph]), data=samples, recipe=Recipe(input_type=io, output_type=io))
        found[io] = folder / f"{io}.tflite"
        tflite.write(model, found[io])
    return found


def contract(file: Path) -> dict[str, QuantizationRow]:
    return {row.role: row for row in vt.check(file, "imx93", rules_only=True).contract}


def by_python(line: str, values: Array) -> Array:
    """What the line gives for ``x``."""
    space: dict[str, Any] = {"np": np, "x": values}
    exec(line, space)
    return np.asarray(space["q"])


def by_c(line: str, values: Array, folder: Path) -> Array:
    """The same of the line in C, compiled and run."""
    listed = ", ".join(f"{value!r}f" for value in map(float, values.reshape(-1)))
    source = folder / "line.c"
    source.write_text("#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n"
                      f"static const float given[] = {{{listed}}};\nint main(void) {{\n"
                      f"  for (int i = 0; i < {values.size}; i++) {{\n    float x = given[i];\n    {line}\n"
                      '    printf("%d\\n", (int)q);\n  }\n  return 0;\n}\n')
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", source, "-o", folder / "line", "-lm"], check=True)
    ran = subprocess.run([folder / "line"], check=True, capture_output=True, text=True)
    return np.array(ran.stdout.split(), np.int64).reshape(values.shape)


def classes(file: Path, given: Array) -> list[int]:
    with runtimes.open(file) as runtime:
        return [int(np.argmax(runtime.invoke_raw([one[None]])[0])) for one in given]  # type: ignore[attr-defined]


def test_the_lines_give_the_same_classes_with_both_types(files: dict[str, Path], tmp_path: Path) -> None:
    steps = {io: by_python(contract(file)["input"].python, GOLDEN) for io, file in files.items()}
    assert steps["int8"].dtype == np.int8
    assert (steps["uint8"].astype(int) - 128 == steps["int8"]).all()
    ids = {io: classes(file, steps[io]) for io, file in files.items()}
    assert ids["int8"] == ids["uint8"]
    assert len(set(ids["int8"])) > 2
    cast = classes(files["int8"], steps["uint8"].astype(np.int8))
    assert cast != ids["int8"]
    assert "200 into -56, where 72" in contract(files["int8"])["input"].cast


@pytest.mark.skipif(which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("io", ["int8", "uint8"])
def test_the_line_in_c_gives_what_the_one_in_python_gives(io: str, files: dict[str, Path], tmp_path: Path) -> None:
    row = contract(files[io])["input"]
    ends = np.array([[-9.0, 0.0, 9.0, 0.5]], np.float32)
    for values in (GOLDEN[:8], ends):
        assert (by_c(row.c, values, tmp_path) == by_python(row.python, values)).all()


@pytest.mark.parametrize(("io", "name"), [("int8", "unsigned-ends"), ("uint8", "signed-ends")])
def test_the_interface_is_rewritten_on_demand(io: str, name: str, files: dict[str, Path], tmp_path: Path) -> None:
    other = {"int8": "uint8", "uint8": "int8"}[io]
    target = tmp_path / "other.tflite"
    result = vt.check(files[io], "imx93", rules_only=True, fix=target, approximate=[name])
    assert result.fixes is not None
    assert {row.name: row.largest_error_lsb for row in result.fixes.rows}[name] == 0
    model, before = tflite.read(target), tflite.read(files[io])
    assert [t.dtype.label for t in (*model.main.inputs, *model.main.outputs)] == [other, other]
    assert [t.name for t in model.main.inputs] == [t.name for t in before.main.inputs]
    steps = [by_python(contract(file)["input"].python, GOLDEN) for file in (files[io], target)]
    assert classes(files[io], steps[0]) == classes(target, steps[1])
    back = tmp_path / "back.tflite"
    undo = {"int8": "signed-ends", "uint8": "unsigned-ends"}[io]
    vt.check(target, "imx93", rules_only=True, fix=back, approximate=[undo])
    assert len(tflite.read(back).main) == len(before.main)


@pytest.mark.skipif(not MICRO_SPEECH.is_file(), reason="the model is not here")
def test_keyword_spotting(tmp_path: Path) -> None:
    """A published int8 model whose application has bytes: as uint8 it says the same, and a cast says something else."""
    target = tmp_path / "bytes.tflite"
    vt.check(MICRO_SPEECH, "imx93", rules_only=True, fix=target, approximate=["unsigned-ends"])
    golden = RANDOM.integers(0, 256, (16, 49, 40, 1), np.uint8)
    wanted = classes(MICRO_SPEECH, (golden.astype(int) - 128).astype(np.int8))
    assert classes(target, golden) == wanted
    real = golden.astype(np.float32) - 128
    row = contract(MICRO_SPEECH)["input"]
    assert classes(MICRO_SPEECH, by_python(row.python, real)) == wanted
    assert (by_c(row.c, real[:2], tmp_path) == by_python(row.python, real[:2])).all()
    assert classes(MICRO_SPEECH, golden.astype(np.int8)) != wanted
