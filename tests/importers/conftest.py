"""Files that several tests of importers read, written once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HAS_TORCH = find_spec("torch") is not None and find_spec("onnxscript") is not None


@pytest.fixture(scope="session")
def torch_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from the name of a PyTorch file, one of ``_WRITERS``, to its path."""
    if not HAS_TORCH:
        pytest.skip("PyTorch is not installed (TORCH=no)")
    folder = tmp_path_factory.mktemp("torch")

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            _WRITERS[name](path)
        return path

    return find


def _export(path: Path, shape: tuple[int, ...], **more: Any) -> None:
    import torch
    import torch_makers

    program = torch.export.export(torch_makers.small(), (torch.zeros(shape),), **more)
    torch.export.save(program, path)


def _exported(path: Path) -> None:
    _export(path, (1, 3, 32, 32))


def _dynamic(path: Path) -> None:
    from torch.export import Dim

    _export(path, (2, 3, 32, 32), dynamic_shapes={"image": {0: Dim("batch"), 2: Dim("height", min=8, max=64)}})


def _script(path: Path) -> None:
    import torch
    import torch_makers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")      # PyTorch calls the format deprecated
        torch.jit.trace(torch_makers.small(), torch.zeros(1, 3, 32, 32)).save(str(path))


def _saved(path: Path) -> None:
    import torch
    import torch_makers

    whole, new = "module" in path.name, not path.name.startswith("old")
    module = torch_makers.small()
    held = module if whole else module.state_dict()
    if path.name == "training.pth":
        optimizer = torch.optim.AdamW(module.parameters())
        held = {"epoch": 3, "model": held, "optimizer": optimizer.state_dict(), "loss": np.float64(0.5)}
    torch.save(held, path, _use_new_zipfile_serialization=new)


_WRITERS = {"small.pt2": _exported, "dynamic.pt2": _dynamic, "script.pt": _script, "module.pt": _saved,
            **dict.fromkeys(("weights.pt", "old.pth", "old_module.pth", "training.pth"), _saved)}
