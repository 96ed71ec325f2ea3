"""What is inside a compiled model: its NPU operators with the sizes of their parts, and the arena it needs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from vitrify.backends.vela.placing import NPU_OPERATOR
from vitrify.ir import Model, Tensor
from vitrify.ops import Custom


class NpuGraph(msgspec.Struct, frozen=True, kw_only=True):
    """One NPU operator of a compiled model. Its first four inputs are fixed: commands, constants, arena, fast arena.

    Source: Vela's output, custom operator ``ethos-u``; the driver reads the parts in this order.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    command_stream_bytes: int
    weights_bytes: int
    arena_bytes: int
    fast_arena_bytes: int


def npu_graphs(model: Model) -> list[NpuGraph]:
    """Return the NPU operators of all graphs in ``model``, in running order; empty for a model not compiled."""
    return list(_npu_graphs(model))


def _npu_graphs(model: Model) -> Iterator[NpuGraph]:
    for graph in model.graphs:
        for node in graph.nodes_of(Custom):
            if node.op.kind != NPU_OPERATOR:
                continue
            parts = [node.optional(index) for index in range(4)]
            sizes = [tensor.nbytes if tensor is not None else 0 for tensor in parts]
            yield NpuGraph(name=node.name, inputs=_names(node.inputs[4:]), outputs=_names(node.outputs),
                           command_stream_bytes=sizes[0], weights_bytes=sizes[1], arena_bytes=sizes[2],
                           fast_arena_bytes=sizes[3])


def arena_bytes(model: Model) -> int:
    """Return the size of the tensor arena that the NPU operators share; values live there across CPU operators too."""
    return max((graph.arena_bytes for graph in npu_graphs(model)), default=0)


def _names(tensors: tuple[Tensor | None, ...]) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in tensors if tensor is not None)
