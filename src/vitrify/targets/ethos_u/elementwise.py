"""Rules on operators that compute value by value."""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.ir import DType, Node
from vitrify.targets.ethos_u.tensors import REPORT
from vitrify.targets.rules import Breach, Variant, rule
from vitrify.targets.rules.roles import feature, features, shown

_TABLES = {"LOG": (DType.INT8, DType.INT16), "ELU": (DType.INT8,), "GELU": (DType.INT8, DType.UINT8),
           "RSQRT": (DType.INT8, DType.INT16)}


@rule("ethos-u.unequal-scales", operators=["MAXIMUM", "MINIMUM"], says="both inputs have the scale of the output",
      why="the values are compared as they are stored", source=REPORT, fix="equal-scales")
def equal(node: Node, variant: Variant) -> Iterator[Breach]:
    """Inputs on another scale."""
    wanted = node.output.quantization
    for tensor in features(node):
        if tensor.quantization is not None and wanted is not None and (
                tensor.quantization.scale.tolist() != wanted.scale.tolist()
                or tensor.quantization.zero_point.tolist() != wanted.zero_point.tolist()):
            yield Breach(f"'{tensor.name}' has {tensor.quantization}, the output {wanted}",
                         {"tensor": tensor.name, "scale": float(tensor.quantization.scale[0]),
                          "limit": float(wanted.scale[0])}, str(wanted))


@rule("ethos-u.table-type", operators=sorted(_TABLES), says="LOG and RSQRT take int8 and int16, GELU int8 and uint8, "
      "ELU int8", why="it is a table of all values of its input", source=REPORT)
def table(node: Node, variant: Variant) -> Iterator[Breach]:
    """Types for which there is no table."""
    x, allowed = feature(node), _TABLES[node.op.kind]
    if x is None or x.dtype.is_float:
        return
    names = " or ".join(dtype.label for dtype in allowed)
    if x.dtype not in allowed:
        yield Breach(f"its input is {x.dtype.label}; {node.op.kind} takes {names}", {"type": x.dtype.label}, names)
    elif node.op.kind != "RSQRT" and node.output.dtype is not x.dtype:
        yield Breach(f"its input is {x.dtype.label}, its output {node.output.dtype.label}",
                     {"type": node.output.dtype.label}, x.dtype.label)


@rule("ethos-u.table-shape", operators=["LOG", "ELU", "GELU"], says="input and output have one shape",
      why="it is a table of all values of its input", source=REPORT)
def table_shape(node: Node, variant: Variant) -> Iterator[Breach]:
    """Another shape, which only a damaged file has."""
    x = feature(node)
    if x is not None and x.shape != node.output.shape:
        yield Breach(f"its input is {shown(x.shape)}, its output {shown(node.output.shape)}",
                     {"shape": list(x.shape), "limit": list(node.output.shape)}, shown(x.shape))
