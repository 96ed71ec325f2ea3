"""What kind of model a file holds, by what its operators compute with and never by its name.

A file called ``*_int8.tflite`` often has int8 weights only and computes in float32, which no int8 NPU can run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

import msgspec

from vitrify.ir import DType, Graph, Model, Node, Tensor
from vitrify.ops import Custom, Densify, Dequantize, Quantize, Transpose

NPU_GRAPHS = {"ethos-u": "Vela for Arm Ethos-U", "NeutronGraph": "the eIQ Neutron converter"}
"""Custom operators that stand for a graph compiled for an NPU, and what makes them."""

_EIGHT_BITS = (DType.INT8, DType.UINT8)
_UNPACKING_STEPS = 2      # sparse float16 weights pass DENSIFY, then DEQUANTIZE
_WEIGHTS = (*_EIGHT_BITS, DType.INT4, DType.UINT4, DType.INT2)

_FLOATS = frozenset(d.label for d in DType if d.is_float)


class Kind(Enum):
    """The kinds of TFLite model that matter to an NPU."""

    FLOAT32 = "float32"                # all operators compute in float, weights too
    FLOAT16 = "float16"                # weights are stored as float16 and widened before use
    DYNAMIC_RANGE = "dynamic-range"    # weights are int8, the operators compute in float
    INT8 = "int8"                      # all operators, inputs and outputs are 8-bit integers
    INT8_FLOAT_IO = "int8-float-io"    # all operators are 8-bit, inputs or outputs are float
    INT16X8 = "int16x8"                # activations int16, weights int8
    INT8_INT16 = "int8-int16"          # all operators compute in integers, some with 16-bit activations
    MIXED = "mixed"                    # some operators compute in integers, some in float
    COMPILED = "compiled"              # holds graphs compiled for an NPU


class Contents(msgspec.Struct, frozen=True):
    """What a model holds, counted over all its graphs; constants and their unpacking are no operators here.

    ``eight_bit``, ``sixteen_bit`` and ``floating`` count the operators with such activations, ``float16_weights`` and
    ``integer_weights`` the constants that float operators read.
    """

    kind: Kind
    operators: dict[str, int]
    eight_bit: int
    sixteen_bit: int
    floating: int
    float16_weights: int
    integer_weights: int
    npu_graphs: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind.value}: {_SENTENCES[self.kind](self)}"


def classify(model: Model) -> Kind:
    """Return the kind of ``model``."""
    return contents(model).kind


def contents(model: Model) -> Contents:
    """Count what ``model`` holds; as text it is one line that says the kind and why."""
    nodes = [node for graph in model.graphs for node in graph if not _is_bridge(node)]
    floating = [n for graph in model.graphs for n in float_operators(graph)]
    weights = [w.dtype for node in floating for w in _weights(node)]
    operators: Counter[str] = Counter()
    for graph in model.graphs:
        operators.update(operator_counts(graph))
    found = Contents(
        kind=Kind.MIXED, operators=dict(operators), eight_bit=sum(_computes_in(n, _EIGHT_BITS) for n in nodes),
        sixteen_bit=sum(_computes_in(n, (DType.INT16,)) for n in nodes), floating=len(floating),
        float16_weights=weights.count(DType.FLOAT16), integer_weights=sum(w in _WEIGHTS for w in weights),
        npu_graphs=sum(n.op.kind in NPU_GRAPHS for n in nodes if isinstance(n.op, Custom)),
        inputs=_types(model.main.inputs), outputs=_types(model.main.outputs))
    return msgspec.structs.replace(found, kind=_kind(found))


def _kind(found: Contents) -> Kind:
    if found.npu_graphs:
        return Kind.COMPILED
    if found.floating or not (found.eight_bit or found.sixteen_bit):
        if found.eight_bit or found.sixteen_bit or not (found.floating or _has_float(found.inputs, found.outputs)):
            return Kind.MIXED
        if found.integer_weights:
            return Kind.DYNAMIC_RANGE
        return Kind.FLOAT16 if found.float16_weights else Kind.FLOAT32
    if found.sixteen_bit:
        if found.eight_bit:
            return Kind.MIXED if _has_float(found.inputs, found.outputs) else Kind.INT8_INT16
        return Kind.INT16X8
    return Kind.INT8_FLOAT_IO if _has_float(found.inputs, found.outputs) else Kind.INT8


def operator_counts(graph: Graph) -> dict[str, int]:
    """How often each operator occurs, most frequent first, equals by name."""
    counted = Counter(node.op.kind for node in graph)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def float_operators(graph: Graph) -> list[Node]:
    """The nodes that read or make a float activation; QUANTIZE, DEQUANTIZE and unpacked constants do not count."""
    return [node for node in graph if not _is_bridge(node)
            and any(t.dtype.is_float for t in _activations(node))]


def transposes(graph: Graph) -> list[Node]:
    """The TRANSPOSE nodes."""
    return graph.nodes_of(Transpose)


def _is_bridge(node: Node) -> bool:
    """True for what only changes how a value is stored."""
    return isinstance(node.op, (Quantize, Dequantize)) or _is_unpacking(node)


def _is_unpacking(node: Node | None) -> bool:
    """True when the node turns a stored constant into the one that is computed with."""
    if node is None or not isinstance(node.op, (Dequantize, Densify)):
        return False                        # almost all nodes
    for _ in range(_UNPACKING_STEPS):
        source = node.optional(0) if node is not None and isinstance(node.op, (Dequantize, Densify)) else None
        if source is None:
            return False
        if source.is_constant:
            return True
        node = source.producer
    return False


def _activations(node: Node) -> list[Tensor]:
    """The inputs and outputs that are computed, without unpacked constants."""
    return [t for t in (*node.inputs, *node.outputs) if t is not None and not t.is_constant
            and not _is_unpacking(t.producer)]


def _weights(node: Node) -> list[Tensor]:
    """The constants that a node reads, as they are stored."""
    return [s for t in node.inputs if t is not None and (s := _stored(t)).is_constant]


def _stored(tensor: Tensor) -> Tensor:
    while tensor.producer is not None and _is_unpacking(tensor.producer):
        tensor = tensor.producer.input(0)
    return tensor


def _computes_in(node: Node, dtypes: tuple[DType, ...]) -> bool:
    return any(t.dtype in dtypes and t.quantization is not None for t in _activations(node))


def _types(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    return tuple(t.dtype.label for t in tensors)


def _has_float(*groups: tuple[str, ...]) -> bool:
    return any(name in _FLOATS for group in groups for name in group)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _ends(found: Contents) -> str:
    """The types of inputs and outputs, each once."""
    return (f"{'/'.join(dict.fromkeys(found.inputs)) or 'no'} in, "
            f"{'/'.join(dict.fromkeys(found.outputs)) or 'no'} out")


def _mixed(found: Contents) -> str:
    counts = ((found.eight_bit, "8-bit"), (found.sixteen_bit, "16-bit"), (found.floating, "float"))
    parts = ", ".join(f"{number} {what}" for number, what in counts if number)
    return f"operators by activations: {parts or 'none float or quantized'}; {_ends(found)}"


def _compiled(found: Contents) -> str:
    inside = {k: n for k, n in found.operators.items() if k in NPU_GRAPHS}
    left = ", ".join(f"{n} {k}" for k, n in found.operators.items() if k not in NPU_GRAPHS)
    graphs = ", ".join(f"{_counted(n, f'{k} graph')} by {NPU_GRAPHS[k]}" for k, n in inside.items())
    return f"{graphs}; {f'beside it {left}' if left else 'nothing beside it'}; {_ends(found)}"


_SENTENCES = {
    Kind.FLOAT32: lambda c: f"{_counted(c.floating, 'operator')}, all float; {_ends(c)}",
    Kind.FLOAT16: lambda c: f"{_counted(c.float16_weights, 'weight')} stored as float16, "
                            f"{_counted(c.floating, 'operator')} compute in float; {_ends(c)}",
    Kind.DYNAMIC_RANGE: lambda c: f"{_counted(c.integer_weights, 'weight')} stored as integers, but "
                                  f"{_counted(c.floating, 'operator')} compute in float; {_ends(c)}",
    Kind.INT8: lambda c: f"{_counted(c.eight_bit, 'operator')}, all 8-bit; {_ends(c)}",
    Kind.INT8_FLOAT_IO: lambda c: f"{_counted(c.eight_bit, 'operator')}, all 8-bit, but {_ends(c)}",
    Kind.INT16X8: lambda c: f"{_counted(c.sixteen_bit, 'operator')}, all 16-bit; {_ends(c)}",
    Kind.INT8_INT16: _mixed,
    Kind.MIXED: _mixed,
    Kind.COMPILED: _compiled,
}
