"""The rare way to compute a node from constants: the evaluator that comes with the `onnx` package.

It serves operators without a fold of their own, and tensors without elements, for which few kernels care. The package
is loaded only here; what would take long, or make much of little, is left to others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.budget import Budget
from vitrify.importers.onnx.folds.cost import by_evaluator
from vitrify.importers.onnx.source import Array, SourceGraph, SourceNode

MOST_READ, MOST_MADE = 2**20, 2**18
"""Elements of all inputs, and of all outputs: the evaluator computes some operators element by element in Python."""
_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
# How many elements these make depends on their input's values; they make at most one per element, or per index of it.
_COUNTING = {"NonZero", "Unique", "Compress"}


def by_reference(node: SourceNode, inputs: Sequence[Any], budget: Budget) -> list[Array] | None:
    """Return the node's outputs; None when an input is open, or the evaluator does not take the node or takes long."""
    if not inputs or not all(value is None or isinstance(value, np.ndarray) for value in inputs):
        return None
    if node.kind in _RANDOM or any(isinstance(value, SourceGraph) for value in node.attributes.values()):
        return None
    if sum(value.size for value in inputs if value is not None) > MOST_READ:
        return None
    return _evaluated(node, inputs, budget)


def _evaluated(node: SourceNode, inputs: Sequence[Any], budget: Budget) -> list[Array] | None:
    from onnx.reference import ReferenceEvaluator

    given = {name: value for name, value in zip(node.inputs, inputs, strict=True) if value is not None}
    try:
        model = _model(node, given)
        made = MOST_MADE if node.kind in _COUNTING else _made(model, len([o for o in node.outputs if o]))
        if made is None or not budget.takes(by_evaluator(node, inputs, made)):
            return None
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, given)
    except Exception:  # the evaluator and the checks raise anything; what it cannot do is done another way, or refused
        return None
    arrays = iter(results)
    found = [np.asarray(next(arrays)) if name else np.zeros(0, np.float32) for name in node.outputs]
    return found if all(array.dtype.kind in "biuf" and array.size <= MOST_MADE for array in found) else None


def _model(node: SourceNode, given: dict[str, Any]) -> Any:
    """The node as a model of its own."""
    from onnx import helper, numpy_helper

    attributes = {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
    }
    made = helper.make_node(node.kind, node.inputs, node.outputs, domain=node.domain, **attributes)
    graph = helper.make_graph(
        [made],
        "node",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()],
        [helper.make_empty_tensor_value_info(name) for name in node.outputs if name],
        [numpy_helper.from_array(value, name) for name, value in given.items() if value.ndim <= 1],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, node.opset)])


def _made(model: Any, outputs: int) -> int | None:
    """How many elements the outputs have, None when they are not known to be few."""
    from onnx import shape_inference

    values = shape_inference.infer_shapes(model, data_prop=True).graph.output
    shapes = [[d.dim_value if d.HasField("dim_value") else -1 for d in v.type.tensor_type.shape.dim] for v in values]
    typed = [v.type.tensor_type.HasField("shape") for v in values]
    known = len(values) == outputs and all(typed) and all(min(s, default=0) >= 0 for s in shapes)
    sizes = [math.prod(shape) for shape in shapes]
    return sum(sizes) if known and max(sizes, default=0) <= MOST_MADE else None
