"""The walk over an ONNX graph: fold what is known, take the branch of an If, lower the rest, collect every problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

import vitrify.ops as ops
from vitrify.core.errors import InternalError, ModelError, UnsupportedError, VitrifyError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.onnx.budget import too_much
from vitrify.importers.onnx.context import POISON, Context, Poison
from vitrify.importers.onnx.controls import CONTROL, carry_out
from vitrify.importers.onnx.elements import graph_dtype, held
from vitrify.importers.onnx.expansions import EXPANSIONS, expand
from vitrify.importers.onnx.folds import FOLDS, TooCostlyError, fold
from vitrify.importers.onnx.folds.reference import by_reference
from vitrify.importers.onnx.hints import HINTS
from vitrify.importers.onnx.lowerings import LOWERINGS
from vitrify.importers.onnx.patterns import join_patterns
from vitrify.importers.onnx.quantized.dynamic import undo_dynamic
from vitrify.importers.onnx.quantized.shifting import shift_unsigned
from vitrify.importers.onnx.quantized.stepped import wrap_stepped
from vitrify.importers.onnx.reading.checks import check, needed
from vitrify.importers.onnx.reading.functions import put_in
from vitrify.importers.onnx.reading.standard import has_body, standard_body
from vitrify.importers.onnx.shapes import blamed, constant_inputs, static_shapes
from vitrify.importers.onnx.source import SourceGraph, SourceModel, SourceNode, SourceValue
from vitrify.ir import Graph, InputBinding, Interface, Model, Origin, OutputBinding, Part, Signature, Tensor

SHOWN_NODES = 8
NEWEST_OPSET = 28
"""That the `onnx` package knows."""
_SIZELESS = ("onnx.unsupported-operator", "onnx.unsupported-form", "onnx.input-type")
MOST_FOLDED_BYTES = 2**31
"""All constants computed at import together: each stays until the import is over."""
SIGNATURE = "serving_default"
UNREAD = -1
"""Position of a source input that the file does not have: a tensor without elements."""


def import_model(source: SourceModel, shapes: Mapping[str, Sequence[int] | int], values: Mapping[str, Any]) -> Model:
    """Turn an ONNX model into a model of TFLite operators in the source's own layout.

    Raises:
        ModelError: the graph is no valid ONNX graph; lists what is wrong.
        UsageError: ``shapes`` or ``values`` do not fit the inputs.
        UnsupportedError: an open shape, or operators without a lowering: one finding per kind.
    """
    put_in(source)
    check(source.graph)
    newer = _newer(source)
    types = {value.name: value.dtype for value in source.graph.inputs}
    constants = constant_inputs(source.graph, values)
    types.update(source.types)
    try:
        extents, notes = static_shapes(source.graph, shapes, source.metadata)
    except UnsupportedError as question:          # no answer to it helps where an operator is refused: say so at once
        raise UnsupportedError([*question.findings, *_refused(source, shapes, types, constants)]) from None
    walk = _walked(source, extents, types, constants)
    walk.raise_problems(blamed(source.graph, shapes) if shapes else "")
    walk.outputs(source.graph)
    model = _model(source, walk.context, extents)
    model.extras["steps"] = walk.context.steps
    model.extras["exporter"] = dict(source.metadata)
    model.extras["findings"] = [*newer, *notes, *walk.context.findings]
    return model


def _walked(
    source: SourceModel, extents: Mapping[str, tuple[int, ...]], types: Mapping[str, str], constants: Mapping[str, Any]
) -> _Walk:
    """The walk over the graph with inputs of these shapes and these constants."""
    walk = _Walk(Context(Graph(source.graph.name or "main"), source.opset))
    walk.context.declared.update(types)
    walk.inputs(source.graph, extents)
    walk.context.values.update(constants)
    walk.run(source.graph)
    return walk


def _refused(
    source: SourceModel, shapes: Mapping[str, Sequence[int] | int], types: Mapping[str, str],
    constants: Mapping[str, Any],
) -> list[Finding]:
    """What is refused whatever the open sizes are, found by trying the ones that the question suggests.

    What depends on sizes, and what does not fit these, is left to the next run.
    """
    unknown = _unknown(source)
    try:
        extents, _ = static_shapes(source.graph, shapes, source.metadata, assume=True)
    except VitrifyError:      # an input is too large as it is
        return unknown
    walk = _walked(source, extents, types, constants)
    return [f for f in walk.findings() if f.code in _SIZELESS] or unknown


def _newer(source: SourceModel) -> list[Finding]:
    """A warning about an operator set that came after this was written."""
    if source.opset <= NEWEST_OPSET:
        return []
    return [
        Finding(
            code="onnx.opset",
            severity=Severity.WARNING,
            headline=f"the model uses ONNX operator set {source.opset}; the newest known is {NEWEST_OPSET}, and "
            "operators are read by it",
            where=source.path,
            why="what later sets changed is not known here",
            help=f"export for operator set {NEWEST_OPSET} or below, or compare the results: vitrify verify",
        )
    ]


class _Walk:
    """One import: the context and the problems met so far."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.missing: dict[str, list[SourceNode]] = defaultdict(list)
        self.errors: list[VitrifyError] = []
        self.folded_bytes = 0

    def inputs(self, graph: SourceGraph, extents: Mapping[str, tuple[int, ...]]) -> None:
        """Make the graph's input tensors."""
        for value in graph.inputs:
            try:
                dtype = graph_dtype(value.dtype)
            except KeyError:
                self.errors.append(_odd_type(value))
                self.context.values[value.name] = POISON
                continue
            self.context.declared[value.name] = value.dtype
            shape = extents[value.name]
            if 0 in shape:  # there is one such tensor only, and no runtime takes it
                self.context.values[value.name] = np.zeros(shape, held(value.dtype))
                continue
            tensor = Tensor(value.name, dtype, shape, origin=Origin.of(value.name))
            self.context.graph.inputs.append(tensor)
            self.context.values[value.name] = tensor

    def run(self, graph: SourceGraph) -> None:
        """Fold or lower every node that the outputs depend on."""
        self.context.findings += undo_dynamic(graph)
        findings, failed = expand(graph)
        self.context.findings += findings
        for node, error in failed:
            self.errors.append(error)
            self._poison(node)
        wrap_stepped(graph)
        shift_unsigned(graph)
        for name, array in graph.constants.items():
            self.context.values[name] = array
            self.context.remember(name, array)
        join_patterns(graph)
        for node in needed(graph):
            self.context.begin(node)
            self._node(node)

    def _node(self, node: SourceNode) -> None:
        context, kind = self.context, node.full_kind
        inputs = [context.values[name] if name else None for name in node.inputs]
        poisoned = any(isinstance(value, Poison) for value in inputs)
        if not _is_known(node):
            computed = None if poisoned else by_reference(node, inputs, self.context.budget)
            if computed is None:
                self.missing[kind].append(node)
                return self._poison(node)
            return context.bind(node, *computed)
        if poisoned:
            return self._poison(node)
        try:
            if not carry_out(self, node):
                self._lower(node, inputs)
        except VitrifyError as error:
            self.errors.append(error)
            self._poison(node)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self.errors.append(_bug(node, error))
            self._poison(node)
        return None

    def _count(self, node: SourceNode, folded: Sequence[Any]) -> None:
        """Refuse to go on when all that was computed at import fills the memory."""
        self.folded_bytes += sum(value.nbytes for value in folded if isinstance(value, np.ndarray))
        if self.folded_bytes > MOST_FOLDED_BYTES:
            raise node.unsupported(
                f"what is computed from constants takes more than {MOST_FOLDED_BYTES >> 30} GiB up to here",
                "leave the constants out of the model, or make them smaller",
            )

    def _lower(self, node: SourceNode, inputs: list[Any]) -> None:
        """Fold a node, lower it, or put in its body; what is known and fits none of these is computed by reference.

        Constants that take too long to compute are left to the operators of run time.
        """
        context, kind, budget = self.context, node.full_kind, self.context.budget
        empty = any(isinstance(value, np.ndarray) and value.size == 0 for value in inputs)
        problem: VitrifyError | None = None
        cost: TooCostlyError | None = None
        try:
            try:
                folded = fold(node, inputs, budget) if kind in FOLDS else None
                if empty and kind not in FOLDS:
                    folded = by_reference(node, inputs, budget)
            except TooCostlyError as found:
                folded, cost = None, found
            if folded is not None:
                self._count(node, folded)
                return context.bind(node, *folded)
            if kind in LOWERINGS:
                return LOWERINGS[kind](context, node)
        except (ModelError, UnsupportedError) as error:
            problem = error
        if cost is not None:
            why = problem.findings[0].headline.removeprefix(f"{node.shown}: ") if problem is not None else ""
            raise too_much(node, cost.operations, budget.spent, why)
        computed = by_reference(node, inputs, budget)
        if computed is not None:
            return context.bind(node, *computed)
        body = standard_body(node, inputs) if problem is None else None
        if body is None:
            raise problem or node.unsupported("its inputs are computed at run time; only constants are taken")
        return self.run(body)

    def _poison(self, node: SourceNode) -> None:
        for name in node.outputs:
            if name:
                self.context.values[name] = POISON

    def raise_problems(self, cause: str = "") -> None:
        """Raise everything collected: what is broken first, else what is not done yet.

        ``cause`` says what else may make nodes invalid, besides the file.
        """
        invalid = [f for e in self.errors if isinstance(e, ModelError) for f in e.findings]
        if invalid and cause:
            invalid[0] = replace(invalid[0], help="\n".join(filter(None, (invalid[0].help, cause))))
        if invalid:
            raise ModelError(invalid)
        bugs = [f for e in self.errors if isinstance(e, InternalError) for f in e.findings]
        if bugs:
            raise InternalError(bugs)
        findings = self.findings()
        if findings:
            raise UnsupportedError(findings)

    def findings(self) -> list[Finding]:
        """Everything collected: kinds without a lowering first."""
        findings = [_missing(kind, nodes, self.context.opset) for kind, nodes in self.missing.items()]
        return findings + [f for e in self.errors for f in e.findings]

    def outputs(self, graph: SourceGraph) -> None:
        """Give the graph its outputs under their ONNX names, each a tensor of its own made by a node."""
        context = self.context
        outputs: dict[Tensor, None] = {}
        for value in graph.outputs:
            found = context.values[value.name]
            if not isinstance(found, Tensor | np.ndarray):
                raise UnsupportedError.of(
                    "onnx.value-type",
                    f"output '{value.name}' is no tensor but a sequence or an optional",
                    where=f"output '{value.name}'",
                    help="give out its elements, or ConcatFromSequence of them",
                )
            if 0 in found.shape:
                raise UnsupportedError.of(
                    "onnx.empty-output",
                    f"output '{value.name}' has no elements: its shape is {list(found.shape)}",
                    where=f"output '{value.name}'",
                    why="no TFLite runtime holds such a tensor",
                    help="cut it off the model: onnx.utils.extract_model with the other outputs",
                )
            tensor = context.constant(found, value.name) if isinstance(found, np.ndarray) else found
            if tensor.producer is None or tensor in outputs:
                context.begin(SourceNode("Identity", "", [], [value.name], {}))
                tensor = context.emit(ops.Reshape(new_shape=tensor.shape), [tensor, np.array(tensor.shape, np.int32)])
            context.claim_name(tensor, value.name)
            outputs[tensor] = None
        context.graph.set_outputs(outputs)
        context.graph.remove_dead()


