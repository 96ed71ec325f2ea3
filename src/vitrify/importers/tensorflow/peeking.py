"""What a TensorFlow or Keras model holds, told without TensorFlow; of an HDF5 file where h5py is installed."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vitrify.core.findings import Finding, Severity
from vitrify.core.isolation import run_isolated
from vitrify.importers.tensorflow.archive import read_config
from vitrify.importers.tensorflow.configs import layers_of
from vitrify.importers.tensorflow.kinds import kind_of
from vitrify.importers.tensorflow.saved import SERVING, Port, describe
from vitrify.results import InspectResult, TensorRow

READ_SECONDS = 120.0
_MAPS = ("Functional", "Sequential", "Model")


def inspect_model(path: Path) -> InspectResult:
    """Describe a SavedModel folder, a .keras or an .h5 file.

    Raises:
        ModelError: it is damaged.
    """
    kind = kind_of(path)
    if kind == "saved":
        return _saved(path)
    if kind == "keras":
        return _keras(path, read_config(path), "keras")
    if find_spec("h5py") is None:
        return InspectResult(
            file=str(path), format="hdf5", kind="hdf5", bytes=path.stat().st_size, summary="an HDF5 file (Keras .h5)",
            findings=[Finding(code="framework.missing", severity=Severity.INFO, where=str(path),
                              headline="to look into an HDF5 file needs h5py, which is not installed",
                              help="pip install 'vitrify[tf]'")])
    config, version = run_isolated("vitrify.importers.tensorflow.files:read_h5", path, seconds=READ_SECONDS,
                                   what=f"reading {path.name}")
    return _keras(path, config, f"keras {version}")


def _saved(path: Path) -> InspectResult:
    found = describe(path)
    chosen = SERVING if SERVING in found.signatures else next(iter(found.signatures), "")
    inputs, outputs = found.signatures.get(chosen, ({}, {}))
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    names = ", ".join(map(repr, found.signatures)) or "none"
    return InspectResult(
        file=str(path), format="savedmodel", kind="float32", bytes=size,
        summary=f"SavedModel, {sum(found.operators.values())} TensorFlow nodes; signatures: {names}",
        inputs=[_row(name, port) for name, port in inputs.items()],
        outputs=[_row(name, port) for name, port in outputs.items()],
        operators=dict(found.operators.most_common()), producer=f"TensorFlow {found.version}",
        signatures={key: {"inputs": list(ins), "outputs": list(outs)} for key, (ins, outs) in found.signatures.items()})


def _row(name: str, port: Port) -> TensorRow:
    shape: list[int | str] = ["?" if extent < 0 else extent for extent in port.shape or ()]
    return TensorRow(name=name, dtype=port.dtype, shape=shape)


def _keras(path: Path, config: dict[str, Any], producer: str) -> InspectResult:
    counts: Counter[str] = Counter()
    inputs: list[TensorRow] = []
    for layer in layers_of(config):
        kind, inner = str(layer.get("class_name")), layer.get("config")
        if kind == "InputLayer" and isinstance(inner, dict):
            inputs.append(_input(inner))
        elif kind not in _MAPS:
            counts[kind] += 1
    return InspectResult(
        file=str(path), format="keras", kind="float32", bytes=path.stat().st_size, inputs=inputs,
        summary=f"Keras model, {sum(counts.values())} layers of {len(counts)} kinds",
        operators=dict(counts.most_common()), producer=producer)


def _input(config: dict[str, Any]) -> TensorRow:
    shape = config.get("batch_shape") or config.get("batch_input_shape") or ()
    extents: list[int | str] = [e if isinstance(e, int) else "?" for e in shape] if isinstance(shape, list) else []
    dtype = config.get("dtype")
    return TensorRow(name=str(config.get("name") or ""), shape=extents,
                     dtype=dtype if isinstance(dtype, str) else "float32")
