"""PyTorch files through the program: converted, looked into, built, and refused in words."""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vitrify as vt
from vitrify.core.errors import UnsupportedError, UsageError, VitrifyError
from vitrify.results import InspectResult

torch = pytest.importorskip("torch", reason="PyTorch is not installed (TORCH=no)")
pytest.importorskip("onnxscript", reason="onnxscript is not installed (TORCH=no)")

import torch_makers as makers  # noqa: E402  needs PyTorch

TorchFile = Callable[[str], Path]
IMAGE = np.linspace(-1, 1, 3 * 32 * 32, dtype=np.float32).reshape(1, 3, 32, 32)


def _wanted() -> np.ndarray:
    with torch.no_grad():
        found: np.ndarray = makers.small()(torch.from_numpy(IMAGE)).numpy()
    return found


def _equals_pytorch(path: Path) -> None:
    (found,) = vt.run(path, {"image": IMAGE}).values()
    np.testing.assert_allclose(found, _wanted(), rtol=1e-5, atol=1e-6)


def test_program_is_converted_with_the_names_of_its_modules(torch_file: TorchFile, tmp_path: Path) -> None:
    source = torch_file("small.pt2")
    result = vt.convert(source, tmp_path / "small.tflite")
    (told,) = [finding for finding in result.findings if finding.code == "torch.exported"]
    assert told.where == "small.pt2"
    assert "by torch.export" in told.headline
    assert result.transposes == 0
    from vitrify import tflite

    names = [node.name for node in tflite.read(tmp_path / "small.tflite").main]
    assert any(name.startswith("stem.1/node_Conv") for name in names), names
    assert "head/node_linear" in names
    _equals_pytorch(tmp_path / "small.tflite")


def test_open_dimensions_are_fixed_by_name(torch_file: TorchFile) -> None:
    path = torch_file("dynamic.pt2")
    shape = vt.inspect(path).inputs[0].shape
    assert shape[1] == 3
    assert shape[3] == 32
    model = vt.load(path, dims={str(shape[2]): 48})
    assert model.interface is not None
    assert model.interface.inputs[0].shape == (1, 3, 48, 32)
    (told,) = [finding for finding in model.extras["findings"] if finding.code == "torch.open-dim"]
    assert f"dimension 0 of 'image' ({shape[0]}) is 1" in told.headline


def test_a_dimension_against_a_shape(torch_file: TorchFile) -> None:
    path = torch_file("dynamic.pt2")
    height = str(vt.inspect(path).inputs[0].shape[2])
    with pytest.raises(UsageError, match=rf"--dim {height}=48 and --shape image=1,3,40,32 contradict"):
        vt.load(path, dims={height: 48}, shapes={"image": (1, 3, 40, 32)})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "more", "text"), [
    ("small.pt2", {"shapes": {"image": (1, 3, 48, 48)}}, r"does not fit input 'image' of small.pt2"),
    ("small.pt2", {"dims": {"width": 3}}, r"no dimension 'width'; none is open in this program"),
    ("small.pt2", {"shapes": {"image": (1, 32, 32)}}, r"\[1,32,32\] does not fit .* it is \[1,3,32,32\]"),
    ("dynamic.pt2", {"dims": {"batch": 3}},
     r"no dimension 'batch'; the open ones are 's\d+' \(dimension 0 of 'image'\)[\s\S]*--shape image=N,3,N,32"),
    ("dynamic.pt2", {"shapes": {"image": (1, 3, 96, 32)}},
     r"not exported for image \[1,3,96,32\]: it needs dimension 2 of 'image' to be at most 64\n"),
    ("script.pt", {}, r"does not say which shape its input 'image' has"),
    ("script.pt", {"dims": {"width": 3}}, r"no dimension 'width'; those of TorchScript"),
    ("script.pt", {"shapes": {"x": (1, 3)}}, r"there is no input 'x'; the inputs are 'image'"),
    ("script.pt", {"shapes": {"": (1, 4, 32, 32)}}, r"script.pt does not run on image \[1,4,32,32\]"),
    ("weights.pt", {"trust": True}, r"holds 9 tensors of weights, and no network that they belong to"),
])
def test_refusals_say_what_helps(name: str, more: dict[str, object], text: str, torch_file: TorchFile) -> None:
    with pytest.raises(VitrifyError, match=text):
        vt.load(torch_file(name), **more)  # type: ignore[arg-type]


def test_script_is_converted_by_tracing(torch_file: TorchFile) -> None:
    model = vt.load(torch_file("script.pt"), shapes={"": (1, 3, 32, 32)})
    (found,) = vt.run(model, {"image": IMAGE}).values()
    np.testing.assert_allclose(found, _wanted(), rtol=1e-5, atol=1e-6)


