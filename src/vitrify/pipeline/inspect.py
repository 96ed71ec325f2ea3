"""`inspect`: what a file holds, whatever its name says; of a folder, what each model in it is."""

from __future__ import annotations

from pathlib import Path

from vitrify.core.errors import ModelError, UsageError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.results import FileRow, InspectResult
from vitrify.ir import Model
from vitrify.pipeline.files import existing
from vitrify.pipeline.rows import float_nodes, model_facts, npu_graphs

ENDINGS = (".tflite", ".lite", ".onnx")
SUITS_NPU = ("int8",)
SHOWN_METADATA = 200

TEXTS = {
    "float32": "float32 weights and values: quantize it for an int8 NPU",
    "float16": "float16 weights, float32 values: quantize it for an int8 NPU",
    "dynamic-range": "int8 weights, but float values: an int8 NPU takes none of it; quantize the float model instead",
    "int8": "full integer: inputs, values and outputs are integers",
    "int8-float-io": "integer inside, with float inputs or outputs converted at the border on the CPU",
    "int16x8": "int16 values with int8 weights",
    "mixed": "partly integer, partly float: the float part stays on the CPU",
    "compiled": "compiled for an NPU: it runs on that chip only",
}


def inspect_path(path: Path) -> InspectResult:
    """Describe a model file, or each model file below a folder.

    Raises:
        VitrifyError: there is nothing to read, or it is no model.
    """
    return _folder(path) if path.is_dir() else _file(existing(path))


def _file(path: Path) -> InspectResult:
    from vitrify import importers
    from vitrify.importers import onnx, tflite

    with path.open("rb") as stream:
        head = stream.read(importers.HEAD_BYTES)
    if tflite.match(head, path.stat().st_size):
        return _tflite(path)
    if onnx.match(head, path.stat().st_size):
        from vitrify.pipeline.inspect_onnx import inspect_onnx

        return inspect_onnx(path)
    importers.load(path)               # knows best what the file is instead, and says so
    raise ModelError.of("file.unknown", f"'{path}' is neither an ONNX nor a TFLite model", where=str(path))


def _tflite(path: Path) -> InspectResult:
    from vitrify import tflite

    model = tflite.read(path)
    facts = model_facts(model, str(path), path.stat().st_size)
    named = float_nodes(model)
    return InspectResult(
        file=str(path), format="tflite", kind=facts.kind, bytes=facts.bytes, inputs=facts.inputs,
        outputs=facts.outputs, operators=facts.operators, float_operators=len(named), float_nodes=named[:50],
        summary=f"{facts.kind}: {TEXTS.get(facts.kind, '')}",
        transposes=facts.transposes, npu_graphs=npu_graphs(model), parameters=facts.parameters, macs=_macs(model),
        signatures={s.key: {"inputs": list(s.inputs), "outputs": list(s.outputs)} for s in model.signatures},
        metadata={name: _text(data) for name, data in model.metadata.items()},
        producer=model.description, graphs=len(model.graphs))


def _macs(model: Model) -> int | None:
    """Multiplications of one inference, None when an operator cannot tell."""
    total = 0
    for graph in model.graphs:
        for node in graph:
            try:
                total += node.op.macs(node)
            except (VitrifyError, IndexError, TypeError):
                return None
    return total


def _text(data: bytes) -> str:
    """Metadata as text when it is text, else its size."""
    raw = bytes(data)
    try:
        text = raw.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return f"({len(raw)} bytes)"
    if not text.isprintable():
        return f"({len(raw)} bytes)"
    return text if len(text) <= SHOWN_METADATA else f"{text[:SHOWN_METADATA]}... ({len(raw)} bytes)"


def _folder(path: Path) -> InspectResult:
    try:
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in ENDINGS and p.is_file()
                       and not p.name.startswith("."))
    except OSError as error:
        raise UsageError.of("file.permission", f"{path} cannot be listed: {error.strerror}", where=str(path)) from error
    if not files:
        raise ModelError.of("folder.empty", f"no model files below {path}", where=str(path),
                            why=f"known endings: {', '.join(ENDINGS)}")
    result = InspectResult(file=str(path), format="folder", kind="folder")
    for file in files:
        result.files.append(_row(path, file, result.findings))
    suited = [row.file for row in result.files if row.suits_int8_npu]
    result.summary = (f"{len(files)} model files; for an int8 NPU: {', '.join(suited)}" if suited
                      else f"{len(files)} model files; none suits an int8 NPU as it is")
    return result


def _row(root: Path, file: Path, findings: list[Finding]) -> FileRow:
    name, size = str(file.relative_to(root)), file.stat().st_size
    try:
        seen = _file(file)
    except VitrifyError as error:
        findings += [Finding(code=f.code, severity=Severity.WARNING, headline=f.headline, where=f.where, why=f.why,
                             help=f.help) for f in error.findings]
        return FileRow(file=name, format="unknown", kind="unreadable", bytes=size, text=error.findings[0].headline)
    suits = seen.kind in SUITS_NPU
    return FileRow(file=name, format=seen.format, kind=seen.kind, bytes=size, suits_int8_npu=suits, text=seen.summary)
