"""Rules on products of two computed values, and on LSTMs."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node
from vitrify.ops import BatchMatMul
from vitrify.targets.ethos_u.cores import SMALL
from vitrify.targets.ethos_u.tensors import REPORT
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import feature, weights

_EXTENT = 1 << 16
_KINDS = ["BATCH_MATMUL", "FULLY_CONNECTED"]


def _computed(node: Node) -> bool:
    """True where both factors are computed."""
    weight = weights(node)
    return isinstance(node.op, BatchMatMul) or (weight is not None and weight.data is None)


@rule("ethos-u.matmul-type", operators=_KINDS, cores=SMALL, says="products of two computed values are of int8",
      why="the compiler makes them of int8 products and sums", source=REPORT, fix="int8-matmuls")
def matmul_type(node: Node, variant: Variant) -> Iterator[Breach]:
    """Other types."""
    x = feature(node)
    if x is not None and _computed(node) and x.dtype is not DType.INT8 and not x.dtype.is_float:
        yield Breach(f"its input is {x.dtype.label}; the NPU multiplies computed int8 values only",
                     {"type": x.dtype.label}, "int8")


@rule("ethos-u.matmul-extent", operators=_KINDS, cores=SMALL,
      says="rows and columns of a product of two computed values have at most 65536 elements",
      why="a register counts them", source=REPORT, fix="matmuls")
def matmul_extent(node: Node, variant: Variant) -> Iterator[Breach]:
    """Long rows."""
    x, op = feature(node), node.op
    if x is None or len(x.shape) < 2 or not _computed(node) or not node.output.shape:
        return
    summed = x.shape[-2] if isinstance(op, BatchMatMul) and op.adj_x else x.shape[-1]
    if summed > _EXTENT:
        yield Breach(f"it sums over {summed} elements, the limit is {_EXTENT}", {"summed": summed, "limit": _EXTENT},
                     f"sums of {_EXTENT}")
    if node.output.shape[-1] > _EXTENT:
        yield Breach(f"its output has {node.output.shape[-1]} columns, the limit is {_EXTENT}",
                     {"columns": node.output.shape[-1], "limit": _EXTENT}, f"{_EXTENT} columns")


_LSTM = {
    "ethos-u.lstm-coupled": (range(1, 9), True, "all four gates have weights", "a gate has no weights of its own"),
    "ethos-u.lstm-peephole": (range(9, 12), False, "there are no peepholes", "it has peephole weights"),
    "ethos-u.lstm-projection": (range(16, 18), False, "there is no projection", "it has a projection"),
    "ethos-u.lstm-normalization": (range(20, 24), False, "there is no layer normalization",
                                   "its gates are normalized")}


def _lstm_rule(code: str, places: range, wanted: bool, says: str, found: str) -> None:
    def check(node: Node, variant: Variant) -> Iterator[Breach]:
        """Inputs that are there and must not be, or the other way round."""
        if any((node.optional(i) is not None) is not wanted for i in places):
            yield Breach(found, {}, "cells written out: vitrify quantize does so")

    rule(code, operators=["UNIDIRECTIONAL_SEQUENCE_LSTM"], says=says, why="the compiler makes the plain form only",
         source=REPORT)(check)


for _code, _row in _LSTM.items():
    _lstm_rule(_code, *_row)
