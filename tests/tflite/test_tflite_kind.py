"""What a file holds is told from its content; names do not matter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tflite_runs
import tflite_small as small

from vitrify import ops
from vitrify.cli.main import call
from vitrify.core.errors import ModelError, UsageError
from vitrify.ir import DType, Model, Tensor
from vitrify.pipeline.checking.check import check_file
from vitrify.pipeline.compiling.compile import compile_file
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.tflite import Kind, choose, classify, contents, float_operators, operator_counts, read, transposes, write

VARIANTS: dict[str, tuple[Callable[[], Model], Kind, str]] = {
    "float": (small.conv_model, Kind.FLOAT32, "float32: 1 operator, all float; float32 in, float32 out"),
    "float16": (lambda: small.float16_weights(small.conv_model()), Kind.FLOAT16,
                "float16: 1 weight stored as float16, 1 operator compute in float; float32 in, float32 out"),
    "dynamic_range": (lambda: small.integer_weights(small.conv_model()), Kind.DYNAMIC_RANGE,
                      "dynamic-range: 1 weight stored as integers, but 1 operator compute in float; float32 in, "
                      "float32 out"),
    "int8": (lambda: small.conv_model(DType.INT8), Kind.INT8, "int8: 1 operator, all 8-bit; int8 in, int8 out"),
    "int8_float_io": (lambda: small.float_ends(small.conv_model(DType.INT8)), Kind.INT8_FLOAT_IO,
                      "int8-float-io: 1 operator, all 8-bit, but float32 in, float32 out"),
    "int16x8": (lambda: small.conv_model(DType.INT16), Kind.INT16X8,
                "int16x8: 1 operator, all 16-bit; int16 in, int16 out"),
    "mixed": (lambda: small.float_tail(small.conv_model(DType.INT8)), Kind.MIXED,
              "mixed: operators by activations: 1 8-bit, 1 float; float32 in, float32 out"),
    "int16_and_int8": (lambda: small.int8_tail(small.conv_model(DType.INT16)), Kind.INT8_INT16,
                       "int8-int16: operators by activations: 1 8-bit, 1 16-bit; int16 in, int8 out"),
    "compiled": (small.compiled, Kind.COMPILED,
                 "compiled: 1 ethos-u graph by Vela for Arm Ethos-U; nothing beside it; int8 in, int8 out"),
}
MISLEADING = {"float": "a_full_integer_quant", "float16": "best_int8", "dynamic_range": "model_int8",
              "int8": "zz_float32", "int8_float_io": "model_float16", "int16x8": "model_full_int8"}
REAL = {
    "mltk_int8/keyword_spotting_alexa/keyword_spotting_alexa.tflite": (Kind.INT8, {"CONV_2D": 28}, 0),
    "mltk_int8/visual_wake_words/visual_wake_words.tflite": (Kind.INT8_FLOAT_IO, {"CONV_2D": 14}, 0),
    "mltk_int8/rock_paper_scissors/rock_paper_scissors.float32.tflite": (Kind.FLOAT32, {"CONV_2D": 3}, 10),
    "micro_wakeword_int8/okay_nabu.tflite": (Kind.INT8, {"READ_VARIABLE": 6}, 0),
    "mediapipe_selfie/selfie_segmentation.tflite": (Kind.FLOAT16, {"HARD_SWISH": 11}, 136),
    "mediapipe_face/face_detection_full_range_sparse.tflite": (Kind.FLOAT16, {"DENSIFY": 46}, 160),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_kind(name: str, tmp_path: Path) -> None:
    make, kind, sentence = VARIANTS[name]
    write(make(), tmp_path / "model.tflite")
    model = read(tmp_path / "model.tflite")
    assert classify(model) is kind
    assert str(contents(model)) == sentence


@pytest.mark.parametrize("name", [n for n in VARIANTS if n != "compiled"])
def test_variant_runs(name: str, tmp_path: Path) -> None:
    """The variants are models that LiteRT takes, not only graphs that we call so."""
    write(VARIANTS[name][0](), tmp_path / "model.tflite")
    assert len({*tflite_runs.outputs(tmp_path / "model.tflite")}) == 2


@pytest.mark.models
@pytest.mark.parametrize("name", REAL)
def test_kind_of_real_model(name: str, model_file: Callable[[str], Path]) -> None:
    kind, some, floating = REAL[name]
    model = read(model_file(name))
    assert classify(model) is kind
    counts = operator_counts(model.main)
    assert {k: counts[k] for k in some} == some
    assert len(float_operators(model.main)) == floating
    assert transposes(model.main) == []


def test_choice_ignores_names(tmp_path: Path) -> None:
    for variant, name in MISLEADING.items():
        write(VARIANTS[variant][0](), tmp_path / f"{name}.tflite")
    (tmp_path / "broken_int8.tflite").write_bytes(b"no model")
    choice = choose(tmp_path)
    assert choice.best == tmp_path / "zz_float32.tflite"
    assert [c.path.stem for c in choice.candidates[:2]] == ["zz_float32", "model_float16"]
    assert [c.suits for c in choice.candidates] == [True, True] + [False] * 5
    assert choice.candidates[-1].reason.startswith("not a TFLite model")
    assert str(choice).splitlines()[0] == "take zz_float32.tflite"


def test_no_choice(tmp_path: Path) -> None:
    write(small.conv_model(), tmp_path / "model_int8.tflite")
    choice = choose([tmp_path / "model_int8.tflite"])
    assert choice.best is None
    assert str(choice).splitlines() == [
        "no file here suits an int8 NPU",
        "  model_int8.tflite: float32: 1 operator, all float; float32 in, float32 out "
        "(it computes in float: quantize it)"]


@pytest.mark.parametrize("where", ["", "nowhere"])
def test_folder_without_models(where: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \.tflite file in"):
        choose(tmp_path / where)


def test_a_node_that_reads_an_unpacked_constant_only_is_not_float() -> None:
    model = small.float16_weights(small.conv_model(DType.INT8))
    graph = model.main
    conv = graph.nodes[1]
    unpacked = conv.input(1)
    graph.set_input(conv, 1, small.conv_model(DType.INT8).main.nodes[0].input(1))
    graph.add(ops.Cast(out_data_type=DType.INT32.value), [unpacked], [Tensor("cast", DType.INT32, unpacked.shape)])
    assert float_operators(graph) == []
    assert classify(model) is Kind.INT8


def test_a_float16_constant_of_no_operator_does_not_count() -> None:
    model = small.conv_model()
    model.main.inputs.append(small.constant("spare", np.zeros(3, np.float16)))
    assert classify(model) is Kind.FLOAT32


@pytest.mark.parametrize("kind", ["float", "float16", "dynamic_range"])
@pytest.mark.parametrize("command", ["compile", "check"])
def test_what_is_advised_takes_the_file(kind: str, command: str, tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    write(VARIANTS[kind][0](), file)
    if command == "check":
        found = check_file(file, "imx93", DataOptions(), ConvertOptions())
        assert not found.ok
        finding = found.findings[0]
    else:
        with pytest.raises(ModelError) as told:
            compile_file(file, "imx93", tmp_path / "out.tflite")
        (finding,) = told.value.findings
    assert finding.help.startswith(f"vitrify quantize {file}")
    line = finding.help.replace("--data FOLDER", "--random-calibration").split()[1:]
    assert call([*line[:-1], str(tmp_path / line[-1]), "-q"]) == 0
