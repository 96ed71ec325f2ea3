"""What one run moves and computes, command by command: bytes of each memory, values made, multiplications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from vitrify.runtimes.base import Profile
from vitrify.runtimes.npusim.machine.machine import Done
from vitrify.runtimes.npusim.machine.memory import INTERNAL, NAMES
from vitrify.tflite.streams import CommandMap


class CommandTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """One command: the bytes of each memory that it reads and writes, the values that it makes, its multiplications.

    Bytes are those of the values themselves, once each, not of the chip's bursts or of repeated reads of blocks.
    """

    stream: int
    offset: int
    operation: str
    node: str = ""
    tensor: str = ""
    read_bytes: Mapping[str, int] = {}
    written_bytes: Mapping[str, int] = {}
    elements: int = 0
    macs: int = 0


class NodeTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """All commands of one node of the source model, beside the compiler's estimate of their cycles."""

    node: str
    operator: str
    commands: int
    read_bytes: Mapping[str, int]
    written_bytes: Mapping[str, int]
    elements: int
    macs: int
    estimated_cycles: int


class NpuProfile(Profile, frozen=True, kw_only=True):
    """The time that a run takes here, which says nothing of a chip, and what it moves, which does.

    ``memory_bytes`` is the size of each memory that the file asks for.
    """

    commands: tuple[CommandTraffic, ...] = ()
    nodes: tuple[NodeTraffic, ...] = ()
    memory_bytes: Mapping[str, int] = {}

    @property
    def read_bytes(self) -> dict[str, int]:
        """What all commands read, by memory."""
        return dict(_sum(row.read_bytes for row in self.commands))

    @property
    def written_bytes(self) -> dict[str, int]:
        """What all commands write, by memory."""
        return dict(_sum(row.written_bytes for row in self.commands))


class Meter:
    """Watches a run and notes each command."""

    def __init__(self, commands: CommandMap | None) -> None:
        self.map = commands
        self.numbers = [dict(stream) for stream in commands.streams] if commands is not None else []
        self.rows: list[CommandTraffic] = []
        self.of: list[int] = []

    def __call__(self, stream: int, done: Done) -> None:
        """Note what ``done`` moved."""
        number = self.numbers[stream].get(done.command.offset, -1) if stream < len(self.numbers) else -1
        node = self.map.node_of(number) if self.map is not None else None
        moved: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for touch in done.touched:
            size = touch.end - touch.start
            if done.output is not None and touch.writes:
                size = np.asarray(done.values).size * done.output.bits // 8
            moved[touch.writes][_memory(touch.region)] += size
        self.of.append(number)
        self.rows.append(CommandTraffic(
            stream=stream, offset=done.command.offset, operation=done.command.spec.name,
            node=node.title if node is not None else "",
            tensor=self.map.scheduled[number].tensor if self.map is not None and node is not None else "",
            read_bytes=dict(moved[False]), written_bytes=dict(moved[True]),
            elements=0 if done.values is None else int(np.asarray(done.values).size), macs=done.macs))

    def nodes(self) -> tuple[NodeTraffic, ...]:
        """The rows of each node of the source put together, in the order in which the nodes begin."""
        if self.map is None:
            return ()
        groups: dict[int, list[int]] = {}
        for place, number in enumerate(self.of):
            if 0 <= number < len(self.map.scheduled):
                groups.setdefault(self.map.scheduled[number].node, []).append(place)
        return tuple(self._node(node, places) for node, places in groups.items() if 0 <= node < len(self.map.nodes))

    def _node(self, number: int, places: list[int]) -> NodeTraffic:
        assert self.map is not None
        node, rows = self.map.nodes[number], [self.rows[place] for place in places]
        return NodeTraffic(
            node=node.title, operator=node.operator, commands=len(rows), read_bytes=_sum(r.read_bytes for r in rows),
            written_bytes=_sum(r.written_bytes for r in rows), elements=sum(r.elements for r in rows),
            macs=sum(r.macs for r in rows),
            estimated_cycles=sum(self.map.scheduled[one].cycles for one in {self.of[place] for place in places}))


def _memory(region: int) -> str:
    return "inside the NPU" if region == INTERNAL else NAMES[region]


def _sum(parts: Iterable[Mapping[str, int]]) -> Mapping[str, Any]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)
