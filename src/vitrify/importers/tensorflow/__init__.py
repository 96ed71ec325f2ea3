"""TensorFlow and Keras models into the IR: SavedModel folders, .keras and .h5 files.

TensorFlow's TFLite converter or tf2onnx writes the model, whichever gives the cleaner graph, in a child process. What a
file says of itself is looked at before TensorFlow is, so that a hostile file is refused without it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from vitrify.core.isolation import run_isolated
from vitrify.importers.exchange import Exchanged, Request, not_installed
from vitrify.importers.tensorflow.archive import read_config
from vitrify.importers.tensorflow.configs import refuse_code as refuse_layers
from vitrify.importers.tensorflow.kinds import kind_of
from vitrify.importers.tensorflow.saved import refuse_code
from vitrify.results import InspectResult

EXPORT_SECONDS = 900.0
"""The largest models of the field convert in a few minutes."""


def match(path: Path) -> bool:
    """True for a SavedModel's folder, a Keras archive and an HDF5 file."""
    return kind_of(path) is not None


def exchange(path: Path, folder: Path, request: Request) -> Exchanged:
    """Convert to TFLite or ONNX (see ``importers.exchange``)."""
    kind = kind_of(path)
    assert kind is not None
    if kind == "saved":
        refuse_code(path, request.trust)
    elif kind == "keras":
        refuse_layers(path, read_config(path), None, request.trust)
    if find_spec("tensorflow") is None or (kind == "h5" and find_spec("tf_keras") is None):
        raise not_installed("TensorFlow", "tf", path)
    file, told = run_isolated("vitrify.importers.tensorflow.files:export_model", str(path), kind, str(folder),
                              dict(request.sizes), request.trust, seconds=EXPORT_SECONDS,
                              what=f"TensorFlow's conversion of {path.name}")
    return Exchanged(path=Path(file), findings=told)


def inspect(path: Path) -> InspectResult:
    """Say what a model holds, without TensorFlow (see ``importers.exchange``)."""
    from vitrify.importers.tensorflow.peeking import inspect_model

    return inspect_model(path)
