"""Nodes that compute with 16-bit activations, where 256 levels are too few: weights stay int8, biases are int64.

TFLite's 16-bit kernels take a symmetric scale, and there is none for HARD_SWISH, which is written out.
Source: the TensorFlow Lite 16x8 quantization specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.core.errors import UsageError
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.quant.calibration.calibrators import node_names
from vitrify.quant.calibration.observe import keys
from vitrify.quant.calibration.statistics import Range, Statistics
from vitrify.quant.forms.norms import normalizing
from vitrify.quant.lookups import is_whole
from vitrify.quant.recipe import Recipe
from vitrify.quant.rules import is_long, is_real, keeps_values, shared_inputs, takes_sixteen

PASS = "hard-swish-16"

WEIGHTED: tuple[type[Operator], ...] = (
    ops.Conv2D, ops.DepthwiseConv2D, ops.FullyConnected, ops.TransposeConv)
"""Operators behind which an exact place begins: what goes in is rounded before it is summed up."""


CLEAR = 1 / 32
"""A largest share from which on a row is not flat: the powers of all others add up to 31 of the 511 that int8 bears."""


def wide_nodes(graph: Graph, recipe: Recipe, statistics: Statistics) -> set[Node]:
    """Return the nodes that compute in 16 bits: those that the recipe wants so, and those that 8 bits do not do for.

    What only moves values goes with what makes them.
    """
    found: set[Node] = set()
    demanding = exacting(graph, statistics) | (normalizing(graph) if recipe.norms == "int16" else set())
    inside = bool(recipe.wide_until)
    _check_name(graph, recipe.wide_until)
    for node in graph:
        within, inside = inside, inside and recipe.wide_until not in node_names(node)
        if not takes_sixteen(node):
            continue
        if keeps_values(node) and len(shared_inputs(node)) == 1 and node not in demanding:
            source = node.input(shared_inputs(node)[0])
            wanted = source.producer in found or (source.producer is None and recipe.input_type == "int16")
        else:
            default = "int16" if within else recipe.activations
            chosen = recipe.override(node_names(node), node.op.kind).activations
            wanted = (chosen or default) == "int16" or (chosen is None and node in demanding)
        if wanted:
            found.add(node)
    return found


def exacting(graph: Graph, statistics: Statistics) -> set[Node]:
    """Nodes that 8 bits do not do for, whatever the recipe says of the others.

    A softmax over long rows that are flat: shares below 1/512 are all nothing in 8 bits, and the reference kernel ends
    the process. Rows with a clear winner stay in 8 bits: the 16-bit kernel takes every other for exp(-10) of it at
    least, which over 6,625 classes makes a certain one 0.7.
    Quotients, and what tells a whole number from the next, with all that leads there from the last sum of products.
    """
    named = keys(graph)
    found = {node for node in graph.nodes_of(ops.Softmax) if is_long(node) and not is_peaked(node, named, statistics)}
    waiting = [n for n in graph if (is_whole(n) or _divides(n)) and takes_sixteen(n)]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        waiting += [maker for maker in _makers(node) if takes_sixteen(maker)]
    return found


def _makers(node: Node) -> list[Node]:
    """The nodes that an exacting one passes its demand on to: all but behind a sum of products, which asks products of
    two activations only."""
    made = [t.producer for t in node.inputs if t is not None and is_real(t) and t.producer is not None]
    if isinstance(node.op, ops.BatchMatMul):
        return [maker for maker in made if isinstance(maker.op, ops.BatchMatMul)]
    return [] if isinstance(node.op, WEIGHTED) else made


def is_peaked(node: Node, named: Mapping[Tensor, str], statistics: Statistics) -> bool:
    """True for a softmax whose every row had a clear winner while it was observed."""
    key = named[node.output]
    flattest = statistics[key].flattest_row if key in statistics else None
    return flattest is not None and flattest >= CLEAR


def _divides(node: Node) -> bool:
    return isinstance(node.op, ops.Div) and all(is_real(t) and not t.is_constant for t in map(node.input, (0, 1)))


def _check_name(graph: Graph, name: str) -> None:
    """Refuse the name of no operator.

    Raises:
        UsageError: there is none.
    """
    if name and not any(name in node_names(node) for node in graph):
        raise UsageError.of("recipe.wide_until", f"the recipe's wide_until is '{name}', no operator has that name",
                            help="take a name that `vitrify inspect` lists for the float file")


def write_out(graph: Graph, wide: set[Node], ranges: Mapping[Tensor, Range]) -> dict[Tensor, Range]:
    """Write HARD_SWISH among ``wide`` out; returns the ranges of the tensors that this makes.

    Before:  %y = HARD_SWISH(%x)
    After:   %y = MUL(%x * 1/6, RELU6(%x + 3))
    Exact in real arithmetic.
    """
    made: dict[Tensor, Range] = {}
    for node in [n for n in graph.nodes_of(ops.HardSwish) if n in wide]:
        x = node.input(0)
        origin, seen = node.origin.by(PASS), ranges.get(x, Range(0.0, 0.0))
        sixth = graph.add(ops.Mul(), [x, _number(1 / 6, node)], name=f"{node.name}/sixth", origin=origin, before=node)
        gate = graph.add(ops.Add(fused_activation_function=ops.Activation.RELU6, pot_scale_int16=False),
                         [x, _number(3.0, node)], name=f"{node.name}/gate", origin=origin, before=node)
        for step in (sixth, gate):
            step.output.origin = step.output.origin._replace(sources=())
        made[sixth.output] = Range(seen.low / 6, seen.high / 6)
        made[gate.output] = Range(0.0, 6.0)
        product = graph.replace_node(node, ops.Mul(), [sixth.output, gate.output], origin=origin)
        wide.discard(node)
        wide |= {sixth, gate, product}
    return made


def _number(value: float, node: Node) -> Tensor:
    data = np.array(value, np.float32)
    return Tensor(f"{node.name}_{value:.3g}", DType.FLOAT32, (), data=data)


def without_pot(op: Operator) -> Operator:
    """A sum or difference whose 16-bit scales need not be powers of two."""
    if isinstance(op, ops.Add | ops.Sub) and op.pot_scale_int16:
        given: dict[str, Any] = {"fused_activation_function": op.fused_activation_function, "pot_scale_int16": False}
        return type(op)(**given)
    return op

