"""Lifetimes of the values between operators, what of them is there at once, and where LiteRT keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vitrify.core.errors import VitrifyError
from vitrify.core.isolation import Worker
from vitrify.ir import Graph, Tensor
from vitrify.profile.sizes import sizes
from vitrify.results.profiling import LifeRow, MemoryPlan

_HOLE = 1 << 20
"""Bytes of a hole in an arena that are nothing strange, whatever the size of its tensors."""

_NEAR_GAP = 4096
"""Bytes between two tensors of one arena at most; constants and other arenas lie farther away."""


class Life(NamedTuple):
    """A tensor with the first and the last operator that need it."""

    tensor: Tensor
    first: int
    last: int


def lives(graph: Graph) -> list[Life]:
    """Return the values of ``graph`` that are computed or given, in the order in which they appear."""
    place = {node: index for index, node in enumerate(graph)}
    end = max(len(place) - 1, 0)
    seen: dict[int, Tensor] = {id(t): t for t in graph.inputs}
    for node in graph:
        seen.update((id(t), t) for t in node.outputs)
    found = []
    for tensor in seen.values():
        if tensor.is_constant or tensor.is_variable:
            continue
        first = place[tensor.producer] if tensor.producer is not None else 0
        last = max((place[user] for user in tensor.users), default=first)
        found.append(Life(tensor, first, end if tensor.is_output else last))
    return sorted(found, key=lambda life: life.first)


def plan(graph: Graph, near_limit: int | None = None) -> MemoryPlan:
    """Say what is alive at once, and what does not fit into ``near_limit`` bytes on the chip."""
    found = lives(graph)
    nodes = list(graph)
    constants = {id(t): t for t in graph.tensors() if t.is_constant}.values()
    answer = MemoryPlan(weights_bytes=sum(t.nbytes for t in constants), near_limit_bytes=near_limit,
                        variables_bytes=sum(t.nbytes for t in graph.tensors() if t.is_variable))
    answer.lives = [LifeRow(tensor=life.tensor.name, bytes=life.tensor.nbytes, first=life.first, last=life.last,
                            maker="" if life.tensor.producer is None else life.tensor.producer.name,
                            fits=None if near_limit is None else life.tensor.nbytes <= near_limit) for life in found]
    if nodes:
        at = _peak(found, len(nodes))
        alive = sorted((life.tensor for life in found if life.first <= at <= life.last), key=lambda t: -t.nbytes)
        answer.live_bytes, answer.peak_index, answer.peak_node = sum(t.nbytes for t in alive), at, nodes[at].name
        answer.alive = [tensor.name for tensor in alive]
    if near_limit is not None:
        answer.beyond = [node.name for node in nodes if sizes(node).all > near_limit]
    return answer


def _peak(found: Sequence[Life], count: int) -> int:
    """The operator while which most bytes are alive."""
    steps = [0] * (count + 1)
    for life in found:
        steps[life.first] += life.tensor.nbytes
        steps[life.last + 1] -= life.tensor.nbytes
    best, top, now = 0, -1, 0
    for index in range(count):
        now += steps[index]
        if now > top:
            best, top = index, now
    return best


def _densest(places: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the stretch of addresses that most bytes lie in; what kernels need besides may leave holes in it."""
    room = max(sum(end - start for start, end in places), _HOLE)
    parts: list[list[tuple[int, int]]] = []
    top = 0
    for start, end in sorted(places):
        if not parts or start - top > room:
            parts.append([])
        parts[-1].append((start, end))
        top = max(top, end)
    best = max(parts, key=lambda part: sum(end - start for start, end in part))
    return min(start for start, _ in best), max(end for _, end in best)


def measure_arena(path: Path, answer: MemoryPlan) -> None:
    """Fill in where LiteRT's own kernels keep the values of the file at ``path``, and how large the arena is.

    Left as it is where LiteRT does not load the file.
    """
    known = {row.tensor: row for row in answer.lives}
    try:
        with Worker(f"LiteRT on {path.name}") as worker:
            found = worker.call("vitrify.runtimes.litert.native:addresses", str(path.resolve()), 1)
    except VitrifyError:
        return
    places = {name: (address, size) for name, address, size in found if name in known}
    if not places:
        return
    low, high = _densest([(address, address + size) for address, size in places.values()])
    spare = sorted((address, address + size) for name, address, size in found if name not in known)
    for start, end in spare:                       # what kernels need besides, in the same arena
        if low - _NEAR_GAP <= start <= high + _NEAR_GAP and end <= high + (high - low):
            low, high = min(low, start), max(high, end)
            answer.scratch_bytes = max(answer.scratch_bytes, end - start)
    for name, (address, size) in places.items():
        if low <= address and address + size <= high:
            known[name].offset = address - low
        else:
            known[name].memory = "heap"         # its size is known only while the model runs
    answer.arena_bytes, answer.planner = high - low, "LiteRT's own kernels, the addresses that they gave"
