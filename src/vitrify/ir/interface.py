"""The source model's inputs and outputs, and how the file's own inputs and outputs make them up.

Passes may change a layout or take an output apart; the interface remembers what the user's model took and gave, so
that a runtime can take and give the same. Stored in the TFLite metadata by the writer.
"""

from __future__ import annotations

import msgspec

from vitrify.ir.host import HostProgram


class InputBinding(msgspec.Struct, frozen=True, kw_only=True):
    """One input of the source model.

    The file's input number ``position`` is the source array transposed by ``perm`` (as ``numpy.transpose`` takes it;
    empty: unchanged), multiplied by ``scale`` and moved by ``offset`` along its last axis (empty: unchanged), then
    quantized if that input is quantized.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    position: int
    perm: tuple[int, ...] = ()
    scale: tuple[float, ...] = ()
    offset: tuple[float, ...] = ()


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a source output: the file's output ``position``, dequantized, transposed by ``perm``, reshaped to
    ``shape`` (empty: unchanged), multiplied by ``scale``."""

    position: int
    perm: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    scale: float = 1.0


class OutputBinding(msgspec.Struct, frozen=True, kw_only=True):
    """One output of the source model: its parts, concatenated along ``axis`` when there are several."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    parts: tuple[Part, ...]
    axis: int = 0


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """What the source model takes and gives, in the order of its own file.

    With a ``host`` program, the positions in ``outputs`` count what that program gives, not the file's outputs.
    """

    inputs: tuple[InputBinding, ...]
    outputs: tuple[OutputBinding, ...]
    source_format: str = ""
    host: HostProgram | None = None
