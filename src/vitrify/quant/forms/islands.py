"""Islands: operators that a recipe keeps in float, between DEQUANTIZE and QUANTIZE.

While scales are planned, the values inside an island have the type float64, which nothing plans; they get their own
back when all others are integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vitrify.core.findings import Finding, Severity
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.ops import Dequantize, Quantize
from vitrify.quant.calibration.calibrators import node_names
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.recipe import Recipe
from vitrify.quant.rules import is_real, touches_reals

PASS = "islands"
SHOWN = 20
"""How many operators a finding names."""


@dataclass
class Islands:
    """The nodes that stay in float, the values inside, and the ranges of what leaves them."""

    nodes: tuple[Node, ...] = ()
    inside: list[Tensor] = field(default_factory=list)
    known: dict[Tensor, Range] = field(default_factory=dict)

    def settle(self) -> None:
        """Give the values inside their type back."""
        for tensor in self.inside:
            tensor.dtype = DType.FLOAT32

    @property
    def findings(self) -> list[Finding]:
        """Say what stays in float."""
        if not self.nodes:
            return []
        names = ", ".join(f"{n.op.kind} '{n.name}'" for n in self.nodes[:SHOWN])
        more = f" and {len(self.nodes) - SHOWN} more" if len(self.nodes) > SHOWN else ""
        sources = dict.fromkeys(str(n.origin) for n in self.nodes[:SHOWN] if n.origin.sources)
        return [Finding(code="quant.islands", severity=Severity.WARNING,
                        headline=f"{len(self.nodes)} operator{'s stay' if len(self.nodes) > 1 else ' stays'} in float",
                        where=f"nodes {names}{more}" + (f"; in the source {', '.join(sources)}" if sources else ""),
                        why="the recipe keeps them so; no NPU takes them, and each island costs two conversions",
                        help="leave their override out of the recipe to quantize them")]


def island_nodes(graph: Graph, recipe: Recipe) -> set[Node]:
    """The nodes that the recipe keeps in float."""
    if all(rule.activations != "float" for rule in recipe.overrides):
        return set()
    return {node for node in graph if touches_reals(node)
            and recipe.override(node_names(node), node.op.kind).activations == "float"}


def cut_out(graph: Graph, nodes: set[Node], ranges: Mapping[Tensor, Range]) -> Islands:
    """Put the conversions around nodes; ``ranges`` are those of the float graph.

    Before:  %y = CUMSUM(%x)
    After:   %1 = DEQUANTIZE(%x);  %2 = CUMSUM(%1);  %y = QUANTIZE(%2)
    What the model gives out of an island stays float.
    """
    made = Islands(tuple(n for n in graph if n in nodes))
    entered: dict[Tensor, Tensor] = {}
    for node in made.nodes:
        for output in node.outputs:
            if is_real(output):
                _leave(graph, node, output, nodes, made, ranges)
    for node in made.nodes:
        for index, tensor in enumerate(node.inputs):
            if tensor is None or not is_real(tensor) or tensor.is_constant or tensor.is_variable:
                continue
            if tensor not in entered:
                entered[tensor] = _enter(graph, node, tensor, made)
            graph.set_input(node, index, entered[tensor])
    return made


def _leave(graph: Graph, node: Node, output: Tensor, nodes: set[Node], made: Islands,
           ranges: Mapping[Tensor, Range]) -> None:
    """Let readers outside have a quantized copy of what an island gives, which takes the name; others the float."""
    outside = [(user, index) for user, index in output.uses if user not in nodes]
    if outside:
        copy = Tensor(output.name, DType.FLOAT32, output.shape, origin=output.origin)
        graph.add(Quantize(), [output], [copy], name=f"{output.name}_quantize", origin=output.origin.by(PASS),
                  after=node)
        for user, index in outside:
            graph.set_input(user, index, copy)
        made.known[copy] = ranges.get(output, Range(0.0, 0.0))
    if not output.is_output:
        output.name = f"{output.name}_float"
    output.dtype = DType.FLOAT64
    made.inside.append(output)


def _enter(graph: Graph, node: Node, tensor: Tensor, made: Islands) -> Tensor:
    inner = Tensor(f"{tensor.name}_float", DType.FLOAT64, tensor.shape, origin=tensor.origin.by(PASS))
    graph.add(Dequantize(), [tensor], [inner], name=inner.name, origin=tensor.origin.by(PASS), before=node)
    made.inside.append(inner)
    return inner
