"""Layers import only downwards (docs/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vitrify

ROOT = Path(vitrify.__file__).parent
LAYERS = [
    {"core", "_version"},
    {"ir", "results"},
    {"ops"},
    {"tflite", "data"},
    {"passes", "matching"},
    {"importers", "quant", "targets"},
    {"backends", "boards", "runtimes"},
    {"tasks", "verify", "profile"},
    {"deploy", "pipeline", "report"},
    {"api"},
    {"plugins"},
    {"cli", "studio"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the packages of vitrify that a file imports, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            inside = node.module == "vitrify"
            names = [f"vitrify.{alias.name}" for alias in node.names] if inside else [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "vitrify" and len(parts) > 1 and parts[1] in LEVEL:
                yield parts[1], node.lineno


FILES = [p for p in sorted(ROOT.rglob("*.py")) if p.relative_to(ROOT).parts[0] not in ("__init__.py", "__main__.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_imports_only_downwards(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert room in LEVEL, f"'{room}' has no place in the layers"
    wrong = [f"line {line}: {name}" for name, line in imported(path)
             if name != room and LEVEL[name] >= LEVEL[room]]
    assert not wrong, f"{path.relative_to(ROOT)} imports sideways or upwards: {wrong}"


def test_every_folder_of_the_package_stands_in_the_layers() -> None:
    rooms = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith("_")}
    assert rooms <= set(LEVEL)
