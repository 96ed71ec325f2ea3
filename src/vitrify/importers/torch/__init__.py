"""PyTorch models into the IR: exported programs (.pt2), TorchScript, pickled modules, and modules in memory.

PyTorch's own ONNX exporters write the model; where both can, each result is imported, and the one that gives the
cleaner graph is kept. Files are loaded in a child process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vitrify.core.errors import UsageError
from vitrify.core.files import temporary_folder
from vitrify.core.findings import Finding
from vitrify.core.isolation import run_isolated
from vitrify.importers.exchange import Exchanged, Request, not_installed
from vitrify.importers.torch.kinds import PICKLES, kind_of
from vitrify.ir import Model

EXPORT_SECONDS = 900.0
"""The largest models of the field export in a few minutes."""


def match(path: Path) -> bool:
    """True for a file that PyTorch wrote."""
    return path.is_file() and kind_of(path) is not None


def exchange(path: Path, folder: Path, request: Request) -> Exchanged:
    """Export a file's model to ONNX (see ``importers.exchange``)."""
    kind = kind_of(path)
    assert kind is not None
    if kind in PICKLES and not request.trust:
        raise UsageError.of(
            "torch.pickle", f"'{path}' is a Python pickle: to load it is to run whatever code it holds", where=str(path),
            why="PyTorch stores whole modules that way; exported programs and TorchScript hold no such code",
            help="add --trust if you know where the file comes from; or save it where it was made: "
                 "torch.export.save(torch.export.export(module.eval(), (example,)), 'model.pt2')")
    if find_spec("torch") is None or find_spec("onnxscript") is None:
        raise not_installed("PyTorch with onnxscript", "torch", path)
    file, told = run_isolated("vitrify.importers.torch.files:export_file", str(path), kind, str(folder), request.sizes,
                              seconds=EXPORT_SECONDS, what=f"PyTorch's export of {path.name}")
    return Exchanged(path=Path(file), findings=told)


def load_module(module: object, example_inputs: Sequence[Any] | Mapping[str, Any] | None,
                sizes: Mapping[str, Sequence[int] | int], values: Mapping[str, Any]) -> Model:
    """Import a module, exported program or script module that is in memory.

    Raises:
        VitrifyError: it is none of these, cannot be exported, or something in it is not supported.
    """
    if find_spec("torch") is None or not _is_torch(module):
        raise UsageError.of("call.model", f"a model is a file's path or a PyTorch module; this is a "
                                          f"{type(module).__module__}.{type(module).__qualname__}",
                            help="vt.load('model.onnx'), or vt.load(module, (example,))")
    from vitrify import importers
    from vitrify.importers.torch.exporting import best_export
    from vitrify.importers.torch.memory import from_memory

    with temporary_folder() as folder:
        file, told = best_export(from_memory(module, example_inputs, sizes), folder)
        model = importers.load(file, sizes, values)
    model.source = type(module).__qualname__
    findings: list[Finding] = [*told, *model.extras.get("findings", ())]
    model.extras["findings"] = findings
    return model


def _is_torch(module: object) -> bool:
    return any(base.__module__.partition(".")[0] == "torch" for base in type(module).__mro__)
