"""Command streams in words: a block for each command that acts, with what was set for it, in the user's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from vitrify.core.errors import VitrifyError
from vitrify.results.streams import CommandBlock, StreamRow
from vitrify.runtimes.npusim.compiled import stream_bytes
from vitrify.runtimes.npusim.machine.elementwise import operands
from vitrify.runtimes.npusim.machine.features import FeatureMap, feature_map
from vitrify.runtimes.npusim.machine.memory import NAMES
from vitrify.runtimes.npusim.machine.registers import Registers
from vitrify.runtimes.npusim.machine.windows import input_map, output_shape, window
from vitrify.runtimes.npusim.stream.commands import Elementwise, Pooling, Rounding, Upscale
from vitrify.runtimes.npusim.stream.payload import read_payload
from vitrify.runtimes.npusim.stream.words import Command, decode
from vitrify.tflite.streams import STREAMS, CommandMap, decode_map

_WAITS = ("DMA_WAIT", "KERNEL_WAIT", "IRQ", "PMU_MASK")
_FUNCTIONS = {0: "none", 3: "tanh", 4: "sigmoid"}
_FIRST_TABLE = 16


def disassemble(path: Path | str) -> Iterator[StreamRow]:
    """Yield each command stream of the compiled file at ``path``; one that is damaged up to its fault.

    Raises:
        ModelError: the file itself is damaged.
    """
    payloads, metadata = stream_bytes(path)
    said = _map_in(metadata, str(path))
    for number, payload in enumerate(payloads):
        yield _stream(number, payload, said)


def _map_in(metadata: Mapping[str, bytes], where: str) -> CommandMap | None:
    try:
        return decode_map(metadata[STREAMS], where) if STREAMS in metadata else None
    except VitrifyError:
        return None          # the streams can be read without their names


def _stream(number: int, payload: bytes, said: CommandMap | None) -> StreamRow:
    row = StreamRow(number=number, bytes=len(payload))
    try:
        found = read_payload(payload)
        row.accelerator = found.accelerator.name
        reader = _Reader(number, found.accelerator.cores, said)
        for command in decode(found.words):
            row.commands += 1
            block = reader.take(command)
            if block is not None:
                row.blocks.append(block)
    except VitrifyError as error:
        finding = error.findings[0]
        row.fault = f"{finding.code}: {finding.headline} ({finding.where})"
    return row


class _Reader:
    """Follows the registers through a stream."""

    def __init__(self, number: int, cores: int, said: CommandMap | None) -> None:
        self.number, self.cores, self.said = number, cores, said
        self.registers = Registers()
        self.changed: dict[str, int] = {}
        self.waits: list[str] = []
        self.names = dict(said.streams[number]) if said is not None and number < len(said.streams) else {}

    def take(self, command: Command) -> CommandBlock | None:
        """Note what is set; return a block for what acts."""
        name = command.spec.name
        if not command.spec.acts:
            self.registers.set(command)
            self.changed[name] = command.value
            return None
        if name in _WAITS:
            self.waits.append(_wait(command))
            return None
        block = CommandBlock(stream=self.number, offset=command.offset, operation=_title(command),
                             changed=self.changed)
        self._name(block)
        try:
            block.details = self._details(command)
        except VitrifyError as error:
            block.details = {"fault": f"{error.findings[0].code}: {error.findings[0].headline}"}
        if self.waits:
            block.details["order"] = ", ".join([*self.waits, *filter(None, [block.details.get("order", "")])])
        self.changed, self.waits = {}, []
        return block

    def _name(self, block: CommandBlock) -> None:
        number = self.names.get(block.offset)
        if self.said is None or number is None or number >= len(self.said.scheduled):
            return
        node, row = self.said.node_of(number), self.said.scheduled[number]
        block.scheduled, block.tensor = row.operator, row.tensor
        block.node, block.operator = (node.title, node.operator) if node is not None else ("", "")

    def _details(self, command: Command) -> dict[str, str]:
        name = command.spec.name
        if name == "STOP":
            return {}
        if name == "DMA_START":
            return self._copy()
        found = self._maps(command)
        if name != "ELEMENTWISE":
            found |= self._window(name)
        if name in ("CONV", "DEPTHWISE"):
            found |= self._weights()
        return found | self._scaling(command) | self._activation() | self._order()

    def _copy(self) -> dict[str, str]:
        registers, sides = self.registers, {}
        length = registers["DMA0_LEN"]
        for key, name in (("SRC", "source"), ("DST", "destination")):
            inside = registers.field(f"DMA0_{key}_REGION", "internal")
            region = "inside the NPU" if inside else _region(registers.field(f"DMA0_{key}_REGION", "region"))
            start = registers[f"DMA0_{key}"]
            mode = registers.field(f"DMA0_{key}_REGION", "stride_mode")
            sides[name] = f"{region} {start:#x}..{start + length:#x}, {length:,} bytes" + (
                f", in {mode + 1} dimensions" if mode else "")
        return sides

    def _maps(self, command: Command) -> dict[str, str]:
        registers = self.registers
        shape = output_shape(registers)
        found: dict[str, str] = {}
        if command.spec.name == "ELEMENTWISE":
            maps = operands(command.field(), registers, shape)
            found = {key: _map(one) for key, one in zip(("ifm", "ifm2"), maps, strict=False)}
            if registers.values.get("IFM2_BROADCAST") is not None and registers.field("IFM2_BROADCAST", "scalar") \
                    and len(maps) == 1 and command.field() not in (Elementwise.LRELU, Elementwise.ABS, Elementwise.CLZ):
                found["ifm2"] = f"scalar {registers['IFM2_SCALAR']}, zero point {registers['IFM2_ZERO_POINT']}"
        else:
            found["ifm"] = _map(input_map(registers, window(registers)))
        found["ofm"] = _map(feature_map(registers, "OFM", shape))
        return found

    def _window(self, name: str) -> dict[str, str]:
        over = window(self.registers)
        top, left, bottom, right = over.padding
        words = f"{over.extent[0]}x{over.extent[1]}, stride {over.stride[0]}x{over.stride[1]}"
        if over.dilation != (1, 1):
            words += f", dilation {over.dilation[0]}x{over.dilation[1]}"
        if name == "CONV":
            words += ", part-kernel first" if over.part_kernel else ", depth first"
        found = {"kernel": words}
        if over.padded:
            found["padding"] = f"top {top}, left {left}, bottom {bottom}, right {right}"
        if over.upscale:
            found["upscale"] = "each value twice" if over.upscale == Upscale.NEAREST else "zeros between values"
        return found

    def _weights(self) -> dict[str, str]:
        found = {}
        for core in ("", "1")[:self.cores]:
            for part in ("WEIGHT", "SCALE"):
                start, length = self.registers[f"{part}{core}_BASE"], self.registers[f"{part}{core}_LENGTH"]
                found[f"{part.lower()}s{f' of core {core}' if core else ''}"] = (
                    f"{_region(self.registers[f'{part}_REGION'])} {start:#x}..{start + length:#x}, {length:,} bytes")
        return found

    def _scaling(self, command: Command) -> dict[str, str]:
        registers, name = self.registers, command.spec.name
        rounding = Rounding(registers.field("OFM_PRECISION", "rounding"))
        how = {Rounding.TFL: "twice, as TFLite", Rounding.TRUNCATE: "toward zero",
               Rounding.NATURAL: "half up"}[rounding]
        if registers.field("OFM_PRECISION", "global_scale"):
            scale, shift = registers.scaling("OFM_SCALE")
            words = f"{scale} >> {shift}"
        else:
            words = "of each channel" if name in ("CONV", "DEPTHWISE") else "none"
        if name == "ELEMENTWISE" and command.field() in (Elementwise.ADD, Elementwise.SUB):
            scale, shift = registers.scaling("OPA_SCALE")
            which = ("both", "the first", "the second")[registers.field("IFM_PRECISION", "scaled")]
            words += f"; operands ({which}): {scale} >> {shift}, {registers.field('OPB_SCALE', 'scale')}"
        return {"scaling": f"{words}; rounded {how}"}

    def _activation(self) -> dict[str, str]:
        function = self.registers.field("ACTIVATION", "function")
        name = _FUNCTIONS.get(function, f"table {function - _FIRST_TABLE}")
        low, high = self.registers["ACTIVATION_MIN"], self.registers["ACTIVATION_MAX"]
        return {"activation": f"{name}, kept within {low}..{high}"}

    def _order(self) -> dict[str, str]:
        extents = [self.registers[f"OFM_BLK_{axis}_M1"] + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH")]
        found = {"block": "x".join(map(str, extents))}
        if "BLOCKDEP" in self.registers.values:
            found["order"] = f"may overlap {self.registers['BLOCKDEP']} blocks with the kernel before"
        return found


def _title(command: Command) -> str:
    if command.spec.name == "ELEMENTWISE":
        return f"ELEMENTWISE {Elementwise(command.field()).name}"
    return f"POOL {Pooling(command.field()).name}" if command.spec.name == "POOL" else command.spec.name


def _wait(command: Command) -> str:
    name, value = command.spec.name, command.field()
    if name == "DMA_WAIT":
        return f"wait until at most {value} copies run"
    return f"wait until at most {value} kernels run" if name == "KERNEL_WAIT" else f"{name} {value}"


def _region(index: int) -> str:
    return NAMES.get(index, f"region {index}")


def _map(one: FeatureMap) -> str:
    layout = one.layout
    high, wide, deep = layout.shape
    kind = np.dtype(one.dtype).name
    at = f"{_region(one.region)} {layout.bases[0]:#x}"
    tiles = "" if high <= layout.height0 and wide <= layout.width0 else (
        f", tiles from row {layout.height0} at {layout.bases[2]:#x}" if wide <= layout.width0 else
        f", tiles at {', '.join(f'{base:#x}' for base in layout.bases[1:])}")
    strides = f"strides {layout.stride_y}, {layout.stride_x if not layout.bricks else 16 * layout.size}, " \
              f"{layout.stride_c if layout.bricks else layout.size}"
    return (f"{kind}[{high},{wide},{deep}] {'NHCWB16' if layout.bricks else 'NHWC'} at {at}{tiles}; {strides}; "
            f"zero point {one.zero_point}")
