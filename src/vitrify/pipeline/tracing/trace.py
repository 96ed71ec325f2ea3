"""`trace`: one tensor's values in every form of a model, and where it went where it is not there."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.core.progress import Reporter, Silent
from vitrify.ir import Graph, Tensor
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.resources import Meter
from vitrify.pipeline.steps import is_tflite, runs_on_npusim, step
from vitrify.pipeline.tracing.picturing import picture, write_picture
from vitrify.results import RunRecord, TraceResult
from vitrify.results.tracing import TraceRow
from vitrify.runtimes import Runtime

Array = np.ndarray[Any, np.dtype[Any]]
Sample = Mapping[str, Array]
SAMPLES = 4
RECORD = "run.json"


def trace_tensor(forms: Sequence[Path], name: str, data: DataOptions, conversion: ConvertOptions,
                 reporter: Reporter | None = None, *, output: Path | None = None) -> TraceResult:
    """Follow the tensor ``name`` of the first form through all of them.

    Args:
        forms: a folder of a build, or forms of one model.
        name: the tensor's name in the first form, or its node's.
        data: what the forms run on; random values where nothing is given.
        conversion: shapes and values of an ONNX model.
        reporter: is told of progress.
        output: a PNG file for the difference maps.
    Raises:
        VitrifyError: a form cannot be run, or has no such tensor.
    """
    meter, shown = Meter(), reporter or Silent()
    findings: list[Finding] = []
    paths = _forms(forms, findings)
    if not data.given:
        data = msgspec.structs.replace(data, random=True)
        findings.append(Finding(code="data.none", severity=Severity.WARNING, headline="no data given: the forms run on "
                                "random values, which say little of real ones", help="add --data FOLDER"))
    with ExitStack() as stack:
        opened = [stack.enter_context(exchanged(path, conversion, shown))[0] for path in paths]
        work = _Tracing(opened, [path.name for path in paths], name, data, conversion)
        with step(shown, "trace") as note:
            rows = work.run(findings)
            note.text = f"'{work.name}' in {sum(row.state in ('kept', 'reference') for row in rows)} of {len(rows)}"
    files = [] if output is None else write_picture(output, work.name, work.values, rows)
    return TraceResult(tensor=work.name, stages=rows, samples=work.samples, findings=findings, files=files,
                       seconds=meter.seconds)


def _forms(given: Sequence[Path], findings: list[Finding]) -> list[Path]:
    """The files of a build's folder, or those given."""
    if len(given) == 1 and given[0].is_dir() and (given[0] / RECORD).is_file():
        folder = given[0]
        try:
            record = msgspec.json.decode((folder / RECORD).read_bytes(), type=RunRecord)
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError.of("run.record", f"{folder / RECORD} cannot be read: {error}", where=str(folder),
                                help="build the model again") from error
        source = Path(record.model)
        found = [source] if source.is_file() else []
        if not found:
            findings.append(Finding(code="trace.source", severity=Severity.WARNING, where=str(source),
                                    headline="the model that was built is no longer there: the float file is the "
                                             "reference", help="name the forms instead: vitrify trace A B TENSOR"))
        for key in ("float", "int8", "compiled"):
            artifact = record.artifacts.get(key)
            if artifact is None:
                continue
            path = folder / artifact.file
            if path.is_file():
                found.append(path)
            else:
                findings.append(Finding(code="trace.missing", severity=Severity.WARNING, where=str(path),
                                        headline=f"the stage '{key}' is missing: its file is not there",
                                        help="build again: vitrify build makes what is missing"))
        given = found
    if not given:
        raise UsageError.of("trace.forms", "there is no form to trace a tensor through",
                            help="vitrify trace RUN_FOLDER TENSOR, or vitrify trace A B … TENSOR")
    return [existing(path) for path in given]


