"""The file's own inputs and outputs: int8 as they come, or uint8 or float32 behind a conversion."""

from __future__ import annotations

from vitrify.ir import DType, Graph, Quantization, Tensor
from vitrify.ops import Dequantize, Quantize
from vitrify.quant.applying import PASS, place_after
from vitrify.quant.recipe import IoType, Recipe

UINT8_SHIFT = 128


def convert_boundary(graph: Graph, recipe: Recipe) -> int:
    """Give the int8 inputs and outputs of ``graph`` the types that the recipe asks for; returns how many changed."""
    changed = 0
    if recipe.input_type != "int8":
        for position, tensor in enumerate(graph.inputs):
            if tensor.dtype is DType.INT8 and tensor.quantization is not None:
                graph.inputs[position] = _outer_input(graph, tensor, recipe.input_type)
                changed += 1
    if recipe.output_type != "int8":
        outputs = [_outer_output(graph, t, recipe.output_type) if t.dtype is DType.INT8 else t for t in graph.outputs]
        changed += sum(new is not old for new, old in zip(outputs, graph.outputs, strict=True))
        graph.set_outputs(outputs)
    return changed


def _outer_input(graph: Graph, inner: Tensor, kind: IoType) -> Tensor:
    outer = _outer(inner, kind)
    first = next(iter(graph), None)
    graph.add(Quantize(), [outer], [inner], name=inner.name, origin=inner.origin.by(PASS), before=first)
    return outer


def _outer_output(graph: Graph, inner: Tensor, kind: IoType) -> Tensor:
    outer = _outer(inner, kind)
    place_after(graph, inner, Dequantize() if kind == "float32" else Quantize(), outer)
    return outer


def _outer(inner: Tensor, kind: IoType) -> Tensor:
    """The tensor outside; it takes the name, as the user knows it."""
    assert inner.quantization is not None
    outer = Tensor(inner.name, DType[kind.upper()], inner.shape, origin=inner.origin)
    if kind == "uint8":
        scale, zero_point = inner.quantization.scale, inner.quantization.zero_point
        outer.quantization = Quantization(scale, zero_point + UINT8_SHIFT)
    inner.name = f"{inner.name}_int8"
    return outer