def _is_known(node: SourceNode) -> bool:
    """True when something here lowers, folds or takes apart nodes of this kind."""
    kind = node.full_kind
    return kind in LOWERINGS or kind in FOLDS or kind in CONTROL or has_body(node)


def _unknown(source: SourceModel) -> list[Finding]:
    """The kinds of operators that nothing here knows, whatever the shapes."""
    missing: dict[str, list[SourceNode]] = defaultdict(list)
    for node in needed(source.graph):
        if not _is_known(node) and node.full_kind not in EXPANSIONS:
            missing[node.full_kind].append(node)
    return [_missing(kind, nodes, source.opset) for kind, nodes in missing.items()]


def _odd_type(value: SourceValue) -> UnsupportedError:
    return UnsupportedError.of(
        "onnx.input-type",
        f"input '{value.name}' has the element type {value.dtype or '(none)'}, which no TFLite model takes here",
        where=f"input '{value.name}'",
    )


def _bug(node: SourceNode, error: Exception) -> InternalError:
    """A lowering that fell over: one broken node must not hide the others, nor look like the user's fault."""
    finding = Finding(
        code="internal.lowering",
        headline=f"lowering {node.shown} failed: {type(error).__name__}: {error}",
        where=f"node '{node.label}'",
        help="this is a bug of Vitrify's; report it with the model, or with this node and its inputs",
    )
    problem = InternalError(finding)
    problem.__cause__ = error
    return problem


