"""Builds a published model again: .cache/latency/made/NAME.tflite, int8, its weights random.

    python make.py          builds all, checks multiplications and parameters against what is published
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rows import HERE, ROOT, judged

from vitrify import tflite
from vitrify.ir import Graph
from vitrify.targets.estimating import node_macs

CACHE = ROOT / ".cache" / "latency"
TORCH = ROOT / ".cache" / "zoo" / "venv" / "bin" / "python"
CLOSE = 0.11
"""How far multiplications and parameters may be from the published ones. Most are within 5 %; some sources count
BatchNorm, biases or additions, others do not."""


def file_of(recipe: Mapping[str, Any]) -> Path:
    """Return the int8 file of a recipe, built where it is missing."""
    if "zoo" in recipe:
        path = ROOT / ".cache" / "zoo" / "int8" / f"{recipe['zoo']}.int8.tflite"
        if not path.exists():
            raise SystemExit(f"{path} is not here: make zoo, then make zoo-int8")
        return path
    if "export" in recipe:
        return _exported(recipe["export"])
    if "file" in recipe:
        return _quantized(recipe["file"])
    arguments = recipe.get("arguments", {})
    name = "_".join([recipe["make"], *(str(value) for value in arguments.values())])
    path = CACHE / "made" / f"{name}.tflite"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        module, function = recipe["make"].split(".")
        tflite.write(getattr(importlib.import_module(f"builders.{module}"), function)(**arguments), path)
    return path


def _exported(name: str) -> Path:
    path = CACHE / f"{name}.tflite"
    if not path.exists():
        if not path.with_suffix(".onnx").exists():
            subprocess.run([TORCH, HERE / "export.py", name], check=True)
        subprocess.run([sys.executable, HERE / "quantize.py", name], check=True)
    return path


def _quantized(name: str) -> Path:
    source, path = ROOT / ".cache" / "models" / name, CACHE / "made" / f"{Path(name).stem}.int8.tflite"
    if not path.exists():
        if not source.exists():
            subprocess.run([sys.executable, ROOT / "scripts" / "fetch_models.py", ROOT / ".cache" / "models",
                            source.parent.name], check=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "vitrify", "quantize", source, "--random-calibration", "--samples", "2",
                        "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path


def amounts(graph: Graph) -> tuple[float, float]:
    """Return millions of multiplications, and thousands of parameters."""
    weights = {id(t): t.size for node in graph for t in node.inputs if t is not None and t.is_constant and
               t.quantization is not None}
    return sum(map(node_macs, graph)) / 1e6, sum(weights.values()) / 1e3


def differences(recipe: Mapping[str, Any], graph: Graph) -> dict[str, float]:
    """Return how far a rebuilt model is from what is published, relative to it."""
    published = recipe.get("published", {})
    found = dict(zip(("macs", "parameters"), amounts(graph), strict=True))
    return {name: found[name] / value - 1 for name, value in published.items()}


def main() -> int:
    """Build all and check them."""
    bad = 0
    for recipe in {str(row.recipe): row.recipe for row in judged()}.values():
        graph = tflite.read(file_of(recipe)).main
        apart = differences(recipe, graph)
        bad += any(abs(value) > CLOSE for value in apart.values())
        print(file_of(recipe).name, *(f"{value:.4g}" for value in amounts(graph)),
              {name: f"{value:+.1%}" for name, value in apart.items()})
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
