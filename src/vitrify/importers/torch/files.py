"""The child's side: PyTorch's files are opened here, and nowhere else. Only ``core.isolation`` calls this.

What was opened stays between the calls, so that each exporter can be tried within limits of its own.
"""

from __future__ import annotations

from pathlib import Path

from vitrify.core.errors import ModelError, UsageError, VitrifyError
from vitrify.core.findings import Finding
from vitrify.importers.sizes import Sizes
from vitrify.importers.torch.checking import refuse_unsafe
from vitrify.importers.torch.checkpoint import from_pickle
from vitrify.importers.torch.examples import example_inputs
from vitrify.importers.torch.exporting import Export, export_by
from vitrify.importers.torch.guard import NotTrustedError, arm
from vitrify.importers.torch.memory import required_names
from vitrify.importers.torch.preparing import Trial, prepared
from vitrify.importers.torch.program import from_program
from vitrify.importers.torch.quiet import first_line, quiet
from vitrify.importers.torch.source import TorchSource

_opened: list[tuple[TorchSource, list[Trial]]] = []


def open_file(path: str, kind: str, folder: str, sizes: Sizes, trust: bool) -> list[Finding]:
    """Load a file and run the model once; return what was assumed.

    Raises:
        UsageError: it holds code and is not trusted, or shapes do not fit it.
        VitrifyError: PyTorch cannot load it, shapes are missing, or it does not run.
    """
    if not trust:
        refuse_unsafe(Path(path), kind)
        arm(Path(folder))
    import torch

    torch.set_num_threads(1)
    try:
        with quiet():
            source = _OPENERS[kind](Path(path), sizes)
        ready, trials = prepared(source)
    except VitrifyError as error:
        raise _untrusted(path, error) or error from error
    except Exception as error:  # PyTorch's errors share no base class
        raise _untrusted(path, error) or _cannot_load(path, error) from error
    _opened[:] = [(ready, trials)]
    return ready.findings


def export_file(exporter: str, folder: str) -> Export:
    """Export what was opened last.

    Raises:
        UnsupportedError: the exporter cannot.
    """
    source, trials = _opened[0]
    return export_by(exporter, source, trials, Path(folder))


def _untrusted(path: str, error: BaseException | None) -> UsageError | None:
    """The refusal when the guard stopped the file, however deep PyTorch wrapped that."""
    while error is not None:
        if isinstance(error, NotTrustedError):
            return UsageError.of(
                "torch.unsafe",
                f"'{path}' was stopped while it was loaded: {error}",
                where=path,
                why="a model computes tensors from tensors and needs nothing of the kind",
                help="add --trust if you know where the file comes from",
            )
        error = error.__cause__ or error.__context__
    return None


def _cannot_load(path: str, error: Exception) -> VitrifyError:
    import torch

    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return UsageError.of(
            "torch.package",
            f"'{path}' needs the module {package}, which Python does not find",
            where=path,
            why="a pickled module names the classes that it was made of",
            help=f"if {package} is code of yours, say where it is: PYTHONPATH=FOLDER vitrify ...; "
            f"if it is a package that you know, install it",
        )
    return ModelError.of(
        "torch.load",
        f"PyTorch cannot load '{path}': {first_line(error)}",
        where=path,
        why=f"PyTorch {torch.__version__}, {type(error).__name__}",
        help="save it again with this version of PyTorch",
    )


def _exported(path: Path, sizes: Sizes) -> TorchSource:
    import torch

    return from_program(path.name, torch.export.load(path), sizes)


def _script(path: Path, sizes: Sizes) -> TorchSource:
    import torch

    module = torch.jit.load(str(path), map_location="cpu").eval()
    return TorchSource(path.name, example_inputs(path.name, required_names(module), sizes), module=module)


_OPENERS = {"exported": _exported, "script": _script, "pickle": from_pickle, "old pickle": from_pickle}
