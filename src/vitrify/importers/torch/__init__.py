"""PyTorch models into the IR: exported programs (.pt2), TorchScript, pickled modules, and modules in memory.

PyTorch's own ONNX exporters write the model; the file that gives the cleanest graph is kept. Files are loaded in a
child process, and without the caller's trust only after they were looked through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitrify.core.errors import ModelError, UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding
from vitrify.core.isolation import DEFAULT_MEMORY_BYTES, Worker
from vitrify.importers.exchange import Exchanged, Request, not_installed
from vitrify.importers.torch.checkpoint import only_weights
from vitrify.importers.torch.kinds import PICKLES, kind_of
from vitrify.importers.torch.peeking import inspect, pickle_contents, weights_without_network
from vitrify.ir import Model

if TYPE_CHECKING:
    from vitrify.importers.torch.exporting import Export

__all__ = ["exchange", "inspect", "load_module", "match"]

OPEN_SECONDS = 300.0
ORDER = {
    "exported": ("program", "trace"),
    "script": ("trace",),
    "module": ("trace", "program"),
    "pickle": ("trace", "program"),
    "old pickle": ("trace", "program"),
}
"""The exporters for each kind, the quicker way to a good file first; PyTorch exports scripts by tracing only."""
_FILES = "vitrify.importers.torch.files"


def match(path: Path) -> bool:
    """True for a file that PyTorch wrote."""
    return path.is_file() and kind_of(path) is not None


def exchange(path: Path, folder: Path, request: Request) -> Exchanged:
    """Export a file's model to ONNX (see ``importers.exchange``)."""
    from vitrify.importers.torch.choosing import best_export

    kind = kind_of(path)
    _refuse(path, kind, request.trust)
    opened_by = None
    told: list[Finding] = []
    with Worker(f"PyTorch on {path.name}", memory_bytes=DEFAULT_MEMORY_BYTES) as worker:

        def open_file() -> None:
            nonlocal opened_by
            told[:] = worker.call(
                f"{_FILES}:open_file",
                str(path),
                kind,
                str(folder),
                request.sizes,
                request.trust,
                seconds=OPEN_SECONDS,
                what=f"loading {path.name} in PyTorch",
            )
            opened_by = worker.pid

        def attempt(exporter: str, seconds: float) -> Export:
            if worker.pid != opened_by:
                open_file()  # the exporter before took the process with it
            made: Export = worker.call(
                f"{_FILES}:export_file", exporter, str(folder), seconds=seconds, what=f"PyTorch's export of {path.name}"
            )
            return made

        open_file()
        file, seen = best_export(path.name, ORDER[str(kind)], attempt, request.progress)
    return Exchanged(path=file, findings=[*seen, *told])


def _refuse(path: Path, kind: str | None, trust: bool) -> None:
    """Refuse what is not to be loaded at all.

    Raises:
        ModelError: the file is cut off.
        UnsupportedError: it holds weights and no network.
        UsageError: it is a pickle and not trusted, or PyTorch is not installed.
    """
    if kind == "damaged":
        from vitrify.importers.torch.archive import opened

        with opened(path):
            raise ModelError.of("torch.archive", f"'{path}' is no whole ZIP archive", where=str(path))
    if kind in PICKLES:
        _refuse_weights(path)
    if kind in PICKLES and not trust:
        raise UsageError.of(
            "torch.pickle",
            f"'{path}' is a Python pickle: to load it is to run whatever code it holds",
            where=str(path),
            why=f"it holds {pickle_contents(path)}; PyTorch's exported programs and TorchScript hold no such code",
            help="add --trust if you know where the file comes from; or save it where it was made: "
            "torch.export.save(torch.export.export(module.eval(), (example,)), 'model.pt2')",
        )
    if find_spec("torch") is None or find_spec("onnxscript") is None:
        raise not_installed("PyTorch with onnxscript", "torch", path)


def _refuse_weights(path: Path) -> None:
    """Say of a state dict at once that it is no model: to trust it would help nothing."""
    held = weights_without_network(path)
    if held:
        raise only_weights(path, held)


def load_module(
    module: object,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None,
    sizes: Mapping[str, Sequence[int] | int],
    values: Mapping[str, Any],
) -> Model:
    """Import a module, exported program or script module that is in memory.

    Raises:
        VitrifyError: it is none of these, cannot be exported, or something in it is not supported.
    """
    if find_spec("torch") is None or not _is_torch(module):
        raise UsageError.of(
            "call.model",
            f"a model is a file's path or a PyTorch module; this is a "
            f"{type(module).__module__}.{type(module).__qualname__}",
            help="vt.load('model.onnx'), or vt.load(module, (example,))",
        )
    if find_spec("onnxscript") is None:
        raise not_installed("onnxscript beside PyTorch", "torch", Path(type(module).__qualname__))
    from vitrify import importers
    from vitrify.importers.torch.choosing import best_export
    from vitrify.importers.torch.exporting import export_by
    from vitrify.importers.torch.memory import from_memory
    from vitrify.importers.torch.preparing import prepared

    source, trials = prepared(from_memory(module, example_inputs, sizes))
    kind = "exported" if source.program is not None else "script" if _is_script(module) else "module"
    with temporary_folder() as folder:
        file, told = best_export(
            source.label, ORDER[kind], lambda name, _seconds: export_by(name, source, trials, folder)
        )
        model = importers.load(file, sizes, values)
    model.source = type(module).__qualname__
    findings: list[Finding] = [*told, *source.findings, *model.extras.get("findings", ())]
    model.extras["findings"] = findings
    return model


def _is_script(module: object) -> bool:
    return any(base.__name__ == "ScriptModule" for base in type(module).__mro__)


def _is_torch(module: object) -> bool:
    return any(base.__module__.partition(".")[0] == "torch" for base in type(module).__mro__)
