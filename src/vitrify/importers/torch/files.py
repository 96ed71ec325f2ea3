"""The child's side: PyTorch's files are opened here, and nowhere else. Only ``core.isolation`` calls this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitrify.core.errors import ModelError, UnsupportedError, UsageError
from vitrify.core.findings import Finding
from vitrify.importers.torch.checkpoint import from_pickle
from vitrify.importers.torch.examples import example_inputs
from vitrify.importers.torch.exporting import best_export
from vitrify.importers.torch.source import TorchSource

Sizes = dict[str, tuple[int, ...] | int]


def export_file(path: str, kind: str, folder: str, sizes: Sizes, progress: Any = None) -> tuple[str, list[Finding]]:
    """Open a file of PyTorch's and write the model into ``folder`` as ONNX; return the file and what was seen.

    Raises:
        VitrifyError: PyTorch cannot open it, shapes are missing, or it cannot be exported.
    """
    import torch

    torch.set_num_threads(1)
    try:
        source = _OPENERS[kind](Path(path), sizes)
    except (UsageError, UnsupportedError, ModelError):
        raise
    except Exception as error:       # PyTorch's errors share no base class
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError.of("torch.load", f"PyTorch cannot load '{path}': {text[:300]}", where=path,
                            why=f"PyTorch {torch.__version__}, {type(error).__name__}",
                            help="save it again with this version of PyTorch; classes of the module have to be installed") \
            from error
    file, told = best_export(source, Path(folder))
    return str(file), told


def _exported(path: Path, sizes: Sizes) -> TorchSource:
    import torch
    from torch.export.graph_signature import InputKind

    program = torch.export.load(path)
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    placed = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    return TorchSource(path.name, example_inputs(path.name, {name: placed.get(name) for name in names}, sizes),
                       program=program)


def _script(path: Path, sizes: Sizes) -> TorchSource:
    import torch

    module = torch.jit.load(str(path), map_location="cpu").eval()
    arguments = [a for a in module.forward.schema.arguments[1:] if not a.has_default_value()]
    return TorchSource(path.name, example_inputs(path.name, {a.name: None for a in arguments}, sizes), module=module)


_OPENERS = {"exported": _exported, "script": _script, "pickle": from_pickle, "old pickle": from_pickle}
