"""Pickled files, loaded only with the caller's trust: whole modules, and Ultralytics' checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitrify.core.errors import UnsupportedError
from vitrify.importers.torch.examples import example_inputs, random_tensor
from vitrify.importers.torch.memory import argument_names
from vitrify.importers.torch.source import TorchSource

_DEFAULT_SIZE = 640     # Source: Ultralytics' default configuration, "imgsz"


def from_pickle(path: Path, sizes: Mapping[str, Sequence[int] | int]) -> TorchSource:
    """Load a pickled module, or the module in a checkpoint.

    Raises:
        UnsupportedError: there are only weights in the file, or the inputs' shapes are not known.
    """
    import torch

    found = torch.load(path, map_location="cpu", weights_only=False)
    if isinstance(found, Mapping):
        module = next((found[k] for k in ("ema", "model", "module", "net") if isinstance(found.get(k), torch.nn.Module)),
                      None)
        if module is None:
            raise _only_weights(path, found)
        found = module
    if not isinstance(found, torch.nn.Module):
        raise UnsupportedError.of("torch.no-module", f"'{path}' holds a {type(found).__qualname__}, no module",
                                  where=str(path), help="save the module itself, or an exported program (.pt2)")
    module = found.float().eval()
    if type(module).__module__.startswith("ultralytics."):
        return _ultralytics(path, module, sizes)
    names = argument_names(module)
    return TorchSource(path.name, example_inputs(path.name, dict.fromkeys(names[:1]), sizes), module=module)


def _only_weights(path: Path, found: Mapping[Any, Any]) -> UnsupportedError:
    import torch

    tensors = sum(isinstance(value, torch.Tensor) for value in found.values())
    what = f"{tensors} tensors of weights" if tensors else f"a dictionary with {', '.join(map(str, list(found)[:6]))}"
    return UnsupportedError.of(
        "torch.only-weights", f"'{path}' holds {what}, and no network that they belong to", where=str(path),
        help="build the module, load the weights into it, and call vt.load(module.eval(), (example,)) in Python; or "
             "torch.export.save(torch.export.export(module.eval(), (example,)), 'model.pt2')")


def _ultralytics(path: Path, module: Any, sizes: Mapping[str, Sequence[int] | int]) -> TorchSource:
    """A detector of Ultralytics: heads are told to give raw predictions, as its own exporter does."""
    side = getattr(module, "args", {}).get("imgsz", _DEFAULT_SIZE) if isinstance(getattr(module, "args", {}), dict) \
        else _DEFAULT_SIZE
    size = (side, side) if isinstance(side, int) else tuple(side)
    module = module.fuse(verbose=False) if hasattr(module, "fuse") else module
    for part in module.modules():
        if hasattr(part, "export"):
            part.export, part.format, part.dynamic = True, "onnx", False
        if hasattr(part, "end2end") and hasattr(part, "one2one_cv2"):
            part.max_det = getattr(part, "max_det", 300)
    for parameter in module.parameters():
        parameter.requires_grad = False
    given = {name: size for name, size in sizes.items() if not isinstance(size, int)}
    shape = given.get("images") or given.get("") or (1, 3, *size)
    names = {int(k): str(v) for k, v in dict(getattr(module, "names", {})).items()}
    metadata = {"names": str(names), "imgsz": str(list(shape[2:])), "stride": str(int(max(getattr(module, "stride", [32])))),
                "task": str(getattr(module, "task", "detect"))}
    images = random_tensor(tuple(shape)).sigmoid()
    module(images)                       # anchors are made at the first run
    return TorchSource(path.name, {"images": images}, module=module, outputs=["output0"], metadata=metadata)
