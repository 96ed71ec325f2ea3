"""Quantizing a model: copy, prepare, refuse or plan, apply, check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from vitrify.core.errors import DataError, ModelError, UnsupportedError
from vitrify.core.findings import Finding, Severity
from vitrify.ir import DType, Graph, Ledger, LedgerEntry, Model, Node, Tensor
from vitrify.ir.inheriting import inherit_origins
from vitrify.ir.ledger import Exactness
from vitrify.ir.naming import make_names_unique
from vitrify.ir.validation import validate
from vitrify.ops import Dequantize, Quantize
from vitrify.quant.applying import apply
from vitrify.quant.boundary import convert_boundary
from vitrify.quant.calibration.calibrators import node_names
from vitrify.quant.calibration.observe import keys, watches
from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.copying import copy_model
from vitrify.quant.equalizing.scaling import equalize
from vitrify.quant.forms.amplitudes import PASS as AMPLITUDES
from vitrify.quant.forms.amplitudes import use_amplitudes
from vitrify.quant.forms.faint import faint_layers
from vitrify.quant.forms.islands import Islands, cut_out, island_nodes
from vitrify.quant.forms.lstm import sequences, write_sequences
from vitrify.quant.forms.norms import part_roots
from vitrify.quant.forms.pixels import pixel_inputs
from vitrify.quant.forms.preparing import fold_half_weights
from vitrify.quant.forms.quotients import PASS as QUOTIENTS
from vitrify.quant.forms.quotients import quotients, write_quotients
from vitrify.quant.forms.sequences import FORM, steps, too_long
from vitrify.quant.forms.states import state_nodes
from vitrify.quant.forms.tables import tables, write_tables
from vitrify.quant.forms.wide import is_peaked, wide_nodes, write_out
from vitrify.quant.outputs.conflicts import Conflict, conflict_findings, resolved
from vitrify.quant.outputs.rescaling import rescale_joins
from vitrify.quant.outputs.splitting import split_outputs
from vitrify.quant.outputs.tails import leaving
from vitrify.quant.outputs.unjoining import unjoin_cuts
from vitrify.quant.overruling import overruled
from vitrify.quant.planning import Plan, natural_ranges, plan
from vitrify.quant.reach import reach_findings
from vitrify.quant.recipe import Recipe, override_line
from vitrify.quant.rules import roles, rule_of, touches_reals
from vitrify.quant.selecting import selected, settled
from vitrify.quant.weights.winning import weights_won

SHOWN = 20
"""How many nodes of one operator a refusal names."""

ISLAND = "to keep it in float, say so in the recipe: "


@dataclass(frozen=True)
class QuantizeResult:
    """The int8 model, what was done to it, what is worth knowing, and the nodes that stay in float by the recipe."""

    model: Model
    ledger: Ledger
    findings: tuple[Finding, ...]
    plan: Plan
    islands: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def quantize(model: Model, statistics: Statistics, recipe: Recipe = Recipe()) -> QuantizeResult:
    """Turn a float model into a full-integer int8 model; ``model`` itself is not changed.

    Args:
        model: a float TFLite graph, the one that ``statistics`` were taken from.
        statistics: what calibration saw.
        recipe: what is quantized how.

    Raises:
        UsageError: an override of the recipe selects nothing.
        UnsupportedError: operators without an int8 form; names every one.
        ModelError: the model is quantized already, or computes NaN or infinities.
        DataError: the statistics belong to another model.
    """
    recipe = settled(recipe, model.main)
    refuse_unquantizable(model, recipe)
    told = overruled(recipe, selected(recipe, model.main))
    made = copy_model(model)
    graph = made.main
    ledger = Ledger()
    fold_half_weights(graph)
    _equalize(graph, statistics, ledger)
    _check_statistics(graph, statistics, recipe)
    _unjoin(graph, ledger)
    statistics, findings = _use_amplitudes(graph, statistics, recipe, ledger)
    split = split_outputs(made, statistics, recipe, ledger)
    findings += [*told, *split.findings]
    statistics, rescaled = rescale_joins(graph, statistics, natural_ranges(graph, statistics, recipe),
                                         recipe.split_levels, ledger)
    kept = island_nodes(graph, recipe)
    findings += reach_findings(graph, statistics, recipe, kept)
    statistics, fixed = (statistics, {}) if recipe.input_type == "int16" else \
        pixel_inputs(made, statistics, ledger)
    before = len(graph)
    known = _write_quotients(graph, statistics, recipe, ledger, kept) | split.known
    wide = _widths(graph, statistics, recipe, known, split.fine, kept)
    natural = natural_ranges(graph, statistics, recipe, wide, known)
    islands = cut_out(graph, kept, natural) if kept else Islands()
    known |= islands.known
    looked_up, recurrent = tables(graph, wide, natural), sequences(graph)
    planned = plan(graph, statistics, recipe, fixed, wide, known)
    conflicts = resolved(split.conflicts, split.solved, planned.requantize, rescaled)
    won = weights_won(planned, statistics.moments, before)
    apply(graph, planned)
    write_tables(graph, looked_up)
    write_sequences(recurrent, statistics)
    islands.settle()
    findings += islands.findings
    convert_boundary(graph, recipe, planned.outputs, {t for n in split.fine for t in n.outputs})
    make_names_unique(graph)
    inherit_origins(graph)
    validate(made)
    for entry in won:
        ledger.add(entry)
    _record(ledger, graph, before, wide, planned)
    findings += _findings(graph, findings, statistics, conflicts)
    return QuantizeResult(made, ledger, tuple(findings), planned, tuple(n.name for n in islands.nodes),
                          tuple(conflicts))


def _widths(graph: Graph, statistics: Statistics, recipe: Recipe, known: dict[Tensor, Range], fine: Set[Node],
            kept: Set[Node]) -> set[Node]:
    """Choose the nodes that compute in 16 bits and write out those that have no such kernel; adds to ``known``."""
    parted = set[Node]()
    if recipe.norms == "int16":
        ranges, parted = part_roots(graph, natural_ranges(graph, statistics, recipe, known=known))
        known |= ranges
    more = _demanding(graph, statistics, recipe, known)
    wide = (wide_nodes(graph, recipe, statistics) | fine | parted | more) - kept
    if wide:
        known |= write_out(graph, wide, natural_ranges(graph, statistics, recipe, wide, known))
    return wide


def _demanding(graph: Graph, statistics: Statistics, recipe: Recipe, known: dict[Tensor, Range]) -> set[Node]:
    """The nodes that faint layers and states ask 16 bits of, but for those that the recipe speaks of."""
    found = state_nodes(graph) if recipe.states == "int16" else set[Node]()
    if recipe.faint == "int16":
        found |= faint_layers(graph, statistics, natural_ranges(graph, statistics, recipe, known=known))
    return {node for node in found if recipe.override(node_names(node), node.op.kind).activations is None}


def _record(ledger: Ledger, graph: Graph, before: int, wide: Set[Node], planned: Plan) -> None:
    """Enter what became 16 and 8 bits in the ledger."""
    if wide:
        ledger.add(LedgerEntry(name="wide", summary="operators that compute with 16-bit activations",
                               nodes_before=before, changes=len(wide), nodes_after=len(graph),
                               exactness=Exactness.APPROXIMATE, examples=[n.name for n in graph if n in wide][:5]))
    ledger.add(LedgerEntry(name="quantize", summary="float32 to int8, weights symmetric, activations with zero point",
                           changes=len(planned.activations), nodes_before=before, nodes_after=len(graph),
                           exactness=Exactness.APPROXIMATE,
                           note=f"{len(planned.requantize)} requantizations between operators"))


def _findings(graph: Graph, told: Sequence[Finding], statistics: Statistics,
              conflicts: Sequence[Conflict]) -> list[Finding]:
    """What is worth knowing of the finished graph besides what was ``told``.

    Raises:
        ModelError: something in both would not run.
    """
    named = keys(graph)     # a softmax over long rows is safe in 8 bits where each row had a clear winner
    problems = [f for node in graph for f in _checks(node)
                if f.code != "ops.long_softmax" or not is_peaked(node, named, statistics)]
    errors = [f for f in (*told, *problems) if f.severity is Severity.ERROR]
    if errors:
        raise ModelError(errors)
    random = [_random_warning()] if statistics.is_random else []
    return [*random, *conflict_findings(conflicts), *problems]


def refuse_unquantizable(model: Model, recipe: Recipe = Recipe()) -> None:
    """Refuse a model that has no full-integer form, naming everything that stands in the way.

    What only outputs depend on may go to the host, unless the recipe keeps the outputs.

    Raises:
        UnsupportedError: operators without an int8 kernel, or several graphs.
        ModelError: the model is quantized already.
    """
    graph = model.main
    refuse_quantized(graph)
    missing: dict[str, list[Node]] = {}
    hosted = leaving(graph) if recipe.outputs != "keep" else set()
    islands = island_nodes(graph, recipe)
    for node in graph:
        if touches_reals(node) and rule_of(node) is None and not _is_half_weight(node) and node not in hosted | islands:
            missing.setdefault(node.op.kind, []).append(node)
    findings = [found for kind, nodes in missing.items() for found in _without_form(kind, nodes)]
    if len(model.graphs) > 1:
        findings.append(Finding(code="quant.graphs", headline=f"the model has {len(model.graphs)} graphs, full-integer "
                                "quantization takes 1", why="control flow and stored state have no int8 form here",
                                help="convert the ONNX or PyTorch model that this one was made from: its loops and "
                                     "branches are written out"))
    findings += [_running_weights(n) for n in graph if _has_running_weights(n) and n not in islands]
    if findings:
        raise UnsupportedError(findings)


def refuse_quantized(graph: Graph) -> None:
    """Refuse a graph with integers in it that stand for real numbers.

    Raises:
        ModelError: it has some.
    """
    quantized = [n for n in graph if isinstance(n.op, Quantize)
                 or (isinstance(n.op, Dequantize) and n.input(0).dtype is not DType.FLOAT16)]
    integers = [t for t in graph.tensors() if t.quantization is not None and t.dtype in (DType.INT8, DType.UINT8)
                and t.quantization.scale.size]
    if quantized or integers:
        where = f"node '{quantized[0].name}'" if quantized else f"tensor '{integers[0].name}'"
        raise ModelError(Finding(code="quant.quantized", where=where,
                                 why="its values are rounded to steps already; rounding them anew only loses",
                                 help="give the float model that this one was made from",
                                 headline=f"the model is quantized already: {len(integers)} tensors have a scale"))


def _is_half_weight(node: Node) -> bool:
    return isinstance(node.op, Dequantize) and node.input(0).is_constant and node.input(0).dtype is DType.FLOAT16


def _without_form(kind: str, nodes: Sequence[Node]) -> list[Finding]:
    """What to say of the nodes of one operator: each sequence that is too long, the others together."""
    long = {id(node): found for node in nodes if (found := too_long(node)) is not None}
    others = [node for node in nodes if id(node) not in long]
    return [*long.values(), *([_missing(kind, others)] if others else [])]


def _missing(kind: str, nodes: Sequence[Node]) -> Finding:
    names = ", ".join(f"'{n.name}'" for n in nodes[:SHOWN]) + (f" and {len(nodes) - SHOWN} more" if
                                                              len(nodes) > SHOWN else "")
    problem = getattr(nodes[0].op, "int8_problem", "")
    sources = dict.fromkeys(str(n.origin) for n in nodes[:SHOWN] if n.origin.sources)
    return Finding(code="quant.no_int8", headline=f"{len(nodes)} x {kind} would stay in float: it has no int8 kernel",
                   where=f"nodes {names}" + (f"; in the source {', '.join(sources)}" if sources else ""),
                   why=f"it {problem}" if problem else FORM if steps(nodes[0]) else
                   "a full-integer model holds no float operator", help=ISLAND + override_line(
                       operator=kind, activations="float"))


def _has_running_weights(node: Node) -> bool:
    found, rule = roles(node), rule_of(node)
    return (found is not None and rule is not None and rule.weight is not None and rule.weight_axis is not None
            and found.weight is None and touches_reals(node))


def _running_weights(node: Node) -> Finding:
    return Finding(code="quant.weights", where=f"node '{node.name}'",
                   headline=f"{node.op.kind} '{node.name}' computes its weights at run time; int8 needs constants",
                   why="weights have a scale for each channel, and rounded sums beside them",
                   help=ISLAND + override_line(nodes=[node.name], activations="float"))


def _check_statistics(graph: Graph, statistics: Statistics, recipe: Recipe) -> None:
    watched = watches(graph, recipe)
    missing = [w.key for w in watched if w.key not in statistics]
    if missing:
        raise DataError.of("quant.statistics", f"{len(missing)} of {len(watched)} tensors were not observed, the first "
                           f"is '{missing[0]}'", why="the statistics were taken from another model",
                           help="calibrate this model again")
    broken = [w.key for w in watched if statistics[w.key].nan_sample is not None]
    if broken:
        raise ModelError(nan_finding(broken, f"sample {statistics[broken[0]].nan_sample}"))


def nan_finding(tensors: Sequence[str], sample: str) -> Finding:
    """Say which tensors held NaN or infinity; the first in order of the graph is where it began."""
    others = f", and in {len(tensors) - 1} tensors after it" if len(tensors) > 1 else ""
    return Finding(code="quant.not_finite", headline=f"tensor '{tensors[0]}' holds NaN or infinity{others}",
                   where=sample, why="a range cannot be found for it",
                   help="check the sample's values and the model's pre-processing")


def _equalize(graph: Graph, statistics: Statistics, ledger: Ledger) -> None:
    """Scale channels as calibration had them."""
    changed = equalize(graph, statistics.scales, keys(graph)) if statistics.scales else 0
    if changed:
        ledger.add(LedgerEntry(name="equalize", summary="channels scaled against each other, for one scale to fit them",
                               changes=changed, nodes_before=len(graph), nodes_after=len(graph),
                               exactness=Exactness.ROUNDING,
                               note=f"rounding costs the layers that read them {statistics.scaled_db:.1f} dB less, by "
                                    "the ranges and weights of the first sample"))


def _unjoin(graph: Graph, ledger: Ledger) -> None:
    before = len(graph)
    undone = unjoin_cuts(graph)
    if undone:
        ledger.add(LedgerEntry(name="unjoin-cuts", summary="parts that were joined and cut again go their own ways",
                               changes=undone, nodes_before=before, nodes_after=len(graph)))


def _write_quotients(graph: Graph, statistics: Statistics, recipe: Recipe, ledger: Ledger,
                     kept: Set[Node]) -> dict[Tensor, Range]:
    found, before = [n for n in quotients(graph) if n not in kept], len(graph)
    if not found:
        return {}
    made = write_quotients(graph, found, natural_ranges(graph, statistics, recipe))
    ledger.add(LedgerEntry(name=QUOTIENTS, summary="quotients by reciprocals, or in 16 bits by what is never 0",
                           changes=len(found), nodes_before=before, nodes_after=len(graph),
                           exactness=Exactness.ROUNDING, examples=[n.name for n in found[:5]]))
    return made


def _use_amplitudes(graph: Graph, statistics: Statistics, recipe: Recipe,
                    ledger: Ledger) -> tuple[Statistics, list[Finding]]:
    before = len(graph)
    made = use_amplitudes(graph, statistics, recipe)
    if made.changes:
        ledger.add(LedgerEntry(name=AMPLITUDES, summary="roots and logarithms of power computed from amplitudes",
                               changes=made.changes, nodes_before=before, nodes_after=len(graph),
                               exactness=Exactness.APPROXIMATE,
                               note="48 dB kept instead of 24; roots up to 1.9 % short, logarithms 0.69 dB"))
    return made.statistics, made.findings


def _checks(node: Node) -> Iterable[Finding]:
    check = getattr(node.op, "check", None)
    return check(node) if check is not None else ()


def _random_warning() -> Finding:
    return Finding(code="quant.random", severity=Severity.WARNING,
                   headline="the ranges come from random samples, not from real data",
                   why="accuracy on real inputs is unknown", help="calibrate with --data and real samples")
