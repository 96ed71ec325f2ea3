"""Hostile PyTorch files: nothing in them runs without the caller's trust, and they are refused in words."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vitrify as vt
from vitrify.core.errors import ModelError, UsageError, VitrifyError
from vitrify.core.isolation import Worker
from vitrify.importers.torch.checking import refuse_unsafe
from vitrify.importers.torch.kinds import kind_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed (TORCH=no)")
pytest.importorskip("onnxscript", reason="onnxscript is not installed (TORCH=no)")

import torch_makers as makers  # noqa: E402  needs PyTorch

TorchFile = Callable[[str], Path]


def _first(content: Any, key: str, value: str) -> None:
    """Set the first ``key`` found in a tree."""
    waiting = [content]
    while waiting:
        found = waiting.pop(0)
        if isinstance(found, dict):
            if isinstance(found.get(key), str):
                found[key] = value
                return
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
    raise AssertionError(key)


def _open_size(content: Any, expression: str) -> None:
    values = content["graph_module"]["graph"]["tensor_values"]
    values["image"]["sizes"][2] = {"as_expr": {"expr_str": expression, "hint": {"as_int": 32}}}


def _factory(content: Any) -> None:
    context = {"default_factory_module": "os", "default_factory_name": "system"}
    content["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = json.dumps(
        [1, {"type": "collections.defaultdict", "context": context}])


PROGRAMS: dict[str, tuple[Callable[[Any], None], str]] = {
    "function": (lambda c: _first(c, "target", "torch.os.system"), r"a call of 'torch.os.system'"),
    "attribute_of_operator": (lambda c: _first(c, "target", "torch.ops.aten.x.__class__.y"), r"a call of 'torch.ops.a"),
    "library": (lambda c: _first(c, "target", "torch.ops.load_library"), r"a call of 'torch.ops.load_library'"),
    "file": (lambda c: _first(c, "target", "torch.ops.aten.from_file.default"), r"a call of 'torch.ops.aten.from"),
    "getter": (lambda c: _first(c, "target", "_operator.methodcaller"), r"a call of '_operator.methodcaller'"),
    "extension": (lambda c: _first(c, "target", "#os:system"), r"a call of '#os:system'"),
    "expression": (lambda c: _open_size(c, "__import__('os').system('true')"), r"the expression \"__import__"),
    "attribute": (lambda c: _open_size(c, "s0.__class__"), r"the expression 's0.__class__'"),
    "known_word_called": (lambda c: _open_size(c, "eval(s0)"), r"the expression 'eval\(s0\)'"),
    "tower": (lambda c: _open_size(c, "9**9**9"), r"the expression '9\*\*9\*\*9'"),
    "long_expression": (lambda c: _open_size(c, "s0+" * 2000 + "s0"), r"the expression 's0\+s0"),
    "factory": (_factory, r"a class of Python"),
    "name": (lambda c: c["graph_module"]["graph"]["nodes"][0].update(name="x=1; import os"), r"the name 'x=1; import"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_with_more_than_tensors_is_refused(name: str, torch_file: TorchFile, tmp_path: Path) -> None:
    change, text = PROGRAMS[name]
    path = makers.with_json(torch_file("small.pt2"), tmp_path / "hostile.pt2", "models/model.json", change)
    with pytest.raises(UsageError, match=text):
        refuse_unsafe(path, "exported")


@pytest.mark.parametrize(("name", "kind"), [("small.pt2", "exported"), ("dynamic.pt2", "exported"),
                                            ("script.pt", "script")])
def test_honest_file_passes(name: str, kind: str, torch_file: TorchFile) -> None:
    assert kind_of(torch_file(name)) == kind
    refuse_unsafe(torch_file(name), kind)


def test_machine_code_in_a_program_is_refused(torch_file: TorchFile, tmp_path: Path) -> None:
    path = Path(shutil.copy(torch_file("small.pt2"), tmp_path / "aot.pt2"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("small/data/aotinductor/model/a.so", b"\x7fELF")
    with pytest.raises(UsageError, match=r"machine code, 'data/aotinductor/model/a.so'"):
        refuse_unsafe(path, "exported")


@pytest.mark.parametrize("call", ["torch.save(x, 'a')", "ops.aten.save(x, 'a')", "torch.from_file('a')"])
def test_script_that_uses_files_is_refused(call: str, torch_file: TorchFile, tmp_path: Path) -> None:
    path = makers.with_entry(torch_file("script.pt"), tmp_path / "hostile.pt", "code/__torch__/torch_makers.py",
                             lambda data: data.replace(b"return", f"{call}\n    return".encode(), 1))
    with pytest.raises(UsageError, match=r"with which it can read and write files"):
        refuse_unsafe(path, "script")


_STRANGE = {"traversal": "small/../../evil", "absolute": "/etc/evil", "folders": "other/x"}


def _damaged(torch_file: TorchFile, path: Path, how: str) -> None:
    content = torch_file("small.pt2").read_bytes()
    if how == "cut_off":
        path.write_bytes(content[:len(content) // 2])
        return
    path.write_bytes(content)
    with zipfile.ZipFile(path, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        if how == "bomb":
            with archive.open("small/data/zeros", "w", force_zip64=True) as stream:
                for _ in range(1100):
                    stream.write(bytes(1 << 20))
        else:
            archive.writestr(_STRANGE[how], b"x")


@pytest.mark.parametrize(("how", "text"), [
    ("cut_off", "is no whole ZIP archive"), ("traversal", "leads out of the archive"),
    ("absolute", "leads out of the archive"), ("folders", "do not stand in one folder"),
    ("bomb", "its compressed entries would give")])
def test_archive_of_no_pytorch_is_refused(how: str, text: str, torch_file: TorchFile, tmp_path: Path) -> None:
    path = tmp_path / "damaged.pt2"
    _damaged(torch_file, path, how)
    with pytest.raises(ModelError, match=text):
        vt.inspect(path)
    with pytest.raises(ModelError, match=text):
        refuse_unsafe(path, "exported")


def _calls(path: Path, folder: Path) -> dict[str, Callable[[], object]]:
    out = folder / "out.tflite"
    return {"load": lambda: vt.load(path), "convert": lambda: vt.convert(path, out), "run": lambda: vt.run(path, {}),
            "quantize": lambda: vt.quantize(path, random_calibration=True), "check": lambda: vt.check(path, "imx93"),
            "verify": lambda: vt.verify(path, path, random_inputs=True),
            "build": lambda: vt.build(path, "imx93", random_calibration=True, output=folder / "run")}


@pytest.mark.parametrize("name", ["evil.pt", "evil.pth", "plain.pt"])
def test_malicious_pickle_is_not_run_by_any_call(name: str, tmp_path: Path) -> None:
    witness, path = tmp_path / "witness", tmp_path / name
    path.write_bytes(makers.malicious(witness) if name == "plain.pt" else makers.malicious_archive(witness))
    for call, do in _calls(path, tmp_path).items():
        with pytest.raises(UsageError, match=r"is a Python pickle") as caught:
            do()
        assert "posix.system" in str(caught.value), call
        assert caught.value.exit_status == 2
    assert "posix.system" in vt.inspect(path).summary
    assert not witness.exists()
    assert not (tmp_path / "out.tflite").exists()
    assert not (tmp_path / "run").exists() or not list((tmp_path / "run").glob("*.tflite"))


def test_witness_is_a_witness(tmp_path: Path) -> None:
    """The pickle does what the other tests say that it does not do."""
    path = tmp_path / "evil.pt"
    path.write_bytes(makers.malicious_archive(tmp_path / "witness"))
    with pytest.raises(VitrifyError, match=r"holds a int, no module"):
        vt.load(path, trust=True)
    assert (tmp_path / "witness").exists()


def test_malicious_pickle_inside_a_program_is_not_run(torch_file: TorchFile, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    path = makers.with_entry(torch_file("small.pt2"), tmp_path / "hostile.pt2", "data/sample_inputs/model.pt",
                             lambda _: makers.malicious_archive(witness))
    with pytest.raises(UsageError, match=r"a pickle in it calls posix.system"):
        vt.load(path)
    assert not witness.exists()


def test_malicious_pickle_inside_a_script_is_not_run(torch_file: TorchFile, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    path = makers.with_entry(torch_file("script.pt"), tmp_path / "hostile.pt", "data.pkl",
                             lambda _: makers.malicious(witness))
    with pytest.raises(UsageError, match=r"a pickle that calls posix.system"):
        vt.load(path, shapes={"": (1, 3, 32, 32)})
    assert not witness.exists()


def test_guard_stops_what_no_model_needs(tmp_path: Path) -> None:
    inside, outside = tmp_path / "work", tmp_path / "outside"
    inside.mkdir()
    with Worker("a guarded process") as worker:
        worker.call("vitrify.importers.torch.guard:arm", inside)
        for function, *arguments in (("os:system", f"touch '{outside}'"), ("os:posix_spawn", "/bin/true", ["true"], {}),
                                     ("os:mkdir", str(outside)), ("os:open", str(outside), 0o101),
                                     ("subprocess:call", ["true"]), ("socket:create_connection", ("127.0.0.1", 9)),
                                     ("pickle:loads", makers.malicious(outside))):
            with pytest.raises(VitrifyError, match=r"NotTrustedError"):
                worker.call(function, *arguments)
        worker.call("os:mkdir", str(inside / "fine"))
    assert not outside.exists()
