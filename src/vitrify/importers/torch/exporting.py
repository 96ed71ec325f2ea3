"""PyTorch's two ONNX exporters: what each writes is judged against PyTorch itself, and by the graph that it gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import ModelError, UnsupportedError, VitrifyError
from vitrify.importers.torch.preparing import Trial
from vitrify.importers.torch.quiet import first_line, quiet
from vitrify.importers.torch.source import TorchSource

OPSET, TRACED_OPSET = 18, 17
"""What the exporters write best. Source: torch.onnx.export, "opset_version"."""
LARGEST_INSIDE = 1_500_000_000
"""Bytes of weights that are written into the ONNX file itself: 2 GB is the most that it may have."""
WORDS = {"program": "by torch.export", "trace": "by tracing"}


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an exporter wrote: how near it is to PyTorch, and the graph that it gives after clean-up."""

    path: Path
    exporter: str
    decibels: float
    transposes: int = 0
    operators: int = 0
    is_supported: bool = True


def export_by(exporter: str, source: TorchSource, trials: Sequence[Trial], folder: Path) -> Export:
    """Write ``folder/exporter/NAME.onnx`` and judge it by what PyTorch answered in the trials.

    Raises:
        UnsupportedError: the exporter cannot write the model.
    """
    path = folder / exporter / f"{Path(source.label).stem.replace(' ', '_')}.onnx"
    path.parent.mkdir(exist_ok=True)
    try:
        with quiet():
            _EXPORTERS[exporter](source, path)
    except Exception as error:  # the exporters' errors share no base class
        raise _cannot(source, exporter, error) from error
    _describe(path, source)
    try:
        decibels = _compared(path, trials)
    except Exception as error:  # ONNX Runtime's neither
        raise UnsupportedError.of(
            "torch.export",
            f"{source.label} exported {WORDS[exporter]} does not run in ONNX Runtime: {first_line(error)}",
            where=source.label,
        ) from error
    return _cleaned(Export(path=path, exporter=exporter, decibels=decibels), source)


def _by_program(source: TorchSource, path: Path) -> None:
    import torch

    args, kwargs = source.arguments
    model = source.module if source.program is None else source.program
    torch.onnx.export(
        model,
        args,
        str(path),
        kwargs=kwargs or None,
        dynamo=True,
        opset_version=OPSET,
        verbose=False,
        input_names=list(source.inputs),
        output_names=source.outputs,
        external_data=_bytes(model) > LARGEST_INSIDE,
    )


def _by_tracing(source: TorchSource, path: Path) -> None:
    import torch

    if source.reads_values:
        raise ValueError(
            "Python code of the module reads a value that depends on its inputs (if tensor, int(tensor), "
            "tensor.item()), and a trace would hold what it read"
        )
    args, kwargs = source.arguments
    torch.onnx.export(
        source.callee,
        args,
        str(path),
        kwargs=kwargs or None,
        dynamo=False,
        opset_version=TRACED_OPSET,
        verbose=False,
        input_names=list(source.inputs),
        output_names=source.outputs,
    )


_EXPORTERS: dict[str, Callable[[TorchSource, Path], None]] = {"program": _by_program, "trace": _by_tracing}
"""``program``: by torch.export (dynamo). ``trace``: by running the module once."""


def _bytes(model: Any) -> int:
    state = model.state_dict() if callable(model.state_dict) else model.state_dict
    return sum(tensor.numel() * tensor.element_size() for tensor in state.values() if hasattr(tensor, "numel"))


def _describe(path: Path, source: TorchSource) -> None:
    """Give the file's inputs the source's shapes, and put beside the graph what the source says of itself."""
    import onnx

    model = onnx.load_model(str(path), load_external_data=False)
    for value in model.graph.input:
        example = source.inputs.get(value.name)
        shape = source.shapes.get(value.name) or (example.shape if example is not None else ())
        if len(value.type.tensor_type.shape.dim) == len(shape):
            for dim, extent in zip(value.type.tensor_type.shape.dim, shape, strict=True):
                dim.Clear()
                if isinstance(extent, str):
                    dim.dim_param = extent
                else:
                    dim.dim_value = int(extent)
    if source.metadata:
        onnx.helper.set_model_props(model, {**{p.key: p.value for p in model.metadata_props}, **source.metadata})
    path.write_bytes(model.SerializeToString())


def _compared(path: Path, trials: Sequence[Trial]) -> float:
    """The least SQNR of the outputs that ONNX Runtime gives, -inf when they are others."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    read = {value.name for value in session.get_inputs()}
    least = math.inf
    for trial in trials:
        found = session.run(None, {name: array for name, array in trial.inputs.items() if name in read})
        if len(found) != len(trial.outputs):
            return -math.inf
        least = min([least, *(_decibels(a, b) for a, b in zip(trial.outputs, found, strict=True))])
    return least


def _decibels(wanted: Any, found: Any) -> float:
    if np.shape(wanted) != np.shape(found):
        return -math.inf
    a, b = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
    same = np.equal(a, b) | (np.isnan(a) & np.isnan(b))  # infinities and what is no number have to be the same
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return -math.inf
    a, b = a[finite], b[finite]
    noise = float(np.square(a - b).sum())
    return math.inf if noise == 0 else 10 * math.log10(max(float(np.square(a).sum()), 1e-30) / noise)


def _cleaned(export: Export, source: TorchSource) -> Export:
    """Count what the clean-up leaves. What the importer refuses it says later, with all that the caller gave."""
    from vitrify.importers import load
    from vitrify.ops import Transpose
    from vitrify.passes import optimize

    sizes = {name: tuple(tensor.shape) for name, tensor in source.inputs.items()}
    try:
        model = load(export.path, sizes)
        optimize(model)
    except (UnsupportedError, ModelError):
        return msgspec.structs.replace(export, is_supported=False)
    nodes = [node for graph in model.graphs for node in graph]
    return msgspec.structs.replace(
        export, operators=len(nodes), transposes=sum(isinstance(node.op, Transpose) for node in nodes)
    )


def _cannot(source: TorchSource, exporter: str, error: Exception) -> VitrifyError:
    return UnsupportedError.of(
        "torch.export",
        f"{source.label} cannot be exported {WORDS[exporter]}",
        where=source.label,
        why=f"{type(error).__name__}: {first_line(error)}",
        help="what PyTorch cannot export, no converter sees: call the part of the module that computes tensors from "
        "tensors, without Python control flow that depends on their values",
    )
