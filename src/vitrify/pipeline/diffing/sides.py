"""One model of a comparison: read as its format demands, and described."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding
from vitrify.core.progress import Reporter
from vitrify.ir import DType, Graph, InputBinding, Model, Node, OutputBinding, Tensor
from vitrify.matching import SourceEntry
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.exchange import exchanged
from vitrify.pipeline.files import existing
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.rows import tensor_row
from vitrify.pipeline.steps import is_tflite, step
from vitrify.results import TensorRow
from vitrify.results.diffing import DiffSide

NMS = ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "TFLite_Detection_PostProcess")
"""Operators that select boxes."""

SELECTING = ("TOPK_V2",)
"""Select the best too, where it stands behind the last weights."""

WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "CONV_3D", "BATCH_MATMUL")
ARITHMETIC = ("ADD", "SUB", "MUL", "DIV", "EXP", "ARG_MAX", *SELECTING, *NMS)
"""Behind the last weights, these turn what a network gives into boxes and the like."""

POSITIONS = 48
"""A table of so many positions with different values beside arithmetic is a grid of anchors."""


@dataclass
class Read:
    """A model with what the comparison needs besides."""

    model: Model
    side: DiffSide
    sources: list[SourceEntry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        """The graph that is compared."""
        return self.model.main


def read_side(source: Path | Model, options: ConvertOptions, reporter: Reporter) -> Read:
    """Read a model; what is not TFLite goes the way of ``convert`` first, which brings all formats to one form.

    Raises:
        VitrifyError: there is no such file, it is no model, or something in it is not supported.
    """
    if isinstance(source, Model):
        if not source.graphs:
            raise ModelError.of("diff.empty", "the model has no graph")
        return Read(source, describe(source, source.source or "(in memory)", "in memory"))
    if is_tflite(existing(source)):
        return _read_tflite(source, reporter)
    with exchanged(source, options, reporter) as (file, told):
        if is_tflite(file):
            found = _read_tflite(file, reporter)
            found.side.file = str(source)
            return found
        model, _ = float_model(file, options, reporter)
        return Read(model, describe(model, str(source), "onnx"), source_entries(file), list(told))


def _read_tflite(path: Path, reporter: Reporter) -> Read:
    from vitrify import tflite
    from vitrify.pipeline.diffing.compiled import drawn

    with step(reporter, "read") as note:
        try:
            model = tflite.read(path)
        except ModelError:
            model_ = drawn(path)
            if model_ is None:
                raise
            model = model_
        note.text = f"{len(model.main)} nodes in {path.name}"
    return Read(model, describe(model, str(path), "tflite"))


def source_entries(path: Path) -> list[SourceEntry]:
    """The nodes of an ONNX file; those of its functions and subgraphs are in the nodes that hold them."""
    from vitrify.importers.onnx.reading.reader import read

    graph = read(path).graph
    return [SourceEntry(node.label, node.full_kind, tuple(node.inputs), tuple(node.outputs)) for node in graph.nodes]


def describe(model: Model, file: str, form: str) -> DiffSide:
    """Say what a model holds, as far as it tells why another one behaves otherwise."""
    from vitrify.tflite import contents, float_operators

    found = contents(model)
    floating = [node.name for graph in model.graphs for node in float_operators(graph)]
    weights = [t for node in model.main if node.op.kind in WEIGHTED for t in node.inputs[1:2] if t is not None
               and t.is_constant and t.quantization is not None and t.quantization.scale.size]
    decode, nms = _tail(model.main)
    per_axis = sum(t.quantization is not None and t.quantization.scale.size > 1 for t in weights)
    inputs, outputs = _ends(model, form)
    return DiffSide(
        file=file, format=form, kind=found.kind.value, producer=model.description, nodes=len(model.main),
        graphs=len(model.graphs), operators=found.operators, float_operators=found.floating, float_nodes=floating,
        transposes=found.operators.get("TRANSPOSE", 0), nms=nms, decode=decode, per_axis=per_axis,
        per_tensor=len(weights) - per_axis, stored_float16=found.float16_weights, npu_graphs=found.npu_graphs,
        inputs=inputs, outputs=outputs, host_steps=host_steps(model))


def host_steps(model: Model) -> int:
    """Steps of arithmetic behind the file's outputs that are left to the host."""
    host = None if model.interface is None else model.interface.host
    return 0 if host is None else len(host.steps)


def _ends(model: Model, form: str) -> tuple[list[TensorRow], list[TensorRow]]:
    """Inputs and outputs as the file has them; those of an ONNX file are the source's, in the order of the graph's."""
    graph, interface = model.main, model.interface
    inputs, outputs = [tensor_row(t) for t in graph.inputs], [tensor_row(t) for t in graph.outputs]
    if form == "onnx" and interface is not None:
        for binding in interface.inputs:
            if 0 <= binding.position < len(inputs):
                inputs[binding.position] = _bound(binding)
        for given in interface.outputs:
            if len(given.parts) == 1 and 0 <= given.parts[0].position < len(outputs):
                outputs[given.parts[0].position] = _bound(given)
    return inputs, outputs


def _bound(binding: InputBinding | OutputBinding) -> TensorRow:
    return TensorRow(name=binding.name, shape=list(binding.shape), dtype=binding.dtype)


def _tail(graph: Graph) -> tuple[list[str], list[str]]:
    """The nodes behind the last weights that decode, and those that select; a plain head has neither."""
    behind: list[Node] = []
    leads: set[Node] = set()
    for node in reversed(graph.nodes):
        after = [user for tensor in node.outputs for user in tensor.users]
        if (node.op.kind in WEIGHTED and _reads_weights(node)) or any(user in leads for user in after):
            leads.add(node)
        else:
            behind.append(node)
    nms = [n for n in behind if n.op.kind in NMS or getattr(n.op, "custom_code", "") in NMS]
    nms += [n for n in behind if n.op.kind in SELECTING]
    arithmetic = [n for n in behind if n.op.kind in ARITHMETIC]
    decodes = nms or any(_has_grid(node) for node in arithmetic)
    return ([n.name for n in reversed(arithmetic)] if decodes else []), [n.name for n in reversed(nms)]


def _reads_weights(node: Node) -> bool:
    weights = node.optional(1)
    return weights is not None and weights.size > POSITIONS


def _has_grid(node: Node) -> bool:
    return any(_is_grid(t) for t in node.inputs if t is not None)


def _is_grid(tensor: Tensor) -> bool:
    if tensor.data is None or tensor.dtype is DType.BOOL or max(tensor.shape, default=0) < POSITIONS:
        return False
    flat = tensor.data.reshape(-1)
    return bool((flat != flat[0]).any())