class _Tracing:
    def __init__(self, paths: Sequence[Path], names: Sequence[str], name: str, data: DataOptions,
                 conversion: ConvertOptions) -> None:
        self.paths, self.names, self.name = paths, names, name
        self.data, self.conversion = data, conversion
        self.samples = 0
        self.values: list[tuple[str, Array, Array]] = []
        self.made_by = ""

    def run(self, findings: list[Finding]) -> list[TraceRow]:
        from vitrify import runtimes

        first = self.paths[0]
        with runtimes.open(first, shapes=self.conversion.sizes, kernels="optimized",
                           values=None if is_tflite(first) else self.conversion.values) as reference:
            self._resolve(reference, first)
            opened = self.data.open(reference.interface, SAMPLES, purpose="comparison")
            given = list(islice(opened.walk(skipped=[]), SAMPLES))
            self.samples = len(given)
            seen = [self._value(reference, sample) for sample in given]
            graph = _graph(first)
            own = next((t for t in graph.tensors() if t.name == self.name), None) if graph is not None else None
            self.reference = [value for value, _ in seen]
            low = float(min((np.nanmin(v) for v in self.reference if v.size), default=0.0))
            high = float(max((np.nanmax(v) for v in self.reference if v.size), default=1.0))
            span = (low, high) if high > low else (low, low + 1.0)
            rows = [picture(TraceRow(stage=self.names[0], state="reference", **_about(own)), self.reference,
                            [raw for _, raw in seen], None, span)]
            for path, name in zip(self.paths[1:], self.names[1:], strict=True):
                try:
                    rows.append(self._form(path, name, reference, graph, given, span))
                except VitrifyError as error:
                    findings += [msgspec.structs.replace(f, where=f.where or name) for f in error.findings]
                    rows.append(TraceRow(stage=name, state="hidden", where=error.findings[0].headline))
        return rows

    def _resolve(self, reference: Runtime, path: Path) -> None:
        """Accept the name of a tensor, or of the node that makes it."""
        known = [*reference.tensors, *(b.name for b in reference.interface.outputs),
                 *(b.name for b in reference.interface.inputs)]
        entries = [] if is_tflite(path) else _entries(path)
        makers = {name: entry for entry in entries for name in entry.outputs}
        if self.name not in known:
            node = next((entry for entry in entries if entry.name == self.name), None)
            graph = _graph(path)
            here = next((n for n in graph if n.name == self.name), None) if graph is not None else None
            if node is not None or here is not None:
                self.name = node.outputs[0] if node is not None else here.outputs[0].name      # type: ignore[union-attr]
            if self.name not in known:
                near = difflib.get_close_matches(self.name, known, 3, 0.4)
                raise UsageError.of("trace.tensor", f"there is no tensor '{self.name}' in {path.name}",
                                    help="near it are " + ", ".join(f"'{one}'" for one in near) if near else
                                    f"it has {len(known)} tensors, such as '{known[0]}'" if known else "")
        self.made_by = makers[self.name].name if self.name in makers else ""

    def _value(self, reference: Runtime, sample: Sample) -> tuple[Array, Array]:
        if self.name in sample and self.name not in reference.tensors:
            value = np.asarray(sample[self.name])
            return value, value
        if self.name in reference.tensors:
            traced = reference.trace(sample, [self.name])[self.name]
            return np.asarray(traced.value), np.asarray(traced.raw)
        value = np.asarray(reference.run(sample)[self.name])
        return value, value

    def _form(self, path: Path, name: str, reference: Runtime, source: Graph | None, samples: Sequence[Sample],
              span: tuple[float, float]) -> TraceRow:
        from vitrify import runtimes
        from vitrify.verify.locating.inputs import renamed_inputs
        from vitrify.verify.locating.pairing import choose_layouts, fix_outputs, pair_tensors

        if not is_tflite(path):
            with runtimes.open(path, shapes=self.conversion.sizes, values=self.conversion.values) as other:
                if self.name not in other.tensors:
                    return TraceRow(stage=name, state="gone", where=f"there is no tensor '{self.name}'")
                traced = [other.trace(sample, [self.name])[self.name] for sample in samples]
                return self._row(name, None, "", [np.asarray(t.value) for t in traced],
                                 [np.asarray(t.raw) for t in traced], self.reference, span)
        if runs_on_npusim(path):
            return self._compiled(path, name, reference, samples, span)
        from vitrify import tflite

        model = tflite.read(path)
        pairs = [pair for pair in pair_tensors([self.name], model.main, source) if pair.reference == self.name]
        if not pairs:
            return self._lost(name, model.main)
        with runtimes.open(path, kernels="optimized") as candidate:
            pair = pairs[-1]
            given = [renamed_inputs(sample, reference, candidate) for sample in samples]
            traced = [candidate.trace(sample, [pair.tensor.name])[pair.tensor.name] for sample in given]
        values = [np.asarray(one.value) for one in traced]
        pairs = choose_layouts([pair], {self.name: self.reference[0]}, {pair.tensor.name: values[0]},
                               same_format=source is not None)
        if not pairs:
            return TraceRow(stage=name, state="gone", candidate=pair.tensor.name,
                            where=f"'{pair.tensor.name}' has another size, {list(pair.tensor.shape)}")
        fix_outputs(pairs, model)
        wanted = [np.ascontiguousarray(pairs[0].layout.apply(one)) for one in self.reference]
        layout = pairs[0].layout
        return self._row(name, pair.tensor, str(layout) if layout.perm or layout.shape else "", values,
                         [np.asarray(one.raw) for one in traced], wanted, span)

    def _compiled(self, path: Path, name: str, reference: Runtime, samples: Sequence[Sample],
                  span: tuple[float, float]) -> TraceRow:
        from vitrify.runtimes.npusim import NpuSim
        from vitrify.verify.alignment import choose

        with NpuSim(path) as candidate:
            names = {b.name: b.name for b in candidate.interface.inputs}
            if set(names) != set(samples[0]):
                raise UsageError.of("trace.inputs", "its inputs have other names than the first form's",
                                    where=name, help="compile it with `vitrify compile`, which keeps them")
            if self.name not in candidate.tensors:
                return TraceRow(stage=name, state="fused", where="the compiler keeps no tensor of that name: it is "
                                "made and read inside one command, or never whole")
            traced = [candidate.trace(sample, [self.name]).get(self.name) for sample in samples]
        if any(one is None for one in traced):
            return TraceRow(stage=name, state="fused", where="the compiler makes it piece by piece, never whole")
        values = [np.asarray(one.value) for one in traced if one is not None]
        layout = choose(self.reference[0], values[0])
        if layout is None:
            return TraceRow(stage=name, state="gone", where=f"it has another size there, {list(values[0].shape)}")
        row = self._row(name, None, str(layout) if layout.perm or layout.shape else "", values,
                        [np.asarray(one.raw) for one in traced if one is not None],
                        [layout.apply(one) for one in self.reference], span)
        how = traced[0].quantization if traced[0] is not None else None
        if how is not None:
            row.scale, row.zero_point = float(how.scale.reshape(-1)[0]), int(how.zero_point.reshape(-1)[0])
        return row

    def _row(self, name: str, tensor: Tensor | None, layout: str, values: Sequence[Array], raw: Sequence[Array],
             wanted: Sequence[Array], span: tuple[float, float]) -> TraceRow:
        row = TraceRow(stage=name, state="kept", layout=layout, **_about(tensor))
        if tensor is not None and tensor.name != self.name:
            row.candidate = tensor.name
        row.where = ", ".join(part for part in (f"'{row.candidate}'" if row.candidate else "", layout) if part)
        self.values.append((name, np.asarray(wanted[0]), np.asarray(values[0])))
        return picture(row, values, raw, wanted, span)

    def _lost(self, name: str, graph: Graph) -> TraceRow:
        """Say which node does the work that made the tensor, by origins."""
        wanted = {self.name, self.made_by} - {""}
        homes = [node for node in graph if any(source.name in wanted for source in node.origin.sources)]
        if not homes:
            return TraceRow(stage=name, state="gone", where="no node has it as its origin: it was computed "
                            "beforehand, or nothing needs it")
        home = homes[-1]
        others = [source.name for source in home.origin.sources if source.name not in wanted]
        return TraceRow(stage=name, state="fused", operator=home.op.kind, node=home.name,
                        candidate=home.outputs[0].name,
                        where=f"done inside {home.op.kind} '{home.name}', which gives '{home.outputs[0].name}'"
                        + (f"; together with {', '.join(repr(o) for o in others[:4])}" if others else ""))


def _graph(path: Path) -> Graph | None:
    from vitrify import tflite

    return tflite.read(path).main if is_tflite(path) and not runs_on_npusim(path) else None


def _entries(path: Path) -> list[Any]:
    from vitrify.pipeline.diffing.sides import source_entries

    try:
        return source_entries(path)
    except VitrifyError:
        return []      # a file that only its runtime reads has no nodes to name


def _about(tensor: Tensor | None) -> dict[str, Any]:
    if tensor is None:
        return {}
    how, node = tensor.quantization, tensor.producer
    return {"scale": float(how.scale.reshape(-1)[0]) if how is not None else None,
            "zero_point": int(how.zero_point.reshape(-1)[0]) if how is not None else None,
            "operator": node.op.kind if node is not None else "", "node": node.name if node is not None else ""}
