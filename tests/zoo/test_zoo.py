"""The zoo's table agrees with its builders; with the cache of `make zoo`, every model converts and agrees."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ZOO = Path(__file__).resolve().parents[2] / "benchmarks" / "zoo"
LEAST_MODELS = 62


def module(name: str) -> ModuleType:
    """Import one file of the zoo, which is no package: its scripts run in two environments."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ZOO / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


table = module("table")
ENTRIES = table.entries()


def functions(file: Path) -> set[str]:
    """Return the names of a file's functions, read without importing it: builders need PyTorch."""
    return {n.name for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)}


def kinds() -> set[str]:
    """Return the kinds of input values that samples.py knows."""
    return functions(ZOO / "samples.py") - {"draw"}


def test_it_has_enough_models() -> None:
    assert len(ENTRIES) >= LEAST_MODELS
    assert len({(e.title, e.exporter) for e in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_a_row_names_what_exists(entry: table.Entry) -> None:  # type: ignore[name-defined]
    file, function = entry.builder.split(".")
    assert function in functions(ZOO / "builders" / f"{file}.py")
    assert entry.family in table.FAMILIES
    assert entry.exporter in table.EXPORTERS
    assert {i.values for i in entry.inputs} <= kinds()
    assert all(i.shape and min(i.shape) > 0 for i in entry.inputs)


def test_every_builder_is_used() -> None:
    used = {e.builder for e in ENTRIES}
    for file in ("yolo_classic", "detectors", "dense", "hugging", "faces", "forecasting"):
        plain = {f for f in functions(ZOO / "builders" / f"{file}.py") if f"{file}.{f}" in used}
        assert plain, f"no row of the table uses builders/{file}.py"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"not in models\.toml: no_such_model"):
        table.entries(["no_such_model"])


def test_a_changed_row_has_another_stamp() -> None:
    row = {"title": "t", "family": "cnn", "builder": "dense.unet", "inputs": {"x": ["pixels", 1, 3, 8, 8]}}
    other = {**row, "inputs": {"x": ["pixels", 1, 3, 8, 9]}}
    assert table.entry("a", row).recipe == table.entry("a", dict(row)).recipe
    assert table.entry("a", row).recipe != table.entry("a", other).recipe


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_a_model_converts_and_agrees(entry: table.Entry) -> None:  # type: ignore[name-defined]
    if not entry.onnx.exists():
        pytest.skip("not in .cache/zoo; `make zoo` exports it")
    row = module("check").check(entry)
    assert row.outcome == "ok", row.reason
