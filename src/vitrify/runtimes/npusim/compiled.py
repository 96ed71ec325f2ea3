"""A compiled file as the steps of one run: NPU operators with their command streams, and runs of CPU operators between.

Read below the graph: several NPU operators may write parts of one tensor, which no graph has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.ir import DType
from vitrify.runtimes.npusim.machine.memory import Bytes
from vitrify.runtimes.npusim.stream.payload import Accelerator, read_payload
from vitrify.runtimes.npusim.stream.words import Command, decode
from vitrify.tflite.decoding import Decoder
from vitrify.tflite.encoding import Encoder
from vitrify.tflite.operators import name_of
from vitrify.tflite.reading import IDENTIFIER
from vitrify.tflite.schema import Record
from vitrify.tflite.streams import metadata_of

NPU_OPERATOR = "ethos-u"
_PLAN = "OfflineMemoryAllocation"
_PLAN_HEADER = 3        # int32 words: version, subgraph, count. Source: TFLite Micro, memory_management.md.
_PARTS = 4              # commands, constants, arena, fast arena; then feature maps. Source: the driver's delegate.
_LARGEST = 1 << 31


class Placed(NamedTuple):
    """A tensor at a byte offset of the arena."""

    tensor: int
    offset: int


class NpuStep(NamedTuple):
    """One NPU operator: its commands, its constants, what goes into the arena before it and comes out after."""

    accelerator: Accelerator
    commands: tuple[Command, ...]
    constants: Bytes
    arena_bytes: int
    fast_bytes: int
    inputs: tuple[Placed, ...]
    outputs: tuple[Placed, ...]


class CpuStep(NamedTuple):
    """Operators that stayed on the CPU, one after the other, as a TFLite file of their own."""

    file: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[str, ...]


Step = NpuStep | CpuStep


class Program(NamedTuple):
    """The steps in running order, the records of the file's tensors, and what the file says of itself."""

    steps: tuple[Step, ...]
    tensors: Sequence[Record]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    metadata: Mapping[str, bytes] = MappingProxyType({})
    where: str = ""

    @property
    def npu(self) -> tuple[NpuStep, ...]:
        """The NPU operators."""
        return tuple(step for step in self.steps if isinstance(step, NpuStep))

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The shape of a tensor."""
        shape = self.tensors[tensor].shape
        return () if shape is None else tuple(int(extent) for extent in shape)

    def dtype(self, tensor: int) -> np.dtype[Any]:
        """The element type of a tensor."""
        found = DType(self.tensors[tensor].type).numpy
        if found is None:
            raise _error(f"tensor '{self.tensors[tensor].name}' has elements of a type that numpy lacks", "")
        return np.dtype(found)


def read_program(path: Path | str) -> Program:
    """Read the compiled file at ``path``.

    Raises:
        ModelError: it is damaged, or was compiled for a chip whose streams are not known.
    """
    data = np.fromfile(path, np.uint8)
    root = Decoder(data, str(path)).root("Model")
    if not root.subgraphs:
        raise _error("the file has no graph", str(path))
    return _Reader(root, str(path)).program()


def stream_bytes(path: Path | str) -> tuple[list[bytes], dict[str, bytes]]:
    """Return the payloads of a file's NPU operators as they are, in running order, and the file's metadata.

    Raises:
        ModelError: the file is damaged.
    """
    root = Decoder(np.fromfile(path, np.uint8), str(path)).root("Model")
    if not root.subgraphs:
        raise _error("the file has no graph", str(path))
    reader = _Reader(root, str(path))
    return reader.payloads(), metadata_of(root)


class _Reader:
    def __init__(self, root: Record, where: str) -> None:
        self.root, self.where = root, where
        self.graph = root.subgraphs[0]
        self.tensors: Sequence[Record] = self.graph.tensors or ()
        self.offsets = self._offsets()

    def program(self) -> Program:
        operators = self.graph.operators or ()
        steps: list[Step] = []
        start = 0
        for index, operator in enumerate(operators):
            if self._kind(operator) == NPU_OPERATOR:
                steps += self._cpu(operators, start, index)
                steps.append(self._npu(operator))
                start = index + 1
        steps += self._cpu(operators, start, len(operators))
        return Program(tuple(steps), self.tensors, tuple(self._places(self.graph.inputs)),
                       tuple(self._places(self.graph.outputs)), metadata_of(self.root), self.where)

    def payloads(self) -> list[bytes]:
        """The payload of each NPU operator."""
        listed = [self._places(one.inputs) for one in self.graph.operators or () if self._kind(one) == NPU_OPERATOR]
        return [self._content(places[0]).tobytes() for places in listed if places and places[0] >= 0]

    def _kind(self, operator: Record) -> str:
        codes = self.root.operator_codes or ()
        if operator.opcode_index >= len(codes):
            raise _error(f"an operator of kind {operator.opcode_index}; there are {len(codes)}", self.where)
        code = codes[operator.opcode_index]
        return code.custom_code or name_of(max(code.builtin_code, code.deprecated_builtin_code))

    def _places(self, listed: Any) -> list[int]:
        places = [] if listed is None else [int(place) for place in listed]
        wrong = [place for place in places if not -1 <= place < len(self.tensors)]
        if wrong:
            raise _error(f"tensor {wrong[0]} of {len(self.tensors)}", self.where)
        return places

    def _offsets(self) -> dict[int, int]:
        for entry in self.root.metadata or ():
            if entry.name == _PLAN and entry.buffer < len(self.root.buffers or ()):
                content = self.root.buffers[entry.buffer].data
                if content is None:
                    continue
                words = np.ascontiguousarray(content[:content.size // 4 * 4]).view("<i4")
                return {index: int(offset) for index, offset in enumerate(words[_PLAN_HEADER:]) if offset >= 0}
        return {}

    def _npu(self, operator: Record) -> NpuStep:
        places = self._places(operator.inputs)
        if len(places) < _PARTS or min(places[:_PARTS]) < 0:
            raise _error(f"an NPU operator with {len(places)} inputs; it has {_PARTS} at least", self.where)
        payload = read_payload(self._content(places[0]).tobytes())
        outputs = self._places(operator.outputs)
        return NpuStep(payload.accelerator, tuple(decode(payload.words)), self._content(places[1]),
                       self._size(places[2]), self._size(places[3]), self._arena(places[_PARTS:]), self._arena(outputs))

    def _arena(self, places: Iterable[int]) -> tuple[Placed, ...]:
        missing = [place for place in places if place not in self.offsets]
        if missing:
            raise _error(f"tensor '{self.tensors[missing[0]].name}' of an NPU operator has no place in the arena",
                         self.where)
        return tuple(Placed(place, self.offsets[place]) for place in places)

    def _content(self, place: int) -> Bytes:
        number, buffers = self.tensors[place].buffer, self.root.buffers or ()
        if not 0 <= number < len(buffers) or buffers[number].data is None:
            return np.zeros(0, np.uint8)
        return np.asarray(buffers[number].data, np.uint8)

    def _size(self, place: int) -> int:
        shape = self.tensors[place].shape
        size = 0 if shape is None else int(np.prod(shape, dtype=np.int64))
        if not 0 <= size < _LARGEST:
            raise _error(f"an arena of {size} bytes", self.where)
        return size

    def _cpu(self, operators: Sequence[Record], start: int, end: int) -> list[CpuStep]:
        """The operators from ``start`` up to ``end`` as a step, if there are any."""
        chosen = operators[start:end]
        if not chosen:
            return []
        made = [place for one in chosen for place in self._places(one.outputs)]
        needed = dict.fromkeys(place for one in chosen for place in self._places(one.inputs)
                               if place >= 0 and place not in made and self._variable(place))
        later = {place for one in operators[end:] for place in self._places(one.inputs)}
        later |= set(self._places(self.graph.outputs))
        given = [place for place in dict.fromkeys(made) if place in later]
        return [CpuStep(self._file(chosen, list(needed), given), tuple(needed), tuple(given),
                        tuple(map(self._kind, chosen)))]

    def _variable(self, place: int) -> bool:
        return self._content(place).size == 0 and not self.tensors[place].is_variable

    def _file(self, operators: Sequence[Record], inputs: list[int], outputs: list[int]) -> bytes:
        """A file that holds these operators alone; tensors and buffers keep their numbers."""
        graph = Record("SubGraph", tensors=self.tensors, operators=list(operators), name=self.graph.name,
                       inputs=np.array(inputs, np.int32), outputs=np.array(outputs, np.int32))
        root = Record("Model", version=self.root.version, operator_codes=self.root.operator_codes,
                      buffers=self.root.buffers, subgraphs=[graph, *self.root.subgraphs[1:]])
        encoder = Encoder(IDENTIFIER)
        encoder.root(root)
        return b"".join(bytes(chunk) for chunk in encoder.chunks())


def _error(headline: str, where: str) -> ModelError:
    return ModelError.of("npusim.compiled-file", headline, where=where, why="the compiled file is damaged")
