"""What a file compiled for an NPU says of its command streams: which command computes what of the source model.

The compiler drops where things come from, so the entry is made after compiling, from the compiler's own database. It
stands beside the driver's payload, of which it changes no byte.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from vitrify.core.errors import ModelError
from vitrify.ir.quantization import Quantization
from vitrify.tflite.decoding import Decoder
from vitrify.tflite.encoding import Encoder
from vitrify.tflite.schema import Record

if TYPE_CHECKING:
    from vitrify.ir import Tensor

STREAMS = "vitrify.commands"
_IDENTIFIER = b"TFL3"
_LARGEST = 1 << 28      # bytes of the entry when it is unpacked


class MadeTensor(msgspec.Struct, frozen=True, array_like=True):
    """A tensor of the source model: its name there, shape and type, and its scale if it has a single one."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float = 0.0
    zero_point: int = 0

    @classmethod
    def of(cls, tensor: Tensor) -> MadeTensor:
        """Describe ``tensor``."""
        how = tensor.quantization
        plain = how is not None and len(how.scale) == 1
        return cls(tensor.name, tensor.shape, tensor.dtype.label, float(how.scale[0]) if how and plain else 0.0,
                   int(how.zero_point[0]) if how and plain else 0)

    @property
    def quantization(self) -> Quantization | None:
        """How its integers are read as real numbers."""
        return Quantization.per_tensor(self.scale, self.zero_point) if self.scale else None


class SourceNode(msgspec.Struct, frozen=True, array_like=True):
    """A node of the source model: its name, its kind, the names it had in the user's file, and what it makes."""

    name: str
    operator: str
    origin: tuple[str, ...]
    outputs: tuple[MadeTensor, ...]

    @property
    def title(self) -> str:
        """Its name in the user's file, and all of them where several became one."""
        return " + ".join(self.origin) or self.name


class Scheduled(msgspec.Struct, frozen=True, array_like=True):
    """One operation as the compiler scheduled it; commands of several stripes make it up.

    ``operator`` and ``tensor`` are the compiler's words for what it computes and makes; ``node`` numbers the source's
    nodes, -1 for none. Cycles are the compiler's estimates: in all, of computing, and of the memories.
    """

    operator: str
    tensor: str
    node: int
    cycles: int = 0
    npu_cycles: int = 0
    sram_cycles: int = 0
    far_cycles: int = 0
    macs: int = 0


class CommandMap(msgspec.Struct, frozen=True):
    """Which command does what: for each stream, offsets of commands and the number of what is scheduled there."""

    version: int = 1
    maker: str = ""
    target: str = ""
    nodes: tuple[SourceNode, ...] = ()
    scheduled: tuple[Scheduled, ...] = ()
    streams: tuple[tuple[tuple[int, int], ...], ...] = ()

    def node_of(self, scheduled: int) -> SourceNode | None:
        """The source's node that something scheduled belongs to."""
        number = self.scheduled[scheduled].node if 0 <= scheduled < len(self.scheduled) else -1
        return self.nodes[number] if 0 <= number < len(self.nodes) else None

    def tensors(self) -> dict[str, MadeTensor]:
        """What the source's nodes make, by name."""
        return {tensor.name: tensor for node in self.nodes for tensor in node.outputs}


def encode_map(found: CommandMap) -> bytes:
    """Return the entry's bytes."""
    return zlib.compress(msgspec.json.encode(found), 9)


def decode_map(data: bytes, where: str) -> CommandMap:
    """Return what the entry says.

    Raises:
        ModelError: it cannot be understood.
    """
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(data, _LARGEST)
        if unpacker.unconsumed_tail:
            raise ValueError(f"more than {_LARGEST} bytes")
        return msgspec.json.decode(text, type=CommandMap)
    except (zlib.error, msgspec.MsgspecError, ValueError) as error:
        raise ModelError.of("tflite.metadata", f"the entry '{STREAMS}' cannot be used: {error}", where=where,
                            help="compile the file again from its source") from error


def metadata_of(root: Record) -> dict[str, bytes]:
    """Return a file's metadata by name, below the graph."""
    buffers, found = root.buffers or (), {}
    for entry in root.metadata or ():
        if 0 <= entry.buffer < len(buffers) and buffers[entry.buffer].data is not None and entry.name:
            found[entry.name] = np.ascontiguousarray(buffers[entry.buffer].data).tobytes()
    return found


def metadata_in(path: Path) -> dict[str, bytes]:
    """Return the metadata of the file at ``path`` by name.

    Raises:
        ModelError: the file is damaged.
    """
    return metadata_of(Decoder(np.fromfile(path, np.uint8), str(path)).root("Model"))


def add_metadata(path: Path, entries: Mapping[str, bytes]) -> None:
    """Write ``entries`` into the file at ``path``; every other record of it stays as it is.

    Raises:
        ModelError: the file is damaged.
    """
    root = Decoder(np.fromfile(path, np.uint8), str(path)).root("Model")
    buffers, listed = list(root.buffers or ()), [entry for entry in root.metadata or () if entry.name not in entries]
    for name, data in entries.items():
        listed.append(Record("Metadata", name=name, buffer=len(buffers)))
        buffers.append(Record("Buffer", data=np.frombuffer(data, np.uint8)))
    root.buffers, root.metadata = buffers, listed
    encoder = Encoder(_IDENTIFIER)
    encoder.root(root)
    with path.open("wb") as stream:
        stream.writelines(_bytes(encoder.chunks()))


def _bytes(chunks: Iterable[object]) -> Iterable[bytes]:
    return (bytes(chunk) for chunk in chunks)      # type: ignore[call-overload]
