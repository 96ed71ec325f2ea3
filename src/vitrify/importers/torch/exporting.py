"""Both of PyTorch's ONNX exporters on one model, each judged against PyTorch itself; the cleaner result is kept."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import UnsupportedError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.torch.source import TorchSource

LEAST_DB = 60.0
"""Below this an exported model is not the module any more: two float computations agree to 90 dB and more."""
OPSET, TRACED_OPSET = 18, 17
"""What the exporters write best. Source: torch.onnx.export, "opset_version"."""


@dataclass(frozen=True)
class Export:
    """A file that an exporter wrote: how near it is to PyTorch, and the graph that it gives."""

    path: Path
    exporter: str
    decibels: float
    transposes: int
    operators: int


def best_export(source: TorchSource, folder: Path) -> tuple[Path, list[Finding]]:
    """Export with each exporter that can, and return the file that gives the cleanest graph, with what was seen.

    Raises:
        UnsupportedError: no exporter can write the model, or none writes it right; says what each met.
    """
    wanted = _run(source)
    made: list[Export] = []
    problems: list[Finding] = []
    for exporter, write in EXPORTERS.items():
        path = folder / f"{exporter}.onnx"
        try:
            with _quiet():
                write(source, path)
            _describe(path, source.metadata)
            made.append(_judged(path, exporter, source, wanted))
        except VitrifyError as error:
            problems += error.findings
        except Exception as error:      # the exporters' errors share no base class
            problems.append(_cannot(source, exporter, error))
    good = [export for export in made if export.decibels >= LEAST_DB]
    problems += [_wrong(source, export) for export in made if export not in good]
    if not good:
        raise UnsupportedError(problems)
    best = min(good, key=lambda export: (export.transposes, export.operators))
    return best.path, [_told(source, best, made)]


def _run(source: TorchSource) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """PyTorch's own outputs for the example inputs."""
    import torch

    callee = source.module if source.module is not None else source.program.module()
    with torch.no_grad(), _quiet():
        return [_array(value) for value in _leaves(callee(*source.inputs.values()))]


def _leaves(value: Any) -> Iterator[Any]:
    """The tensors in what a module returns, in the order of the exporters' outputs."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    elif value is not None:
        yield value


def _array(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    found: np.ndarray[Any, np.dtype[Any]] = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    return found


def _by_program(source: TorchSource, path: Path) -> None:
    import torch

    model = source.program if source.program is not None else source.module
    torch.onnx.export(model, tuple(source.inputs.values()), str(path), dynamo=True, opset_version=OPSET, verbose=False,
                      input_names=list(source.inputs), output_names=source.outputs or None, external_data=False)


def _by_tracing(source: TorchSource, path: Path) -> None:
    import torch

    module = source.module if source.module is not None else source.program.module()
    torch.onnx.export(module, tuple(source.inputs.values()), str(path), dynamo=False, opset_version=TRACED_OPSET,
                      verbose=False, input_names=list(source.inputs), output_names=source.outputs or None)


EXPORTERS: dict[str, Callable[[TorchSource, Path], None]] = {"program": _by_program, "trace": _by_tracing}
"""``program``: by torch.export (dynamo). ``trace``: by running the module once."""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what exporters print and log away from the user's terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _describe(path: Path, metadata: dict[str, str]) -> None:
    """Put what the source says of itself beside the graph."""
    if not metadata:
        return
    import onnx

    model = onnx.load(str(path))
    onnx.helper.set_model_props(model, {**{p.key: p.value for p in model.metadata_props}, **metadata})
    onnx.save(model, str(path))


def _judged(path: Path, exporter: str, source: TorchSource, wanted: list[Any]) -> Export:
    """Run the file in ONNX Runtime beside PyTorch, and import it.

    Raises:
        VitrifyError: something in it is not supported.
    """
    from vitrify.importers import load
    from vitrify.ops import Transpose

    found = _by_onnxruntime(path, source)
    worst = min((_decibels(a, b) for a, b in zip(wanted, found, strict=False)), default=math.inf)
    if len(found) != len(wanted):
        worst = -math.inf
    graph = load(path).main
    return Export(path, exporter, worst, sum(isinstance(n.op, Transpose) for n in graph), len(graph))


def _by_onnxruntime(path: Path, source: TorchSource) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    arrays = {name: _array(tensor) for name, tensor in source.inputs.items()}
    read = {i.name for i in session.get_inputs()}
    found: list[Any] = session.run(None, {name: array for name, array in arrays.items() if name in read})
    return found


def _decibels(wanted: Any, found: Any) -> float:
    if np.shape(wanted) != np.shape(found):
        return -math.inf
    a, b = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
    noise = float(np.square(a - b).sum())
    signal = float(np.square(a).sum())
    if not math.isfinite(noise):
        return math.inf if np.array_equal(a, b, equal_nan=True) else -math.inf
    return math.inf if noise == 0 else 10 * math.log10(max(signal, 1e-30) / noise)


_WORDS = {"program": "by torch.export", "trace": "by tracing"}


def _told(source: TorchSource, best: Export, made: list[Export]) -> Finding:
    seen = "; ".join(f"{_WORDS[e.exporter]}: {e.operators} nodes, {e.transposes} of them TRANSPOSE, "
                     f"{e.decibels:.0f} dB to PyTorch" for e in made)
    return Finding(code="torch.exported", severity=Severity.INFO, where=source.label,
                   headline=f"{source.label} was exported {_WORDS[best.exporter]}", why=seen)


def _cannot(source: TorchSource, exporter: str, error: Exception) -> Finding:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return Finding(code="torch.export", where=source.label, why=f"{type(error).__name__}: {text[:400]}",
                   headline=f"{source.label} cannot be exported {_WORDS[exporter]}",
                   help="what PyTorch cannot export, no converter sees: call the part of the module that computes tensors "
                        "from tensors, without data-dependent Python control flow")


def _wrong(source: TorchSource, export: Export) -> Finding:
    return Finding(code="torch.export-wrong", where=source.label,
                   headline=f"{source.label} exported {_WORDS[export.exporter]} gives other values than PyTorch: "
                            f"{export.decibels:.0f} dB, {LEAST_DB:.0f} are needed",
                   why="random numbers, training mode, or an operator that the exporter writes wrong",
                   help="call module.eval() first")
