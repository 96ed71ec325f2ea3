"""The container of a command stream: what the driver is told before it, and for which accelerator it was made.

Source: Vela 5.2.0, ``driver_actions.py`` (``COP1``).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from vitrify.core.errors import ModelError, UnsupportedError
from vitrify.runtimes.npusim.stream.words import Words

_COP1, _COP2 = b"COP1", b"COP2"
_CONFIG, _STREAM, _READ, _DUMP, _NOP = 1, 2, 3, 4, 5
_ALIGNMENT = 4      # words: a stream starts at 16 bytes


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """The accelerator that a stream was made for. ``macs`` are those of all cores per cycle, ``shram_kb`` likewise."""

    product: int
    macs: int
    shram_kb: int
    version: tuple[int, int, int] = (1, 0, 6)

    @property
    def name(self) -> str:
        """Its name as compilers take it."""
        return f"ethos-u{'65' if self.product == 1 else '55'}-{self.macs}"

    @property
    def cores(self) -> int:
        """How many cores share the work: two in the U65 with 512 MACs."""
        return 2 if self.product == 1 and self.macs > _CORE_MACS else 1


_CORE_MACS = 256
_U85 = 2
U65_256 = Accelerator(product=1, macs=256, shram_kb=48)


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A command stream with the accelerator it is for."""

    accelerator: Accelerator
    words: Any


def read_payload(data: bytes) -> Payload:
    """Return what ``data`` holds.

    Raises:
        ModelError: it is damaged, or of a kind that is not known.
    """
    if len(data) < 4 or len(data) % 4:
        raise _error(f"a payload of {len(data)} bytes is no row of words")
    if data[:4] == _COP2:
        raise _unknown_kind("of kind COP2")
    if data[:4] != _COP1:
        raise _error(f"a payload starts with {data[:4]!r}, not {_COP1!r}")
    words = np.frombuffer(data, "<u4")
    at, accelerator, stream = 1, None, None
    while at < len(words):
        word = int(words[at])
        action, high, low = word & 0xFF, word >> 8 & 0xFF, word >> 16
        at += 1
        if action == _CONFIG:
            accelerator, at = _accelerator(words[at:at + 2]), at + 2
        elif action == _STREAM:
            count = low | high << 16
            if at + count > len(words):
                raise _error(f"the stream of {count} words ends {at + count - len(words)} words behind the payload")
            stream, at = words[at:at + count], at + count
        elif action not in (_READ, _DUMP, _NOP):
            raise _error(f"driver action {action:#x} is not known")
    if accelerator is None or stream is None:
        raise _error("no accelerator is named" if accelerator is None else "it holds no command stream")
    return Payload(accelerator=accelerator, words=stream)


def _accelerator(words: Words) -> Accelerator:
    if len(words) < 2:
        raise _error("it ends within the description of the accelerator")
    config, identity = int(words[0]), int(words[1])
    product, macs = config >> 28, config & 0xF
    if product == _U85:
        raise _unknown_kind("for product 2")
    if product not in (0, 1) or not 5 <= macs <= 9:
        raise _error(f"product {product} with 2^{macs} MACs is no Ethos-U55 or U65")
    return Accelerator(product=product, macs=1 << macs, shram_kb=config >> 8 & 0xFF,
                       version=(identity >> 28, identity >> 20 & 0xFF, identity >> 16 & 0xF))


def write_payload(words: Words, accelerator: Accelerator = U65_256) -> bytes:
    """Return the payload that holds ``words``."""
    major, minor, patch = accelerator.version
    head = [int.from_bytes(_COP1, "little"), _CONFIG | 1 << 4 + 16,
            accelerator.product << 28 | accelerator.shram_kb << 8 | accelerator.macs.bit_length() - 1,
            major << 28 | minor << 20 | patch << 16]
    head += [_NOP] * (_ALIGNMENT - (len(head) + 1) % _ALIGNMENT)
    head.append(_STREAM | (len(words) >> 16 & 0xFF) << 8 | (len(words) & 0xFFFF) << 16)
    return np.concatenate([np.array(head, "<u4"), np.asarray(words, "<u4")]).tobytes()


def _unknown_kind(what: str) -> UnsupportedError:
    return UnsupportedError.of("npusim.accelerator", f"the command stream is {what}: an Ethos-U85's, which nothing "
                               "here runs", where="the command stream's constant", why="its commands and its weights "
                               "are others than those of the Ethos-U55 and U65, whose streams run here",
                               help="run it on a board; or compile the model for an Ethos-U65 (--target imx93) to see "
                                    "what the same operators give there")


def _error(headline: str) -> ModelError:
    return ModelError.of("npusim.payload", headline, where="the command stream's constant",
                         why="what the driver reads before the stream is damaged or of another kind")
