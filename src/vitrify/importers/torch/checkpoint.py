"""Pickled files, loaded only with the caller's trust: whole modules, and Ultralytics' checkpoints."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitrify.core.errors import UnsupportedError
from vitrify.importers.sizes import Sizes
from vitrify.importers.torch.examples import example_inputs
from vitrify.importers.torch.memory import required_names
from vitrify.importers.torch.source import TorchSource
from vitrify.importers.torch.ultralytics import from_ultralytics, is_ultralytics, make_ready

_PLACES = ("ema", "model", "module", "net", "network")
_SHOWN_KEYS = 6


def from_pickle(path: Path, sizes: Sizes) -> TorchSource:
    """Load a pickled module, or the module in a checkpoint.

    Raises:
        UnsupportedError: there are only weights in the file, or the inputs' shapes are not known.
    """
    import torch

    if b"ultralytics" in _beginning(path):
        make_ready(Path(tempfile.mkdtemp(prefix="vitrify-")))
    found = torch.load(path, map_location="cpu", weights_only=False)
    arguments: dict[str, Any] = {}
    if isinstance(found, Mapping):
        arguments = dict(found.get("train_args") or {})
        module = next((found[k] for k in _PLACES if isinstance(found.get(k), torch.nn.Module)), None)
        if module is None:
            raise _only_weights(path, found)
        found = module
    if not isinstance(found, torch.nn.Module):
        raise UnsupportedError.of(
            "torch.no-module",
            f"'{path}' holds a {type(found).__qualname__}, no module",
            where=str(path),
            help="save the module itself, or an exported program (.pt2)",
        )
    module = found.float().eval()
    if is_ultralytics(module):
        own = getattr(module, "args", None)
        return from_ultralytics(path.name, module, sizes, {**(own if isinstance(own, dict) else {}), **arguments})
    return TorchSource(path.name, example_inputs(path.name, required_names(module), sizes), module=module)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(1 << 20)


def _only_weights(path: Path, found: Mapping[Any, Any]) -> UnsupportedError:
    import torch

    weights = next(
        (found[key] for key in ("state_dict", "model_state_dict", "model") if isinstance(found.get(key), Mapping)),
        found,
    )
    tensors = sum(isinstance(value, torch.Tensor) for value in weights.values())
    keys = ", ".join(map(str, list(found)[:_SHOWN_KEYS]))
    what = f"{tensors} tensors of weights" if tensors else f"a dictionary with {keys or 'nothing in it'}"
    return only_weights(path, what)


def only_weights(path: Path, what: str) -> UnsupportedError:
    """The refusal of a file with ``what`` in it, and no network."""
    return UnsupportedError.of(
        "torch.only-weights",
        f"'{path}' holds {what}, and no network that they belong to",
        where=str(path),
        help="build the module, load the weights into it, and call vt.load(module.eval(), (example,)) in Python; or "
        "torch.export.save(torch.export.export(module.eval(), (example,)), 'model.pt2')",
    )
