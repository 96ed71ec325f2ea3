"""The file's own inputs and outputs: int8 or int16 as they come, or another type behind a conversion."""

from __future__ import annotations

from collections.abc import Mapping, Set

from vitrify.ir import DType, Graph, Quantization, Tensor
from vitrify.ops import Dequantize, Quantize
from vitrify.quant.applying import PASS, place_after
from vitrify.quant.recipe import IoType, Recipe
from vitrify.quant.scales import covered, wide_scale

UINT8_SHIFT = 128


def convert_boundary(graph: Graph, recipe: Recipe, narrow: Mapping[Tensor, Quantization],
                     fine: Set[Tensor] = frozenset()) -> int:
    """Give the inputs and outputs of ``graph`` the types that the recipe asks for; returns how many changed.

    ``narrow`` holds the 8-bit quantization of outputs that are computed in 16 bits; those in ``fine`` keep them, unless
    the outputs are to be float.
    """
    changed = 0
    if recipe.input_type in ("uint8", "float32"):
        for position, tensor in enumerate(graph.inputs):
            if tensor.dtype is DType.INT8 and tensor.quantization is not None:
                graph.inputs[position] = _outer_input(graph, tensor, recipe.input_type)
                changed += 1
    stays = frozenset() if recipe.output_type == "float32" else fine
    outputs = [_outer_output(graph, t, recipe.output_type, narrow.get(t))
               if t not in stays and _differs(t, recipe.output_type) else t for t in graph.outputs]
    changed += sum(new is not old for new, old in zip(outputs, graph.outputs, strict=True))
    if changed:
        graph.set_outputs(outputs)
    return changed


def _differs(tensor: Tensor, wanted: IoType) -> bool:
    """True for an output of another type than wanted that can be converted."""
    return tensor.quantization is not None and tensor.dtype in (DType.INT8, DType.INT16) and \
        tensor.dtype is not DType[wanted.upper()]


def _outer_input(graph: Graph, inner: Tensor, kind: IoType) -> Tensor:
    assert inner.quantization is not None
    outer = _outer(inner, kind, inner.quantization)
    first = next(iter(graph), None)
    graph.add(Quantize(), [outer], [inner], name=inner.name, origin=inner.origin.by(PASS), before=first)
    return outer


def _outer_output(graph: Graph, inner: Tensor, kind: IoType, narrow: Quantization | None) -> Tensor:
    quantization = narrow or inner.quantization
    assert quantization is not None
    if kind == "uint8" and inner.dtype is DType.INT16:      # no kernel goes there in one step
        inner = _outer_output(graph, inner, "int8", narrow)
    outer = _outer(inner, kind, quantization)
    place_after(graph, inner, Dequantize() if kind == "float32" else Quantize(), outer)
    return outer


def _outer(inner: Tensor, kind: IoType, quantization: Quantization) -> Tensor:
    """The tensor outside; it takes the name, as the user knows it."""
    outer = Tensor(inner.name, DType[kind.upper()], inner.shape, origin=inner.origin)
    if kind == "uint8":
        outer.quantization = Quantization(quantization.scale, quantization.zero_point + UINT8_SHIFT)
    elif kind == "int16":
        outer.quantization = wide_scale(covered(quantization))
    elif kind == "int8":
        outer.quantization = quantization
    inner.name = f"{inner.name}_{inner.dtype.name.lower()}"
    return outer
