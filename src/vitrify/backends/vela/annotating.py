"""Lets a compiled file say itself which command computes what of the user's model, and what the source takes and gives.

The compiler writes neither; both come from the source and from the compiler's database, by tensor names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from vitrify.backends.vela.database import Row, number, tables_in
from vitrify.ir import Interface, Model, Node
from vitrify.tflite.annotations import INTERFACE, ORIGINS, entries
from vitrify.tflite.decoding import Decoder
from vitrify.tflite.schema import Record
from vitrify.tflite.streams import (
    STREAMS,
    CommandMap,
    MadeTensor,
    Scheduled,
    SourceNode,
    add_metadata,
    encode_map,
)

_OURS = "vitrify."


def annotate(path: Path, source: Model, database: str, maker: str, target: str) -> None:
    """Write what is known of the compiled file at ``path`` into its metadata; the payloads stay as they are.

    Raises:
        ModelError: the compiled file is damaged.
    """
    graph = Decoder(np.fromfile(path, np.uint8), str(path)).root("Model").subgraphs[0]
    said = {STREAMS: encode_map(command_map(source, database, maker, target))}
    said |= {name: bytes(data) for name, data in source.metadata.items() if name.startswith(_OURS)}
    own = entries(source, {tensor.name for tensor in graph.tensors or ()})
    if ORIGINS in own:
        said[ORIGINS] = own[ORIGINS]
    interface = _interface(source, graph)
    if interface is not None:
        said[INTERFACE] = msgspec.json.encode(interface)
    add_metadata(path, said)


def command_map(source: Model, database: str, maker: str, target: str) -> CommandMap:
    """Return which command of each stream does what."""
    tables = tables_in(database)
    keys = {row["id"]: number(row["ext_key"]) for row in tables.get("source", ()) if row.get("ext_key", "") != ""}
    rows = {row["id"]: row for row in tables.get("perf", ())}
    last = {row["group_id"]: row["id"] for row in tables.get("group", ())}     # what the command stores at its end
    numbers: dict[str, int] = {}
    scheduled: list[Scheduled] = []
    streams: dict[str, list[tuple[int, int]]] = {row["id"]: [] for row in tables.get("cmdstream", ())}
    for row in tables.get("queue", ()):
        head = row.get("scheduled_id", "")
        if head not in numbers:
            numbers[head] = len(scheduled)
            scheduled.append(_scheduled(head, rows, last.get(head, head), keys))
        streams.setdefault(row.get("cmdstream_id", ""), []).append((number(row.get("offset", "")), numbers[head]))
    return CommandMap(maker=maker, target=target, nodes=tuple(map(_node, source.main)), scheduled=tuple(scheduled),
                      streams=tuple(map(tuple, streams.values())))


def _scheduled(head: str, rows: dict[str, Row], tail: str, keys: dict[str, int]) -> Scheduled:
    row = rows.get(head, {})
    last = rows.get(tail, row)
    source = last.get("source_id", "") if last.get("source_id", "") in keys else row.get("source_id", "")
    far = number(row.get("Dram_ac", "")) + number(row.get("OffChipFlash_ac", ""))
    return Scheduled(row.get("operator", ""), last.get("name", ""), keys.get(source, -1),
                     number(row.get("op_cycles", "")), number(row.get("npu_cycles", "")),
                     number(row.get("Sram_ac", "")), far, number(row.get("mac_count", "")))


def _node(node: Node) -> SourceNode:
    return SourceNode(node.name, node.op.kind, tuple(dict.fromkeys(source.name for source in node.origin.sources)),
                      tuple(map(MadeTensor.of, node.outputs)))


def _interface(source: Model, graph: Record) -> Interface | None:
    """What the source takes and gives, where the compiled file has the same inputs and outputs in the same order."""
    if source.interface is None:
        return None

    def names(places: Sequence[int] | None) -> list[str]:
        return [graph.tensors[place].name for place in (() if places is None else places)]

    alike = (names(graph.inputs) == [tensor.name for tensor in source.main.inputs]
             and names(graph.outputs) == [tensor.name for tensor in source.main.outputs])
    return source.interface if alike else None
