"""The rows of `inspect --commands`: what each command of a stream does, for people and programs."""

from __future__ import annotations

import msgspec


class CommandBlock(msgspec.Struct, kw_only=True):
    """One command that acts, with all that was set for it.

    ``offset`` is its byte in stream number ``stream``. ``node`` and ``operator`` are the user's, where the file says so
    itself; ``scheduled`` is the compiler's word for what it does, ``tensor`` what it makes. ``details`` are lines by
    their subject: ifm, ifm2, ofm, kernel, padding, weights, scales, scaling, activation, block, order; source and
    destination of a copy. ``changed`` holds the registers that were set since the block before.
    """

    stream: int
    offset: int
    operation: str
    node: str = ""
    operator: str = ""
    scheduled: str = ""
    tensor: str = ""
    details: dict[str, str] = {}
    changed: dict[str, int] = {}


class StreamRow(msgspec.Struct, kw_only=True):
    """One command stream: the accelerator that it is for, its size, its blocks, and the error that ended reading."""

    number: int
    accelerator: str = ""
    bytes: int = 0
    commands: int = 0
    blocks: list[CommandBlock] = []
    fault: str = ""
