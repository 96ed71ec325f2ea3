"""Nodes that compute with 16-bit activations, where 256 levels are too few: weights stay int8, biases are int64.

TFLite's 16-bit kernels take a symmetric scale, and there is none for HARD_SWISH, which is written out.
Source: the TensorFlow Lite 16x8 quantization specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.core.errors import UsageError
from vitrify.ir import DType, Graph, Node, Operator, Tensor
from vitrify.ops import (
    Activation,
    Add,
    AveragePool2D,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    HardSwish,
    MaxPool2D,
    Mean,
    Mul,
    Pad,
    Relu,
    Relu6,
    Reshape,
    ResizeBilinear,
    ResizeNearestNeighbor,
    Slice,
    Split,
    StridedSlice,
    Sub,
    Transpose,
    TransposeConv,
)
from vitrify.quant.calibration.calibrators import node_names
from vitrify.quant.calibration.statistics import Range
from vitrify.quant.recipe import Recipe
from vitrify.quant.rules import is_real, keeps_values, shared_inputs

PASS = "hard-swish-16"

KINDS: tuple[type[Operator], ...] = (
    Add, AveragePool2D, Concatenation, Conv2D, DepthwiseConv2D, FullyConnected, HardSwish, MaxPool2D, Mean, Mul, Pad,
    Relu, Relu6, Reshape, ResizeBilinear, ResizeNearestNeighbor, Slice, Split, StridedSlice, Sub, Transpose,
    TransposeConv)
"""Operators with a 16-bit kernel of free scale, HARD_SWISH by what it is made of."""


def wide_nodes(graph: Graph, recipe: Recipe) -> set[Node]:
    """Return the nodes that the recipe wants in 16 bits and that have such a kernel.

    What only moves values goes with what makes them; a node that makes an output of the model stays in 8 bits, as
    that is what the file gives out.
    """
    if recipe.activations == "int8" and not recipe.wide_until and \
            all(rule.activations != "int16" for rule in recipe.overrides):
        return set()
    found: set[Node] = set()
    inside = bool(recipe.wide_until)
    _check_name(graph, recipe.wide_until)
    for node in graph:
        within, inside = inside, inside and recipe.wide_until not in node_names(node)
        if not isinstance(node.op, KINDS) or any(t.is_output or not is_real(t) for t in node.outputs):
            continue
        if keeps_values(node) and len(shared_inputs(node)) == 1:
            wanted = node.input(shared_inputs(node)[0]).producer in found
        else:
            default = "int16" if within else recipe.activations
            wanted = (recipe.override(node_names(node), node.op.kind).activations or default) == "int16"
        if wanted:
            found.add(node)
    return found


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
    for node in [n for n in graph.nodes_of(HardSwish) if n in wide]:
        x = node.input(0)
        origin, seen = node.origin.by(PASS), ranges.get(x, Range(0.0, 0.0))
        sixth = graph.add(Mul(), [x, _number(1 / 6, node)], name=f"{node.name}/sixth", origin=origin, before=node)
        gate = graph.add(Add(fused_activation_function=Activation.RELU6, pot_scale_int16=False),
                         [x, _number(3.0, node)], name=f"{node.name}/gate", origin=origin, before=node)
        for step in (sixth, gate):
            step.output.origin = step.output.origin._replace(sources=())
        made[sixth.output] = Range(seen.low / 6, seen.high / 6)
        made[gate.output] = Range(0.0, 6.0)
        product = graph.replace_node(node, Mul(), [sixth.output, gate.output], origin=origin)
        wide.discard(node)
        wide |= {sixth, gate, product}
    return made


def _number(value: float, node: Node) -> Tensor:
    data = np.array(value, np.float32)
    return Tensor(f"{node.name}_{value:.3g}", DType.FLOAT32, (), data=data)


def without_pot(op: Operator) -> Operator:
    """A sum or difference whose 16-bit scales need not be powers of two."""
    if isinstance(op, Add | Sub) and op.pot_scale_int16:
        given: dict[str, Any] = {"fused_activation_function": op.fused_activation_function, "pot_scale_int16": False}
        return type(op)(**given)
    return op

