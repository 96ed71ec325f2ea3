"""The front door in Python: what is public, that it is lazy, and that it gives what the source model gives."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import vitrify as vt
from vitrify import ops
from vitrify.cli.build import build as commands_build
from vitrify.cli.quantize import quantize as commands_quantize
from vitrify.ir import DType, Graph, Tensor
from vitrify.ir.interface import InputBinding, Interface, OutputBinding, Part
from vitrify.results import ErrorRow

ModelFile = Callable[[str], Path]


def test_all_is_what_is_public() -> None:
    assert sorted(vt.__all__) == dir(vt)
    assert all(getattr(vt, name) is not None for name in vt.__all__)
    assert vt.__all__ == sorted(vt.__all__)


def test_a_package_of_the_same_name_hides_no_function() -> None:
    code = ("import vitrify as vt, vitrify.verify.metrics; print(callable(vt.verify)); "
            "from vitrify.verify.gate import Gate; from vitrify import verify; print(verify.__module__)")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.split() == ["True", "vitrify.api"], ran.stderr


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'vitrify' has no attribute 'frobnicate'"):
        _ = vt.frobnicate


def test_importing_is_quick_and_loads_nothing() -> None:
    code = ("import time; started = time.perf_counter(); import vitrify; spent = time.perf_counter() - started\n"
            "import sys; print(spent, [m for m in sys.modules if m in ('numpy', 'onnx', 'msgspec', 'rich')])")
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(3)]
    assert min(float(run.split()[0]) for run in runs) < 0.15
    assert all(run.split(maxsplit=1)[1] == "[]\n" for run in runs)


@pytest.mark.models
def test_the_whole_way_in_memory(model_file: ModelFile, tmp_path: Path) -> None:
    images = np.random.default_rng(5).random((6, 1, 1, 28, 28), np.float32)
    np.save(tmp_path / "images.npy", images)
    model = vt.load(model_file("digits_cnn/digits_cnn.onnx"))
    name = model.interface.inputs[0].name if model.interface else ""
    assert vt.convert(model, tmp_path / "float.tflite").output == str(tmp_path / "float.tflite")
    int8 = vt.quantize(model, data=tmp_path / "images.npy")
    assert int8.result.ok
    assert int8.result.quality is not None
    assert int8.result.quality.samples == 4
    assert int8.result.float_operators == 0
    wanted = vt.run(model_file("digits_cnn/digits_cnn.onnx"), {name: images[0]})
    for form, tolerance in ((model, 1e-4), (int8, 0.2)):
        given = vt.run(form, {name: images[0]})
        assert given.keys() == wanted.keys()
        for output in wanted:
            assert given[output].shape == wanted[output].shape
            assert np.abs(given[output] - wanted[output]).max() <= tolerance * np.abs(wanted[output]).max()
    checked = vt.check(int8, target="imx93")
    assert str(checked).startswith("imx93: 100.0% of the nodes on the NPU")
    compiled = vt.compile(int8, target="imx93", output=tmp_path / "digits_vela.tflite")
    assert compiled.placement.cpu == 0
    assert vt.inspect(tmp_path / "digits_vela.tflite").kind == "compiled"
    compared = vt.verify(model, int8, data=tmp_path / "images.npy", samples=2)
    assert compared.samples == 2
    assert isinstance(compared.stages[0].outputs[0], ErrorRow)


def joined() -> vt.Model:
    """Two branches of very different size that become one output."""
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (1, 8))
    graph.inputs.append(x)
    large = graph.add(ops.Mul(), [x, Tensor("k", DType.FLOAT32, (), data=np.array(1e4, np.float32))], name="large")
    small = graph.add(ops.Logistic(), [x], name="small")
    both = graph.add(ops.Concatenation(axis=1), [large.output, small.output], name="both")
    graph.set_outputs([both.output])
    return vt.Model([graph])


NOISE = np.random.default_rng(4).normal(size=(16, 8)).astype(np.float32)


def test_answers_that_are_not_good_are_told() -> None:
    good = vt.quantize(joined(), data=NOISE)
    assert good.result.ok
    with pytest.warns(vt.QualityWarning, match="8 of 8 .* no longer change"):
        kept = vt.quantize(joined(), data=NOISE, outputs="keep")
    assert not kept.result.ok
    assert "verify.dead_channels" in {finding.code for finding in kept.result.findings}


OPTIONS: dict[str, tuple[dict[str, object], Callable[[vt.QuantizedModel], bool]]] = {
    "io": ({"io": "uint8"}, lambda made: made.main.inputs[0].dtype is DType.UINT8),
    "effort": ({"effort": "best"}, lambda made: made.recipe.equalize),
    "preset": ({"preset": "recurrent"}, lambda made: made.recipe.calibrator == "minmax"),
    "calibrator": ({"calibrator": "minmax"}, lambda made: made.recipe.calibrator == "minmax"),
    "recipe": ({"recipe": vt.Recipe(percentile=99.0), "calibrator": "percentile"},
               lambda made: (made.recipe.percentile, made.recipe.calibrator) == (99.0, "percentile")),
    "goal": ({"target_quality": "sqnr>=20"}, lambda made: "quant.reached" in {f.code for f in made.result.findings}),
    "goal_of_the_recipe": ({"recipe": vt.Recipe(target_quality="sqnr>=20")},
                           lambda made: "quant.reached" in {f.code for f in made.result.findings}),
    "analyze": ({"analyze": True}, lambda made: made.result.analysis is not None),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_what_the_command_line_takes_python_takes(name: str) -> None:
    given, holds = OPTIONS[name]
    made = vt.quantize(joined(), data=NOISE, **given)  # type: ignore[arg-type]
    assert holds(made)
    assert made.result.ok


def test_python_has_all_options_of_the_command_line() -> None:
    elsewhere = {"output", "save_recipe", "seed", "json", "quiet", "io_layout", "anew",        # of files, and of load
                 "mean", "std", "fit", "color", "prepare", "shape", "dim", "value"}            # preprocess, shapes ...
    for command, function in ((commands_quantize, vt.quantize), (commands_build, vt.build)):
        missing = set(signature(command).parameters) - set(signature(function).parameters) - elsewhere
        assert not missing, f"{function.__name__} lacks {missing}"


@pytest.mark.parametrize(("given", "said"), [
    ({"io": "int4"}, "Invalid enum value 'int4'"),
    ({"calibrator": "best"}, "Invalid enum value 'best'"),
    ({"jobs": 0}, "jobs must be 1 or more, got 0"),
    ({"preset": "cnm"}, "there is no preset 'cnm'"),
    ({"recipe": vt.Recipe(), "effort": "best"}, "a Recipe and effort='best' were both given"),
    ({"target_quality": "sqnr>=20", "least_db": 20.0}, "least_db = 20 and sqnr>=20 are two goals"),
], ids=lambda value: str(value)[:40])
def test_options_that_are_none(given: dict[str, object], said: str) -> None:
    with pytest.raises(vt.VitrifyError, match=re.escape(said)):
        vt.quantize(joined(), data=NOISE, **given)  # type: ignore[arg-type]


def test_a_float_model_is_judged_as_it_is_and_quantized(model_file: ModelFile) -> None:
    model = vt.load(model_file("digits_cnn/digits_cnn.onnx"))
    found = vt.check(model, target="imx93")
    assert not found.ok
    assert found.as_it_is is not None
    assert (found.as_it_is.macs, found.coverage.macs) == (0.0, 1.0)
    assert [row.code for row in found.diagnoses] == ["float.whole-graph"]


def test_quantizing_without_data_is_refused(model_file: ModelFile) -> None:
    with pytest.raises(vt.VitrifyError, match="calibration needs samples, and none were given"):
        vt.quantize(model_file("digits_cnn/digits_cnn.onnx"))


@pytest.mark.parametrize(("ask", "said"), [
    (lambda: vt.quantize(joined()), "give data=FOLDER or arrays; random_calibration=True goes without"),
    (lambda: vt.quantize(joined(), data="photos", random_calibration=True), "either data or random_calibration=True"),
    (lambda: vt.verify(joined(), joined()), "random_inputs=True goes without"),
], ids=["calibration", "both", "comparison"])
def test_what_is_missing_is_told_in_words_of_python(ask: Callable[[], object], said: str) -> None:
    with pytest.raises(vt.VitrifyError) as told:
        ask()
    assert said in told.value.findings[0].help
    assert "--" not in str(told.value)


def test_a_compiled_model_is_named_and_runs_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = vt.quantize(joined(), data=NOISE)
    made.source = "far/off/two.onnx"
    assert vt.compile(made, "imx93").output == "two_vela.tflite"
    wanted = vt.run(made, {"x": NOISE[:1]})
    found = vt.run("two_vela.tflite", {"x": NOISE[:1]})
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)


def test_an_array_in_the_layout_of_the_file_is_told_how_to_turn(tmp_path: Path) -> None:
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (1, 4, 5, 3))
    graph.inputs.append(x)
    graph.set_outputs([graph.add(ops.Logistic(), [x], name="y").output])
    model = vt.Model([graph])
    model.interface = Interface(inputs=(InputBinding(name="x", shape=(1, 3, 4, 5), dtype="float32", position=0,
                                                     perm=(0, 2, 3, 1)),),
                                outputs=(OutputBinding(name="y", shape=(1, 4, 5, 3), dtype="float32",
                                                       parts=(Part(position=0),)),))
    array = np.zeros((1, 4, 5, 3), np.float32)
    with pytest.raises(vt.VitrifyError) as told:
        vt.run(model, {"x": array})
    (finding,) = told.value.findings
    assert "the file itself has [1,4,5,3] there" in finding.why
    assert "as its source model takes them, [1,3,4,5]" in finding.why
    assert "array.transpose(0, 3, 1, 2)" in finding.help
    vt.run(model, {"x": array.transpose(0, 3, 1, 2)})
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(vt.VitrifyError) as told:
        vt.quantize(model, data=tmp_path)
    assert "the file itself has [1,4,5,3] there" in told.value.findings[0].why
    assert "--prepare layout=nhwc" in told.value.findings[0].help


def test_codes_and_chips_are_told() -> None:
    assert vt.explain("ethos-u.stride").explanations[0].says
    assert "ethos-u.stride" in vt.explain().codes
    assert [row.name for row in vt.targets("imx93").targets] == ["imx93"]
    assert len(vt.targets().targets) > 5
    for ask in (vt.explain, vt.targets):
        with pytest.raises(vt.VitrifyError, match=r"no\.such\.name"):
            ask("no.such.name")
