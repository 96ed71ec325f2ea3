"""Tensors of two forms that mean the same: by origin and name, else by structure; and every layout that may fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.data.binding import to_source_outputs
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.matching import match
from vitrify.verify.alignment import Layout, inner_tensors, layouts
from vitrify.verify.metrics import cosine

Array = np.ndarray[Any, np.dtype[Any]]

_PLAIN = {4: ((0, 2, 3, 1), (0, 3, 1, 2)), 3: ((0, 2, 1),), 5: ((0, 2, 3, 4, 1), (0, 4, 1, 2, 3))}
_SURELY, _NEARLY = 0.98, 0.02
"""Cosines that an unusual layout must reach, and by how much it must agree better than the usual ones."""
_MOVES = 4
ENOUGH = 0.3
"""Share of the computed tensors that names must pair; below it structure is asked."""


@dataclass(eq=False)
class Pair:
    """A tensor of the candidate and the reference's of that meaning. ``options``: the layouts that fit, the one that is
    believed first; ``between``: the operators after the last cuts before it."""

    reference: str
    tensor: Tensor
    matched: str = "name"
    options: list[Layout] = field(default_factory=list)
    between: list[Node] = field(default_factory=list)
    before: list[Tensor] = field(default_factory=list)

    @property
    def layout(self) -> Layout:
        """The layout that is believed."""
        return self.options[0]


def pair_tensors(known: Sequence[str], graph: Graph, reference: Graph | None) -> list[Pair]:
    """Pair what the reference computes with what ``graph`` computes, in its running order."""
    pairs = [Pair(name, tensor, "name" if name == tensor.name else "origin")
             for name, tensor in inner_tensors(known, graph)]
    computed = sum(len(node.outputs) for node in graph)
    if reference is None or len(pairs) >= ENOUGH * computed:
        return pairs
    taken, named = {pair.tensor for pair in pairs}, set(known)
    for group in match(reference, graph).groups:
        if group.left and group.right:
            ours, theirs = group.left[-1].node, group.right[-1].node
            if len(ours.outputs) == len(theirs.outputs) and group.left[-1].kind == group.right[-1].kind:
                pairs += [Pair(a.name, b, "structure") for a, b in zip(ours.outputs, theirs.outputs, strict=True)
                          if b not in taken and a.name in named]
    order = {tensor: number for number, tensor in enumerate(t for node in graph for t in node.outputs)}
    return sorted(pairs, key=lambda pair: order[pair.tensor])


def prefer_common(pairs: Sequence[Pair]) -> None:
    """Of the layouts that are not believed, keep those that as many tensors have as the believed one, the most common
    first: a fault turns one tensor, not most."""
    common = Counter((len(pair.tensor.shape), pair.layout) for pair in pairs)
    for pair in pairs:
        rank = len(pair.tensor.shape)
        more = [one for one in pair.options[1:]
                if isinstance(one, Reordered) or common[rank, one] >= common[rank, pair.layout]]
        pair.options[1:] = sorted(more, key=lambda layout: -common[rank, layout])


def choose_layouts(pairs: Sequence[Pair], reference: dict[str, Array], candidate: dict[str, Array],
                   *, same_format: bool) -> list[Pair]:
    """Give each pair its layouts, the one that agrees best first; pairs that fit in none are left out."""
    kept = []
    for pair in pairs:
        if pair.reference not in reference or pair.tensor.name not in candidate:
            continue
        left, right = reference[pair.reference], candidate[pair.tensor.name]
        if same_format and left.shape == right.shape:
            pair.options = [Layout()]
        else:
            fitting = layouts(left.shape, right.shape)
            plain = _PLAIN.get(left.ndim, ())
            odd = [layout for layout in fitting if layout.perm and layout.perm not in plain]
            fitting = [layout for layout in fitting if layout not in odd] + odd
            agreeing = [cosine(layout.apply(left), right) for layout in fitting] if len(fitting) > 1 else []
            best = agreeing.index(max(agreeing)) if agreeing else 0
            if best and fitting[best] in odd and (
                    agreeing[best] < _SURELY or max(agreeing[:len(fitting) - len(odd)], default=-1.0)
                    > agreeing[best] - _NEARLY):
                best = max(range(max(1, len(fitting) - len(odd))), key=agreeing.__getitem__)
            pair.options = [*fitting[best:best + 1], *fitting[:best], *fitting[best + 1:]]
        if pair.options:
            kept.append(pair)
    return kept


class Reordered(Layout):
    """What becomes of a reshaped tensor whose input has another layout: through the input's shape and order."""

    inside: tuple[int, ...]

    @classmethod
    def through(cls, inside: tuple[int, ...], layout: Layout, shape: tuple[int, ...]) -> Reordered:
        """Reshape to ``inside``, change the layout as ``layout`` says, then reshape to ``shape``."""
        made = cls(layout.perm, shape)
        made.inside = inside
        return made

    def apply(self, reference: Array) -> Array:
        """Bring a value of the reference into the candidate's order."""
        return super().apply(reference.reshape(self.inside))

    def __str__(self) -> str:
        return f"in the order of {list(self.inside)} transposed by {list(self.perm)}"


