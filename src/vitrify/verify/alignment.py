"""Which tensor of one model is which of another, and how its layout differs.

Inputs and outputs: by name, else by the file's own tensor names, else by order and shape. Inner tensors: by name, else
by the one source their origin names. Layouts are undone by the permutation whose shape fits; where several fit, by the
one whose values agree best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import UsageError
from vitrify.ir.graph import Graph, Tensor
from vitrify.ir.interface import InputBinding, OutputBinding
from vitrify.verify.metrics import cosine

Array = np.ndarray[Any, np.dtype[Any]]
Binding = InputBinding | OutputBinding

_PERMS: dict[int, tuple[tuple[int, ...], ...]] = {
    2: ((1, 0),),
    3: ((0, 2, 1), (1, 2, 0), (2, 0, 1)),
    4: ((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (0, 2, 1, 3), (0, 3, 2, 1)),
    5: ((0, 2, 3, 4, 1), (0, 4, 1, 2, 3)),
}
"""Layout changes worth trying, by rank, after "none": channels last, channels first, then swaps of two axes."""


class Layout(NamedTuple):
    """How the reference becomes the candidate: transposed by ``perm`` (empty: as it is), reshaped to ``shape``."""

    perm: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()

    def apply(self, reference: Array) -> Array:
        """Bring a value of the reference into the candidate's layout."""
        moved = reference.transpose(self.perm) if self.perm else reference
        return moved.reshape(self.shape) if self.shape else moved

    def __str__(self) -> str:
        if self.perm:
            return f"transposed by {list(self.perm)}" + (" and reshaped" if self.shape else "")
        return "reshaped" if self.shape else "as it is"


def layouts(reference: Sequence[int], candidate: Sequence[int]) -> list[Layout]:
    """Return every layout change that fits two shapes, the plainest first."""
    reference, candidate = tuple(reference), tuple(candidate)
    if int(np.prod(reference, dtype=np.int64)) != int(np.prod(candidate, dtype=np.int64)):
        return []
    found = [Layout()] if reference == candidate else []
    perms = _PERMS.get(len(reference), ())
    found += [Layout(perm) for perm in perms if tuple(reference[i] for i in perm) == candidate]
    if not found:
        packed = tuple(d for d in candidate if d != 1)
        found = [Layout(perm, candidate) for perm in ((), *perms)
                 if tuple(reference[i] for i in perm or range(len(reference)) if reference[i] != 1) == packed]
    return found


def choose(reference: Array, candidate: Array) -> Layout | None:
    """Return the layout change under which both agree best, None when no shape fits."""
    fitting = layouts(reference.shape, candidate.shape)
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    return max(fitting, key=lambda layout: cosine(layout.apply(reference), candidate))


def inner_tensors(reference: Iterable[str], graph: Graph) -> Iterator[tuple[str, Tensor]]:
    """Yield (reference's name, tensor) for the computed tensors of ``graph`` that the reference has too, in order."""
    known = set(reference)
    for node in graph:
        for tensor in node.outputs:
            name = _source_of(tensor, known)
            if name is not None:
                yield name, tensor


def downstream(graph: Graph, tensors: Sequence[Tensor]) -> dict[int, int]:
    """Return, by ``id(tensor)``, bits numbered as ``tensors`` for those that are computed from it."""
    own = {id(tensor): 1 << number for number, tensor in enumerate(tensors)}
    reach: dict[int, int] = {}
    for node in reversed(graph.nodes):
        after = 0
        for tensor in node.outputs:
            after |= own.get(id(tensor), 0) | reach.setdefault(id(tensor), 0)
        for read in node.inputs:
            if read is not None:
                reach[id(read)] = reach.get(id(read), 0) | after
    return reach


def _source_of(tensor: Tensor, known: set[str]) -> str | None:
    if tensor.name in known:
        return tensor.name
    # A source with an operator is a node; a nameless one is called after its output, which inner tensors are not.
    sources = {source.name for source in tensor.origin.sources if not source.operator} & known
    return sources.pop() if len(sources) == 1 and len(tensor.origin.sources) == 1 else None


def match(reference: Sequence[Binding], candidate: Sequence[Binding], aliases: Mapping[str, str],
          what: str) -> dict[str, str]:
    """Return the reference's names of inputs or outputs to the candidate's.

    Raises:
        UsageError: they cannot be told apart; names both sides.
    """
    right = {b.name: b for b in candidate}
    named = {b.name: b.name if b.name in right else aliases.get(b.name, "") for b in reference}
    if len(set(named.values()) & set(right)) == len(reference) and all(
            _fits(b.shape, right[named[b.name]].shape) for b in reference):
        return named
    if len(reference) == len(right):
        orders = [tuple(candidate), *permutations(candidate)] if len(right) <= 6 else [tuple(candidate)]
        for order in orders:
            if all(_fits(a.shape, b.shape) for a, b in zip(reference, order, strict=True)):
                return {a.name: b.name for a, b in zip(reference, order, strict=True)}
    raise UsageError.of("verify.match", f"the models' {what} cannot be matched: {_list(reference)} against "
                                        f"{_list(candidate)}", help="compare forms of one model")


def as_taken(sample: Mapping[str, Array], names: Mapping[str, str], inputs: Sequence[Binding]) -> dict[str, Array]:
    """Return the reference's inputs under the candidate's names, which ``match`` gave, and in its layouts."""
    shapes = {binding.name: binding.shape for binding in inputs}
    found = {}
    for name, to in names.items():
        fitting = layouts(sample[name].shape, shapes[to])
        found[to] = fitting[0].apply(sample[name]) if fitting else sample[name]
    return found


def _fits(reference: Sequence[int], candidate: Sequence[int]) -> bool:
    if any(d < 0 for d in (*reference, *candidate)):
        return len(reference) == len(candidate)
    return bool(layouts(reference, candidate))


def _list(bindings: Sequence[Binding]) -> str:
    return ", ".join(f"'{b.name}' [{','.join(map(str, b.shape))}]" for b in bindings)
