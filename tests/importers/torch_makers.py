"""Small PyTorch modules, and files of them; imported only where PyTorch is installed."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn


class Small(nn.Module):
    """A stem and a head, with names that findings are looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.SiLU())
        self.head = nn.Linear(8, 4)

    def forward(self, image: Any) -> Any:
        return self.head(self.stem(image).mean((2, 3)))


def small() -> nn.Module:
    torch.manual_seed(0)
    return Small().eval()


class Function(nn.Module):
    """A module that calls a function, with a layer of weights beside."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.function = function

    def forward(self, x: Any, y: Any = None) -> Any:
        return self.function(self.layer(x)) if y is None else self.function(self.layer(x), y)


def calling(function: Callable[..., Any]) -> nn.Module:
    torch.manual_seed(0)
    return Function(function).eval()


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Answer:
    logits: Any
    hidden: Any = None


def with_entry(source: Path, target: Path, ending: str, change: Callable[[bytes], bytes]) -> Path:
    """Copy an archive, with the content of one entry changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        names = [info.filename for info in old.infolist()]
        (wanted,) = [name for name in names if name.partition("/")[2] == ending]
        for name in names:
            data = old.read(name)
            new.writestr(name, change(data) if name == wanted else data)
    return target


def with_json(source: Path, target: Path, ending: str, change: Callable[[Any], None]) -> Path:
    """Copy an archive, with a description in it changed."""
    def edit(data: bytes) -> bytes:
        content = json.loads(data)
        change(content)
        return json.dumps(content).encode()

    return with_entry(source, target, ending, edit)


class _Runs:
    """Pickles as a call of ``os.system``."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        import os

        return os.system, (self.command,)


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def malicious(witness: Path) -> bytes:
    """A pickle that touches a file when it is loaded."""
    return pickle.dumps(_Runs(f"touch '{witness}'"), protocol=2)


def malicious_archive(witness: Path) -> bytes:
    """The same as ``torch.save`` writes it."""
    stream = io.BytesIO()
    torch.save(_Runs(f"touch '{witness}'"), stream)
    return stream.getvalue()
