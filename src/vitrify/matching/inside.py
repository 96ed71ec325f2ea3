"""What a node of a compiled graph holds: the nodes between its inputs and its outputs in the graph it was made of."""

from __future__ import annotations

from vitrify.ir import Tensor
from vitrify.matching.ends import match_ends
from vitrify.matching.items import Item, Side, plain_name
from vitrify.tflite.kind import NPU_GRAPHS


def is_npu(item: Item) -> bool:
    """True for a node that stands for a graph compiled for an NPU."""
    return getattr(item.node.op, "custom_code", "") in NPU_GRAPHS or item.kind in NPU_GRAPHS


def insides(whole: Side, compiled: Side) -> dict[Item, list[Item]]:
    """Return the nodes of ``whole`` in each NPU node of ``compiled``, by the tensors that both know.

    Compilers keep the names of the tensors at the border; inputs and outputs of the file are found by their place too.
    """
    boxes = [item for item in compiled.items if is_npu(item)]
    if not boxes or any(is_npu(item) for item in whole.items):
        return {}
    known = _known(whole, compiled)
    stops = {known[t] for box in boxes for t in box.node.inputs if t is not None and t in known}
    owner: dict[Item, Item] = {}
    for box in boxes:
        made = [known[t] for t in box.node.outputs if t in known]
        for item in _between(whole, made, stops):
            owner.setdefault(item, box)
    _fill(whole, owner)
    found: dict[Item, list[Item]] = {box: [] for box in boxes}
    for item in whole.items:
        if item in owner:
            found[owner[item]].append(item)
    return found


def _known(whole: Side, compiled: Side) -> dict[Tensor, Tensor]:
    named: dict[str, Tensor] = {}
    for tensor in whole.graph.tensors():
        if not tensor.is_constant:
            named.setdefault(plain_name(tensor.name), tensor)
    found = {tensor: named[plain_name(tensor.name)] for tensor in compiled.graph.tensors()
             if not tensor.is_constant and plain_name(tensor.name) in named}
    batches = (whole.batch, compiled.batch)
    for ours, theirs in ((whole.graph.inputs, compiled.graph.inputs), (whole.graph.outputs, compiled.graph.outputs)):
        for i, j in match_ends(ours, theirs, batches):
            found[theirs[j]] = ours[i]
    return found


def _between(whole: Side, made: list[Tensor], stops: set[Tensor]) -> list[Item]:
    """The nodes from which tensors are made, back to the tensors at which other nodes begin."""
    found: dict[Item, None] = {}
    waiting = [item for tensor in made if (item := whole.maker(tensor)) is not None]
    while waiting:
        item = waiting.pop()
        if item in found:
            continue
        found[item] = None
        waiting += [feed for slot, feed in enumerate(item.feeds) if isinstance(feed, Item)
                    and item.node.inputs[slot] not in stops and feed not in found]
    return list(found)


def _fill(whole: Side, owner: dict[Item, Item]) -> None:
    """Nodes that lead to nothing but one box are in it, whatever its border is called."""
    for item in reversed(whole.items):
        boxes = {owner.get(reader) for reader, _ in item.readers}
        box = boxes.pop() if len(boxes) == 1 else None
        if item not in owner and box is not None and not any(t.is_output for t in item.node.outputs):
            owner[item] = box
