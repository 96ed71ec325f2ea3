"""From a subgraph table to a graph: tensors first, then the nodes that link them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from vitrify.ir import Graph, Node, Origin, Tensor
from vitrify.ops import Custom
from vitrify.tflite.buffers import PLACE_HOLDER, BufferContents
from vitrify.tflite.operators import name_of, read_operator
from vitrify.tflite.problems import Problems
from vitrify.tflite.schema import Record
from vitrify.tflite.tensors import EMPTY_BUFFER, SCRATCH, Array, link_details, mark_unused, read_tensor

OMITTED = -1


class SubgraphReader:
    """Reads one subgraph; what is wrong with it goes to ``problems``."""

    def __init__(self, record: Record, name: str, codes: list[Record], contents: BufferContents, problems: Problems
                 ) -> None:
        self.graph = Graph(name)
        self.tensors: list[Tensor] = []
        self._record = record
        self._codes = codes
        self._contents = contents
        self._problems = problems
        self._where = f"graph '{name}'"
        self._made: dict[int, int] = {}      # which operator makes a tensor, by their numbers

    def read(self) -> None:
        """Fill ``graph`` and ``tensors`` (all of them, in the file's order); nothing more once a tensor is broken."""
        records = self._record.tensors or []
        read = [self._problems.attempt(partial(self._tensor, r, i)) for i, r in enumerate(records)]
        if any(t is None for t in read):
            return
        self.tensors = [t for t in read if t is not None]
        link_details(self.tensors)
        self.graph.inputs = self._pick(self._record.inputs, f"{self._where}, inputs")
        outputs = self._pick(self._record.outputs, f"{self._where}, outputs")
        self._nodes(self._record.operators or [])
        self.graph.set_outputs(outputs)
        self._settle()

    def _tensor(self, record: Record, index: int) -> Tensor:
        where = f"{self._where}, tensor '{record.name or index}'"
        return read_tensor(record, index, self._contents.of_tensor(record.buffer, where))

    def _pick(self, places: Array | None, where: str) -> list[Tensor]:
        """The tensors at ``places``; places that do not exist are reported and left out."""
        return [t for t in self._pick_optional(places, where, omitted=None) if t is not None]

    def _pick_optional(self, places: Array | None, where: str, omitted: int | None = OMITTED) -> list[Tensor | None]:
        picked: list[Tensor | None] = []
        for place in _listed(places):
            exists = 0 <= place < len(self.tensors)
            picked.append(self.tensors[place] if exists else None)
            if not exists and place != omitted:
                self._problems.report("tflite.index", f"tensor {place} of {len(self.tensors)}", where)
        return picked

    # nodes

    def _nodes(self, records: Sequence[Record]) -> None:
        if not self._makers_are_clear(records):
            return
        for position, record in enumerate(records):
            if record.opcode_index < len(self._codes):
                self._problems.attempt(partial(self._node, self._codes[record.opcode_index], record, position))
            else:
                self._problems.report("tflite.index", f"operator code {record.opcode_index} of {len(self._codes)}",
                                      f"{self._where}, operator {position}")

    def _makers_are_clear(self, records: Sequence[Record]) -> bool:
        """True when no tensor is made twice."""
        clear = True
        for position, record in enumerate(records):
            for place in _listed(record.outputs):
                if place in self._made:
                    makers = f"{self._made[place]} and {position}"
                    self._problems.report("tflite.order", f"tensor {place} is made by operators {makers}", self._where)
                    clear = False
                self._made[place] = position
        return clear

    def _node(self, code: Record, record: Record, position: int) -> None:
        builtin = max(code.builtin_code, code.deprecated_builtin_code)
        where = f"{self._where}, operator {position} ({code.custom_code or name_of(builtin)})"
        for place in _listed(record.inputs):
            if self._made.get(place, OMITTED) >= position:
                self._problems.report("tflite.order", f"tensor {place} is read before operator {self._made[place]} "
                                      "makes it", where)
        inputs = self._pick_optional(record.inputs, f"{where}, inputs")
        outputs = self._pick(record.outputs, f"{where}, outputs")
        op, extras = read_operator(builtin, code.custom_code or "", self._custom_options(record, where),
                                   record.builtin_options or record.builtin_options2)
        name = outputs[0].name if outputs else f"{op.kind}_{position}"
        node = self.graph.add(op, inputs, outputs, name=name, origin=Origin.of(name, op.kind))
        node.extras = {**extras, "version": code.version, **self._more(record, where)}

    def _more(self, record: Record, where: str) -> dict[str, Any]:
        """The extras that a node keeps under the schema's names; those that say nothing are left out."""
        found: dict[str, Any] = {}
        if record.custom_options_format:
            found["custom_options_format"] = record.custom_options_format
        if record.mutating_variable_inputs is not None and record.mutating_variable_inputs.any():
            found["mutating_variable_inputs"] = tuple(record.mutating_variable_inputs.tolist())
        if record.intermediates is not None and record.intermediates.size:
            found["intermediates"] = self._pick_optional(record.intermediates, f"{where}, intermediates")
        if record.debug_metadata_index != -1:
            found["debug_metadata_index"] = record.debug_metadata_index
        return found

    def _custom_options(self, record: Record, where: str) -> bytes:
        offset = record.large_custom_options_offset
        if offset > PLACE_HOLDER:
            behind = self._contents.behind(offset, record.large_custom_options_size, f"the options of {where}")
            return self._contents.copy(behind)
        return self._contents.copy(record.custom_options)

    # once all is linked

    def _settle(self) -> None:
        """Tell apart the tensors that are not made by any node: empty constants, scratch memory, unused ones."""
        given = set(map(id, self.graph.inputs))
        for tensor in self.tensors:
            if tensor.data is None and tensor.producer is None and not tensor.is_variable and id(tensor) not in given:
                if 0 in tensor.shape and tensor.dtype.numpy is not None:
                    tensor.data = np.empty(tensor.shape, tensor.dtype.numpy)
                    tensor.extras[EMPTY_BUFFER] = True
                elif tensor.users and all(isinstance(n.op, Custom) for n in tensor.users):
                    tensor.extras[SCRATCH] = True
        between = [t for node in self.graph for t in _intermediates(node)]
        mark_unused(self.tensors, [*self.graph.tensors(), *between])


def _listed(places: Array | None) -> list[int]:
    found: list[int] = [] if places is None else places.tolist()
    return found


def _intermediates(node: Node) -> list[Tensor]:
    return [t for t in node.extras.get("intermediates", ()) if t is not None]
