"""PyTorch modules in memory: loaded, and run beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vitrify as vt
from vitrify.core.errors import VitrifyError

torch = pytest.importorskip("torch", reason="PyTorch is not installed (TORCH=no)")
pytest.importorskip("onnxscript", reason="onnxscript is not installed (TORCH=no)")

import torch_makers as makers  # noqa: E402  needs PyTorch
from torch import nn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
X, Y = torch.linspace(-2, 2, 12).reshape(2, 6), torch.linspace(1, 3, 12).reshape(2, 6)


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)

    def forward(self, input_ids: Any, mask: Any = None, *, scale: Any = None) -> Any:
        found = self.table(input_ids)
        return {"last": found if mask is None else found * mask[..., None], "none": None}


def _hooked() -> nn.Module:
    module = makers.calling(torch.relu)
    module.layer.register_forward_hook(lambda _m, _a, result: result * 2)
    return module


IDS = torch.tensor([[1, 3, 5]])
MODULES: dict[str, tuple[Callable[[], nn.Module], Any, list[str]]] = {
    "image": (makers.small, (torch.linspace(-1, 1, 3072).reshape(1, 3, 32, 32),), ["output"]),
    "tensor_alone": (lambda: makers.calling(torch.relu), X, ["output"]),
    "two_inputs": (lambda: makers.calling(torch.mul), (X, Y), ["output"]),
    "by_name": (lambda: makers.calling(torch.mul), {"y": Y, "x": X}, ["output"]),
    "tuple": (lambda: makers.calling(lambda v: (v + 1, [v * 2, None])), (X,), ["output_0", "output_1_0"]),
    "dictionary": (lambda: makers.calling(lambda v: {"a": v + 1, "deep": {"b": v * 2}}), (X,), ["a", "deep.b"]),
    "named_tuple": (lambda: makers.calling(lambda v: makers.Pair(v + 1, v * 2)), (X,), ["left", "right"]),
    "dataclass": (lambda: makers.calling(lambda v: makers.Answer(v + 1)), (X,), ["logits"]),
    "output_named_as_input": (lambda: makers.calling(lambda v: {"x": v + 1}), (X,), ["x_out"]),
    "integers": (lambda: Tokens().eval(), (IDS,), ["last"]),
    "gap_between_names": (lambda: Tokens().eval(), {"mask": torch.ones(1, 3), "input_ids": IDS}, ["last"]),
    "none_left_out": (lambda: Tokens().eval(), (IDS, None), ["last"]),
    "half": (lambda: makers.calling(torch.relu).half(), (X.half(),), ["output"]),
    "bfloat16": (lambda: makers.calling(torch.relu).bfloat16(), (X.bfloat16(),), ["output"]),
    "double": (lambda: makers.calling(torch.relu).double(), (X.double(),), ["output"]),
    "hooks": (_hooked, (X,), ["output"]),
    "script": (lambda: torch.jit.trace(makers.calling(torch.relu), (X,)), (X,), ["output"]),
}
TOLERANCE = {"half": 2e-2, "bfloat16": 5e-2}


def _call(module: nn.Module, given: Any) -> Any:
    with torch.no_grad():
        if isinstance(given, dict):
            return module(**given)
        return module(*(given if isinstance(given, tuple) else (given,)))


def _flat(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, torch.Tensor):
        return [value.float().numpy()]
    if hasattr(value, "logits"):
        value = [value.logits]
    parts = value.values() if isinstance(value, dict) else value
    return [array for part in parts if part is not None for array in _flat(part)]


@pytest.mark.parametrize("name", MODULES)
def test_module_equals_pytorch(name: str) -> None:
    make, given, outputs = MODULES[name]
    module = make()
    before = {key: tensor.clone() for key, tensor in module.state_dict().items()}
    model = vt.load(module, given)
    assert [output.name for output in model.interface.outputs] == outputs
    places = given if isinstance(given, tuple) else [given]
    tensors = given if isinstance(given, dict) else \
        dict(zip((binding.name for binding in model.interface.inputs), places, strict=False))
    known = [name for name in ("x", "y", "image", "input_ids", "mask") if name in tensors]
    assert [binding.name for binding in model.interface.inputs] == known or name == "script"
    found = vt.run(model, {key: value.float().numpy() if value.is_floating_point() else value.numpy()
                           for key, value in tensors.items() if value is not None})
    for wanted, array in zip(_flat(_call(module, given)), found.values(), strict=True):
        np.testing.assert_allclose(array, wanted, rtol=TOLERANCE.get(name, 1e-5), atol=TOLERANCE.get(name, 1e-5))
    assert all(torch.equal(tensor, before[key]) and tensor.dtype == before[key].dtype
               for key, tensor in module.state_dict().items()), "the caller's module was changed"


def _branching(v: Any) -> Any:
    return v + 1 if v.sum() > 0 else v * 2


REFUSED: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "training": (lambda: makers.small().train(), (torch.zeros(1, 3, 32, 32),), r"Small is in training mode"),
    "number": (lambda: makers.calling(torch.mul), (X, 3), r"the example for 'y' is a int, not a tensor"),
    "text_and_number": (lambda: makers.calling(torch.mul), ("a", 3), r"'x' is a str[\s\S]*'y' is a int"),
    "unknown_name": (lambda: makers.calling(torch.relu), {"z": X}, r"takes x, y; there is no argument for 'z'"),
    "too_many": (lambda: makers.calling(torch.relu), (X, X, X), r"there is no argument for 'input_2'"),
    "no_examples": (makers.small, None, r"does not say which shape its input 'image' has"),
    "wrong_shape": (makers.small, (torch.zeros(1, 4, 32, 32),), r"does not run on image \[1,4,32,32\]"),
    "complex": (lambda: makers.calling(torch.relu), (X.to(torch.complex64),), r"computes with complex numbers"),
    "meta": (lambda: makers.calling(torch.relu).to("meta"), (X,), r"has no weights: they are on the 'meta' device"),
    "no_tensor": (lambda: makers.calling(lambda v: 3), (X,), r"returns no tensor, but a int"),
    "no_module": (lambda: torch.zeros(3), (X,), r"a Tensor is no module"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_is_wrong(name: str) -> None:
    make, given, text = REFUSED[name]
    with pytest.raises(VitrifyError, match=text):
        vt.load(make(), given)


@pytest.mark.parametrize(("function", "expected"), [
    pytest.param(_branching, "a trace would hold what it read", id="branch"),
    pytest.param(lambda v: v + torch.rand_like(v), "by tracing gives other values than PyTorch", id="random",
                 marks=pytest.mark.slow)])
def test_what_no_exporter_writes_right_is_refused(function: Callable[..., Any], expected: str) -> None:
    with pytest.raises(VitrifyError) as caught:
        vt.load(makers.calling(function), (X,))
    texts = [f"{finding.headline} {finding.why}" for finding in caught.value.findings]
    assert any(expected in text for text in texts), texts
    assert any("by torch.export" in text for text in texts), texts


@pytest.mark.slow
def test_a_number_that_is_read_stays_computed() -> None:
    module = makers.calling(lambda v: v * int(v.max()))
    model = vt.load(module, (X,))
    (taken,) = model.main.inputs
    for values in (X, 9 * X):
        (found,) = vt.run(model, {taken.name: values.numpy()}).values()
        assert np.allclose(found, module(values).detach().numpy(), atol=1e-5)


def test_finding_says_which_exporter_and_why() -> None:
    model = vt.load(makers.small(), (torch.zeros(1, 3, 32, 32),))
    (told,) = [finding for finding in model.extras["findings"] if finding.code == "torch.exported"]
    assert told.headline.startswith("Small was exported by tracing, ")
    assert "0 of them TRANSPOSE; no TRANSPOSE is left that another way could save" in told.why
    assert any(node.name.startswith("/stem/stem.0/Conv") for node in model.main)
