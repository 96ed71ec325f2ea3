"""Importers bring a model file into the IR; which one is decided by the file's content, never by its name.

An importer is a module with ``match(head, size) -> bool``, which peeks at the first bytes, and
``load(path, sizes, values) -> Model``, ``sizes`` being shapes by input and extents by the name of a dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from vitrify.core.errors import ModelError, UsageError
from vitrify.core.files import look, temporary_folder
from vitrify.importers.exchange import FrontEnd, Request, front_end, sized
from vitrify.ir import Model

HEAD_BYTES = 4096
_IMPORTERS = ("vitrify.importers.tflite", "vitrify.importers.onnx")
# What other formats begin with, so that the refusal can name them.
_FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive (a PyTorch .pt/.pt2 or a Keras .keras file begins like this)"),
    (b"\x89HDF\r\n", "an HDF5 file (Keras .h5)"),
    (b"\x80\x02", "a Python pickle (an old PyTorch checkpoint)"),
    (b"GGUF", "a GGUF file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself: run `git lfs pull`"),
    (b"<!DOCTYPE", "an HTML page, not a model"),
    (b"<html", "an HTML page, not a model"),
    (b"<?xml", "an XML file"),
    (b"{", "a JSON file"),
)


def load(
    path: str | Path,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    values: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Model:
    """Load a model file of any supported format into the IR.

    Args:
        path: the model file. It is never written to.
        shapes: static shapes for graph inputs by name, the name ``""`` standing for the only input; a number instead of
            a shape fixes the dimension of that name in every input.
        values: constants to put in the place of graph inputs, by name (a sample rate, a flag).
        trust: load a file that runs code of its own, such as a pickled PyTorch module.
    Raises:
        ModelError: the file is broken, or of no known format.
        UsageError: ``path`` is missing, unreadable, a folder or no regular file, or ``shapes`` or ``values`` do not fit
            the model.
        UnsupportedError: the model is valid, but something in it is not done yet.
    """
    file = Path(path)
    front = front_end(file)
    if front is not None:
        return _exchanged(front, file, Request(sizes=sized(shapes or {}), trust=trust), values or {})
    model: Model = _importer(file).load(file, shapes or {}, values or {})
    return model


def refuse_unknown(path: Path) -> None:
    """Refuse a file that is of no known format, by its first bytes, and say what it is instead.

    Raises:
        ModelError: it is empty, or of no known format.
        UsageError: it is missing, unreadable or a folder.
    """
    if front_end(path) is None:
        _importer(path)


def _importer(file: Path) -> Any:
    """Return the package that reads a file of this content."""
    head, size = _peek(file)
    for name in _IMPORTERS:
        importer = import_module(name)
        if importer.match(head, size):
            return importer
    seen = next((text for magic, text in _FOREIGN if head.startswith(magic)), "")
    raise ModelError.of(
        "file.unknown",
        f"'{file}' is neither an ONNX nor a TFLite model" + (f": it is {seen}" if seen else ""),
        where=str(file),
        help="give a .onnx or .tflite file; export PyTorch models with torch.onnx.export",
    )


def _exchanged(front: FrontEnd, file: Path, request: Request, values: Mapping[str, Any]) -> Model:
    """Load what a training framework's exporter makes of its model."""
    with temporary_folder() as folder:
        found = front.exchange(file, folder, request)
        model = load(found.path, request.sizes, values)
    model.source = str(file)
    model.extras["findings"] = [*found.findings, *model.extras.get("findings", ())]
    return model


def _peek(file: Path) -> tuple[bytes, int]:
    """Return the first bytes and the size of a file, or say why it cannot be had."""
    if look(file) is not None and file.is_dir():
        raise UsageError.of(
            "file.folder",
            f"'{file}' is a folder, not a model file",
            where=str(file),
            help="name the .onnx or .tflite file in it",
        )
    try:
        with file.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            size = stream.seek(0, 2)
    except FileNotFoundError:
        raise UsageError.of("file.missing", f"there is no file '{file}'", where=str(file)) from None
    except OSError as error:
        raise UsageError.of(
            "file.permission", f"cannot read '{file}': {error.strerror or error}", where=str(file)
        ) from error
    if not head:
        raise ModelError.of(
            "file.empty", f"'{file}' is empty (0 bytes)", where=str(file), help="fetch or export the model again"
        )
    return head, size
