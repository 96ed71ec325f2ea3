"""The child's side: ONNX Runtime sessions, kept open between calls. Only ``core.isolation`` calls what is here."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

# ONNX Runtime reports its use to its maker, and keeps an identifier and a database of that in the user's home, from
# its import on: nothing is to leave this machine, and nothing is to appear in a home.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

from vitrify.core.errors import ModelError, UsageError
from vitrify.runtimes.onnxruntime.spec import Details, Spec, Value

Array = np.ndarray[Any, np.dtype[Any]]

# Source: onnxruntime_session_options_config_keys.h.
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
_ERRORS_ONLY = 3
_KEPT = 2
_TYPES = {"float": "float32", "double": "float64"}

_open: dict[tuple[Spec, tuple[str, ...]], onnxruntime.InferenceSession] = {}


def _session(spec: Spec, extra: tuple[str, ...] = ()) -> onnxruntime.InferenceSession:
    """Return the open session that also gives out the ``extra`` values."""
    key = spec, extra
    if key not in _open:
        while len(_open) >= _KEPT:
            del _open[next(iter(_open))]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = spec.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        path = _native(spec.path)
        try:
            source = _with_outputs(spec, extra, options) if extra else path
            _open[key] = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:      # its exceptions share no base class
            raise ModelError.of("onnxruntime.load", f"ONNX Runtime cannot load the model: {_text(error)}",
                                where=spec.path) from error
    return _open[key]


def _native(path: str) -> str:
    """The path as ONNX Runtime opens it: as text in UTF-8, whatever the locale says.

    Raises:
        UsageError: the name is no text.
    """
    try:
        return os.fsencode(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError.of("file.name", "the path of the model is not UTF-8, and ONNX Runtime opens no other",
                            where=path, help="rename the file, or the folder that it is in") from error


def _with_outputs(spec: Spec, extra: Sequence[str], options: onnxruntime.SessionOptions) -> bytes:
    """Return the model with more outputs; weights in files beside the model stay there."""
    import onnx

    model = onnx.load(spec.path, load_external_data=False)
    present = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra if name not in present)
    options.add_session_config_entry(_WEIGHTS_FOLDER, str(Path(_native(spec.path)).parent))
    data: bytes = model.SerializeToString()
    return data


def details(spec: Spec) -> Details:
    """Describe the file's inputs, outputs and computed values."""
    import onnx

    session = _session(spec)
    graph = onnx.load(spec.path, load_external_data=False).graph
    tensors = [name for node in graph.node for name in node.output if name]
    kinds = sorted({node.op_type for node in graph.node})
    return Details([_value(v) for v in session.get_inputs()], [_value(v) for v in session.get_outputs()], tensors,
                   kinds, onnxruntime.__version__, dict(session.get_modelmeta().custom_metadata_map))


def _value(argument: Any) -> Value:
    kind = argument.type.removeprefix("tensor(").removesuffix(")")
    dims = [d if isinstance(d, int) and d >= 0 else d if isinstance(d, str) and d else None for d in argument.shape]
    return Value(argument.name, _TYPES.get(kind, kind), dims)


def run(spec: Spec, feeds: Mapping[str, Array], wanted: Sequence[str] | None = None,
        extra: tuple[str, ...] = ()) -> list[Any]:
    """Run once and return the outputs, or the ``wanted`` values; values that are no arrays become None."""
    session = _session(spec, extra)
    names = [v.name for v in session.get_outputs()] if wanted is None else list(wanted)
    try:
        values = session.run(names, dict(feeds))
    except Exception as error:          # its exceptions share no base class
        raise ModelError.of("onnxruntime.run", f"ONNX Runtime cannot run the model: {_text(error)}",
                            where=spec.path) from error
    return [value if isinstance(value, np.ndarray) else None for value in values]


def timings(spec: Spec, feeds: Mapping[str, Array], runs: int, warmup: int) -> list[float]:
    """Return the seconds of each of ``runs`` runs."""
    session = _session(spec)
    seconds = []
    for number in range(warmup + runs):
        start = time.perf_counter()
        session.run(None, dict(feeds))
        if number >= warmup:
            seconds.append(time.perf_counter() - start)
    return seconds


def _text(error: Exception) -> str:
    return str(error).removeprefix("[ONNXRuntimeError] : ").strip()
