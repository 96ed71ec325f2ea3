"""Moving the last arithmetic of a graph to the host, where int8 would lose what it is about.

Decoding boxes adds distances of a few cells to anchors of hundreds of pixels: in int8 the sum has one scale, and the
distance keeps a few of its levels. Cut before the decoding, the file's outputs keep all of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vitrify.data.host import attributes_of
from vitrify.ir import Model, Tensor
from vitrify.ir.host import HostConstant, HostProgram, HostStep
from vitrify.quant.outputs.tails import Tail


def give_out(model: Model, tails: Sequence[Tail]) -> HostProgram:
    """Let the file give out the sources of ``tails`` in the place of what they make; returns what makes that of them.

    The first source of a tail takes the place of its first output; the others come after all outputs that stay. What
    the program gives is in the order of the outputs as they were.
    """
    graph = model.main
    before = graph.outputs
    firsts = {tail.outputs[0]: tail.sources[0] for tail in tails}
    gone = {t for tail in tails for t in tail.outputs}
    listed = [t if t not in gone else firsts[t] for t in before if t not in gone or t in firsts]
    outputs = list(dict.fromkeys([*listed, *(t for tail in tails for t in tail.sources)]))
    graph.set_outputs(outputs)
    _rename(model, before, outputs, {t: tail for tail in tails for t in tail.outputs})
    return _program(tails, before, outputs)


def _rename(model: Model, before: Sequence[Tensor], outputs: Sequence[Tensor], tails: Mapping[Tensor, Tail]) -> None:
    """Name the new outputs in the signature after the output that they are for."""
    for signature in (s for s in model.signatures if s.graph == 0):
        names: dict[str, int] = {}
        taken: set[int] = set()
        for name, position in signature.outputs.items():
            tensor = before[position]
            if tensor in outputs and tensor not in tails:
                names[name] = outputs.index(tensor)
                continue
            free = [outputs.index(s) for s in tails[tensor].sources if outputs.index(s) not in taken]
            names |= {f"{name}_{i}": place for i, place in enumerate(free)}
            taken |= set(free)
        signature.outputs.clear()
        signature.outputs |= names


def _program(tails: Sequence[Tail], before: Sequence[Tensor], outputs: Sequence[Tensor]) -> HostProgram:
    """Describe the tails as steps over the file's ``outputs``; each makes what stood at its position before."""
    numbers: dict[Tensor, int] = {t: i for i, t in enumerate(outputs)}
    constants: list[HostConstant] = []
    for tail in tails:
        for tensor in (t for n in tail.nodes for t in n.inputs if t is not None and t.data is not None):
            if tensor not in numbers:
                assert tensor.data is not None
                numbers[tensor] = len(outputs) + len(constants)
                constants.append(HostConstant.of(tensor.data))
    steps: list[HostStep] = []
    following = len(outputs) + len(constants)
    for node in (n for tail in tails for n in tail.nodes):
        numbers |= {t: following + i for i, t in enumerate(node.outputs)}
        following += len(node.outputs)
        steps.append(HostStep(operator=node.op.kind, attributes=attributes_of(node.op),
                              inputs=tuple(numbers[t] if t is not None else -1 for t in node.inputs),
                              outputs=tuple(numbers[t] for t in node.outputs)))
    return HostProgram(takes=len(outputs), constants=tuple(constants), steps=tuple(steps),
                       gives=tuple(numbers[t] for t in before))