def test_trusted_pickle_is_converted(torch_file: TorchFile, tmp_path: Path) -> None:
    result = vt.convert(torch_file("module.pt"), tmp_path / "module.tflite", trust=True, shapes={"": (1, 3, 32, 32)})
    assert result.findings[0].code == "torch.exported"
    _equals_pytorch(tmp_path / "module.tflite")


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("name", ["weights.pt", "old.pth", "training.pth"])
def test_weights_alone_are_told_before_anything_is_loaded(name: str, trust: bool, torch_file: TorchFile) -> None:
    with pytest.raises(UnsupportedError, match="tensors of weights, and no network") as caught:
        vt.load(torch_file(name), trust=trust)
    assert caught.value.findings[0].code == "torch.only-weights"
    assert "vt.load(module.eval(), (example,))" in str(caught.value)
    assert "--trust" not in str(caught.value)


@pytest.mark.parametrize("name", ["module.pt", "old_module.pth"])
def test_a_pickled_module_is_no_state_dict(name: str, torch_file: TorchFile) -> None:
    with pytest.raises(UsageError, match=r"Python pickle[\s\S]*torch_makers.Small") as caught:
        vt.load(torch_file(name))
    assert caught.value.findings[0].code == "torch.pickle"


def test_what_a_pickle_calls_is_no_weight(tmp_path: Path) -> None:
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(makers.Calls(eval, "1 + 1"), protocol=2))
    with pytest.raises(UsageError, match="Python pickle"):
        vt.load(tmp_path / "evil.pth")


@pytest.mark.slow
def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("vision_of_tomorrow.nn.tasks")
    kind = type("DetectionModel", (torch.nn.Linear,), {"__module__": module.__name__})
    module.DetectionModel = kind  # type: ignore[attr-defined]
    for name in ("vision_of_tomorrow", "vision_of_tomorrow.nn", module.__name__):
        monkeypatch.setitem(sys.modules, name, module)
    torch.save({"model": kind(2, 2)}, tmp_path / "best.pt")
    with pytest.raises(UsageError, match=r"needs the module vision_of_tomorrow[\s\S]*PYTHONPATH="):
        vt.load(tmp_path / "best.pt", trust=True)


@pytest.mark.slow
def test_weights_above_the_limit_stand_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vitrify.importers.torch import exporting
    from vitrify.importers.torch.memory import from_memory
    from vitrify.importers.torch.preparing import prepared
    from vitrify.pipeline.building.sources import external_files

    monkeypatch.setattr(exporting, "LARGEST_INSIDE", 100)
    program = torch.export.export(makers.small(), (torch.zeros(1, 3, 32, 32),))
    made = exporting.export_by("program", *prepared(from_memory(program, None, {})), tmp_path)
    assert external_files(made.path)
    assert made.decibels > 100
    assert made.is_supported


INSPECTED = {
    "small.pt2": ("PyTorch exported program", "5 nodes of 5 kinds, 276 parameters"),
    "script.pt": ("TorchScript", "give --shape image=1,..."),
    "module.pt": ("PyTorch pickle", "objects of torch_makers.Small"),
    "weights.pt": ("PyTorch pickle", "only weights, no network, float32 and 0.00 MB of tensors"),
    "old.pth": ("PyTorch pickle", "only weights, no network"),
}


@pytest.mark.parametrize("name", INSPECTED)
def test_inspect_needs_neither_trust_nor_pytorch(name: str, torch_file: TorchFile) -> None:
    kind, text = INSPECTED[name]
    found = vt.inspect(torch_file(name))
    assert isinstance(found, InspectResult)
    assert (found.format, found.kind) == ("pytorch", kind)
    assert text in found.summary
    if name == "small.pt2":
        assert [(row.name, row.shape, row.dtype) for row in found.inputs] == [("image", [1, 3, 32, 32], "float32")]
        assert found.operators["aten.conv2d"] == 1


@pytest.mark.slow
def test_build_goes_the_whole_way_and_is_resumed(torch_file: TorchFile, tmp_path: Path) -> None:
    source, folder = torch_file("small.pt2"), tmp_path / "run"
    first = vt.build(source, "imx93", random_calibration=True, output=folder)
    assert (folder / "small.onnx").exists()
    assert (folder / "small_vela.tflite").exists()
    assert "torch.exported" in [finding.code for finding in first.findings]
    assert "small.pt2 was exported by torch.export" in (folder / "report.html").read_text()
    again = vt.build(source, "imx93", random_calibration=True, output=folder)
    assert {"export", "import", "quantize", "compile"} <= set(again.reused)
