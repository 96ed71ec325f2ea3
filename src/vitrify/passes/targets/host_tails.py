"""Float arithmetic behind the last integers, such as decoding of boxes and NMS, handed to who runs the model."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify import ops
from vitrify.data.host import attributes_of
from vitrify.ir import Exactness, Graph, InputBinding, Interface, Model, Node, Operator, OutputBinding, Part, Tensor
from vitrify.ir.host import HostConstant, HostProgram, HostStep
from vitrify.passes.graphs import is_dense, is_pure
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import FLOAT, UNSUPPORTED


@fix("host-tails", mends=(*FLOAT, *UNSUPPORTED), whole=True,
     exactness=Exactness.ROUNDING,
     says="ends the file at its last integers; the float steps behind them are written beside it as a host program, "
     "which `vitrify run` and the generated code run",
     wins="decoding and NMS leave the graph, and with them calls of the NPU around operators of the CPU")
def host_tails(model: Model) -> int:
    """Cut at the tensors where the integers end."""
    graph, interface = model.main, model.interface or _own_interface(model)
    tail = _tail(graph)
    steps = [node for node in tail if not isinstance(node.op, ops.Dequantize)]
    if not steps or interface.host is not None or not all(map(_can_run, steps)):
        return 0
    inside = set(tail)
    sources = list(dict.fromkeys(t for node in tail for t in node.inputs if t is not None and t.data is None
                                 and t.producer not in inside))
    if not sources or any(t.producer is None or t.dtype.is_float for t in sources):
        return 0
    before = graph.outputs
    kept = [t for t in before if t.producer not in inside]
    listed = list(dict.fromkeys([*kept, *sources]))
    graph.set_outputs(listed)
    _rename(model, before, listed)
    program = _program(tail, before, listed)
    model.interface = Interface(inputs=interface.inputs, outputs=interface.outputs,
                                source_format=interface.source_format, host=program)
    model.extras.pop("tensors", None)
    for node in reversed(tail):
        graph.remove(node)
    return len(tail)


def _tail(graph: Graph) -> list[Node]:
    """The nodes on floats that only lead to outputs and to each other, in order."""
    inside: set[Node] = set()
    for node in reversed(graph.nodes):
        on_floats = any(t is not None and t.dtype.is_float for t in (*node.inputs, *node.outputs))
        if (on_floats or inside & {user for t in node.outputs for user in t.users}) and all(
                user in inside for t in node.outputs for user in t.users) and not _makes_integers(node):
            inside.add(node)
    return [node for node in graph if node in inside]


def _makes_integers(node: Node) -> bool:
    return any(t.quantization is not None and not t.dtype.is_float for t in node.outputs)


def _can_run(node: Node) -> bool:
    """True when the operator's numpy reference can stand for it."""
    constants = [t for t in node.inputs if t is not None and t.data is not None]
    return type(node.op).evaluate is not Operator.evaluate and is_pure(node) and all(map(is_dense, constants)) and all(
        t.quantization is None for t in (*constants, *node.outputs))


def _own_interface(model: Model) -> Interface:
    """What the file itself takes and gives, by the names of its first signature, else of its tensors."""
    graph = model.main
    signature = next((s for s in model.signatures if s.graph == 0 and len(s.inputs) == len(graph.inputs)
                      and len(s.outputs) == len(graph.outputs)), None)
    taken = signature.inputs if signature else {t.name: i for i, t in enumerate(graph.inputs)}
    given = signature.outputs if signature else {t.name: i for i, t in enumerate(graph.outputs)}
    return Interface(
        inputs=tuple(InputBinding(name=name, shape=graph.inputs[i].shape, dtype=_kind(graph.inputs[i]), position=i)
                     for name, i in taken.items()),
        outputs=tuple(OutputBinding(name=name, shape=graph.outputs[i].shape, dtype=_kind(graph.outputs[i]),
                                    parts=(Part(position=i),)) for name, i in given.items()),
        source_format="tflite")


def _kind(tensor: Tensor) -> str:
    return "float32" if tensor.quantization is not None or tensor.dtype.numpy is None else tensor.dtype.numpy.name


def _rename(model: Model, before: Sequence[Tensor], after: Sequence[Tensor]) -> None:
    """Signatures name what is there now: outputs that stay as they were, others by their tensors."""
    for signature in (s for s in model.signatures if s.graph == 0):
        names = {before[position]: name for name, position in signature.outputs.items()}
        signature.outputs.clear()
        signature.outputs |= {names.get(t, t.name): i for i, t in enumerate(after)}


def _program(tail: Sequence[Node], before: Sequence[Tensor], after: Sequence[Tensor]) -> HostProgram:
    """Describe the tail as steps over the file's outputs, which come as real numbers: DEQUANTIZE is done already."""
    numbers = {t: i for i, t in enumerate(after)}
    steps = [node for node in tail if not isinstance(node.op, ops.Dequantize)]
    constants = list(dict.fromkeys(t for node in steps for t in node.inputs if t is not None and t.data is not None))
    numbers |= {t: len(after) + i for i, t in enumerate(constants)}
    following = len(after) + len(constants)
    said: list[HostStep] = []
    for node in tail:
        if isinstance(node.op, ops.Dequantize):
            numbers[node.output] = numbers[node.input(0)]
            continue
        numbers |= {t: following + i for i, t in enumerate(node.outputs)}
        following += len(node.outputs)
        said.append(HostStep(operator=node.op.kind, attributes=attributes_of(node.op),
                             inputs=tuple(numbers[t] if t is not None else -1 for t in node.inputs),
                             outputs=tuple(numbers[t] for t in node.outputs)))
    packed = tuple(HostConstant.of(t.data) for t in constants if t.data is not None)
    return HostProgram(takes=len(after), constants=packed, steps=tuple(said),
                       gives=tuple(numbers[t] for t in before))