def _missing(kind: str, nodes: list[SourceNode], opset: int) -> Finding:
    names = ", ".join(f"'{n.label}'" for n in nodes[:SHOWN_NODES])
    more = f" and {len(nodes) - SHOWN_NODES} more" if len(nodes) > SHOWN_NODES else ""
    count = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
    why = "" if "::" not in kind else "of other domains, ONNX Runtime's operators that are made of ONNX's are converted"
    if nodes[0].inside is not None:
        why = f"{nodes[0].inside.kind} is made of it: {nodes[0].shown}"
    return Finding(
        code="onnx.unsupported-operator",
        headline=f"{kind} is not supported: {count} (operator set {opset})",
        where=f"node{'s' if len(nodes) > 1 else ''} {names}{more}",
        why=why,
        help=HINTS.get(kind, ""),
    )


def _model(source: SourceModel, context: Context, extents: Mapping[str, tuple[int, ...]]) -> Model:
    graph = context.graph
    inputs = {t.name: i for i, t in enumerate(graph.inputs)}
    outputs = {t.name: i for i, t in enumerate(graph.outputs)}
    interface = Interface(
        inputs=tuple(
            InputBinding(name=v.name, shape=extents[v.name], dtype=v.dtype, position=inputs.get(v.name, UNREAD))
            for v in source.graph.inputs
        ),
        outputs=tuple(
            OutputBinding(name=v.name, shape=t.shape, dtype=_dtype(v, t), parts=(Part(position=i),))
            for i, (v, t) in enumerate(zip(source.graph.outputs, graph.outputs, strict=True))
        ),
        source_format="onnx",
    )
    description = (
        source.description or f"{source.producer or 'ONNX'} graph '{source.graph.name}', operator set {source.opset}"
    )
    return Model(
        graphs=[graph],
        signatures=[Signature(SIGNATURE, 0, inputs, outputs)],
        description=description,
        interface=interface,
        source=source.path,
    )


def _dtype(value: SourceValue, tensor: Tensor) -> str:
    return value.dtype or tensor.dtype.label