def follow_reshapes(pairs: Sequence[Pair], reference: dict[str, Array], candidate: dict[str, Array]) -> None:
    """Add to what a RESHAPE gives the order that it has where the reshaped tensor has another layout."""
    by_tensor = {pair.tensor: pair for pair in pairs}
    for pair in pairs:
        node = pair.tensor.producer
        before, steps = None, 0
        while node is not None and before is None and steps < _MOVES and node.op.kind in (
                ("RESHAPE",) if not steps else ("RESHAPE", "TRANSPOSE")):
            before, node, steps = by_tensor.get(node.input(0)), node.input(0).producer, steps + 1
        if before is None or not before.layout.perm or isinstance(before.layout, Reordered):
            continue
        left, right = reference[pair.reference], candidate[pair.tensor.name]
        more = Reordered.through(reference[before.reference].shape, before.layout, right.shape)
        if left.size == right.size and not np.array_equal(more.apply(left), pair.layout.apply(left)):
            better = cosine(more.apply(left), right) > cosine(pair.layout.apply(left), right)
            pair.options = [more, *pair.options] if better else [*pair.options, more]


def fix_outputs(pairs: Sequence[Pair], model: Model) -> None:
    """Take the layout of a file's outputs from what the file says of them, wherever it says it."""
    interface = model.interface
    if interface is None or interface.host is not None:
        return
    outputs = model.main.outputs
    places = [np.arange(t.size, dtype=np.float64).reshape(t.shape) for t in outputs]
    plain: list[dict[str, Any]] = [{"dtype": np.float32}] * len(places)
    by_tensor = {pair.tensor: pair for pair in pairs}
    for binding in interface.outputs:
        if len(binding.parts) != 1 or binding.parts[0].scale != 1.0:
            continue
        place = binding.parts[0].position
        pair = by_tensor.get(outputs[place])
        if pair is None or pair.reference != binding.name:
            continue
        source = to_source_outputs(interface, places, plain)[binding.name]
        sure = [layout for layout in pair.options if source.size == places[place].size
                and np.array_equal(layout.apply(source), places[place])]
        pair.options = sure[:1] or pair.options


def find_segments(pairs: Sequence[Pair], graph: Graph) -> None:
    """Note for each pair the operators that make it from the tensors of other pairs."""
    cut = {pair.tensor for pair in pairs}
    for pair in pairs:
        waiting, seen, before = [pair.tensor.producer], dict[Node, None](), dict[Tensor, None]()
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen[node] = None
            for tensor in node.inputs:
                if tensor is not None and not tensor.is_constant:
                    if tensor in cut or tensor in graph.inputs:
                        before[tensor] = None
                    else:
                        waiting.append(tensor.producer)
        pair.between, pair.before = list(seen), list(before)
