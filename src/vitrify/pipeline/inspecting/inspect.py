"""`inspect`: what a file holds, whatever its name says; of a folder, what each model in it is."""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

from vitrify.core.errors import ModelError, UsageError, VitrifyError
from vitrify.core.files import look
from vitrify.core.findings import Finding, Severity
from vitrify.importers.exchange import front_end
from vitrify.ir import Model
from vitrify.pipeline.files import existing
from vitrify.pipeline.inspecting.quantization import quantization_rows
from vitrify.pipeline.rows import model_facts
from vitrify.results import FileRow, InspectResult

ENDINGS = (".tflite", ".lite", ".onnx", ".pt2", ".pt", ".pth", ".torchscript")
SHOWN_METADATA = 200
SHOWN_NODES = 50


def inspect_path(path: Path) -> InspectResult:
    """Describe a model file, or each model file below a folder.

    Raises:
        VitrifyError: there is nothing to read, or it is no model.
    """
    found = look(path)
    if found is None or not stat.S_ISDIR(found.st_mode):
        return _file(existing(path))
    front = front_end(path)
    return _folder(path) if front is None else front.inspect(path)


def _file(path: Path) -> InspectResult:
    from vitrify import importers
    from vitrify.importers import onnx, tflite

    with path.open("rb") as stream:
        head = stream.read(importers.HEAD_BYTES)
    if tflite.match(head, path.stat().st_size):
        return _tflite(path)
    if onnx.match(head, path.stat().st_size):
        from vitrify.pipeline.inspecting.onnx_files import inspect_onnx

        return inspect_onnx(path)
    front = front_end(path)
    if front is not None:
        return front.inspect(path)
    importers.load(path)               # knows best what the file is instead, and says so
    raise ModelError.of("file.unknown", f"'{path}' is neither an ONNX nor a TFLite model", where=str(path))


def _tflite(path: Path) -> InspectResult:
    from vitrify import tflite

    try:
        model = tflite.read(path)
    except ModelError:
        compiled = _compiled(path)
        if compiled is None:
            raise
        return compiled
    facts, found = model_facts(model, str(path), path.stat().st_size), tflite.contents(model)
    named = [node.name for graph in model.graphs for node in tflite.float_operators(graph)]
    return InspectResult(
        file=str(path), format="tflite", kind=facts.kind, summary=str(found), bytes=facts.bytes, inputs=facts.inputs,
        outputs=facts.outputs, operators=facts.operators, float_operators=len(named), float_nodes=named[:SHOWN_NODES],
        transposes=facts.transposes, npu_graphs=found.npu_graphs, parameters=facts.parameters, macs=_macs(model),
        signatures={s.key: {"inputs": list(s.inputs), "outputs": list(s.outputs)} for s in model.signatures},
        metadata={name: _text(data) for name, data in model.metadata.items()},
        producer=model.description, graphs=len(model.graphs), quantization=quantization_rows(model),
        preprocess=_preprocess(model))


def _preprocess(model: Model) -> dict[str, Any]:
    from msgspec import json

    from vitrify.data.preprocess import remembered

    how = remembered(model)
    plain: dict[str, Any] = {} if how is None else json.decode(json.encode(how))
    return plain


def _compiled(path: Path) -> InspectResult | None:
    """Describe a compiled file in which several NPU operators write parts of one tensor, as no graph has it."""
    from vitrify.backends.vela.compiled import NPU_OPERATOR, read_compiled

    found = read_compiled(path)
    if not found.npu:
        return None
    counts = Counter([NPU_OPERATOR] * len(found.npu) + [operator.kind for operator in found.cpu])
    text = f"compiled: {len(found.npu)} {NPU_OPERATOR} graphs by Vela for Arm Ethos-U, {len(found.cpu)} other operators"
    return InspectResult(file=str(path), format="tflite", kind="compiled", summary=text, bytes=path.stat().st_size,
                         operators=dict(counts.most_common()), npu_graphs=len(found.npu),
                         transposes=counts["TRANSPOSE"])


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
        os.scandir(path).close()
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
    from vitrify import tflite

    choice = tflite.choose([file for file in files if file.suffix.lower() in (".tflite", ".lite")])
    suits = {candidate.path: candidate for candidate in choice.candidates}
    for file, row in zip(files, result.files, strict=True):
        candidate = suits.get(file)
        if candidate is not None and candidate.contents is not None:
            row.suits_int8_npu, row.reason = candidate.suits, candidate.reason
    best = f"for an int8 NPU take {choice.best.relative_to(path)}" if choice.best else "none suits an int8 NPU as it is"
    result.summary = f"{len(files)} model files; {best}"
    return result


def _row(root: Path, file: Path, findings: list[Finding]) -> FileRow:
    name, size = str(file.relative_to(root)), file.stat().st_size
    try:
        seen = _file(file)
    except VitrifyError as error:
        findings += [Finding(code=f.code, severity=Severity.WARNING, headline=f.headline, where=f.where, why=f.why,
                             help=f.help) for f in error.findings]
        return FileRow(file=name, format="unknown", kind="unreadable", bytes=size, text=error.findings[0].headline)
    return FileRow(file=name, format=seen.format, kind=seen.kind, bytes=size, text=seen.summary,
                   reason="" if seen.format == "tflite" else "it is not TFLite: quantize it")
