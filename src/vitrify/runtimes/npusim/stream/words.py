"""Words to commands and back. A code, a bit or a value that means nothing is an error with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.stream.commands import BY_NAME, COMMANDS, Spec

Words = np.ndarray[Any, np.dtype[np.uint32]]
_WIDE = 0x4000
_RESERVED = 0xBC00      # of the low half: bits 10 to 13 and 15 say nothing in this version of the stream


class Command(NamedTuple):
    """A command at a byte offset. ``value`` is the word's upper half, of a wide one with 32 bits more below."""

    offset: int
    spec: Spec
    value: int

    def field(self, name: str = "value") -> int:
        """Return one field by name."""
        return next(field for field in self.spec.fields if field.name == name).of(self.value)

    @property
    def fields(self) -> dict[str, int]:
        """All fields by name."""
        return {field.name: field.of(self.value) for field in self.spec.fields}


def decode(words: Sequence[int] | Words) -> Iterator[Command]:
    """Yield the commands in ``words``, each checked.

    Raises:
        ModelError: a word that is no command of these chips; says where.
    """
    plain = [int(word) for word in words]
    at = 0
    while at < len(plain):
        word = plain[at]
        wide = bool(word & _WIDE)
        spec = None if word & _RESERVED else COMMANDS.get((wide, word & 0x3FF))
        if spec is None:
            raise _error("unknown-command", f"word {word:#010x} is no command of the Ethos-U55 or U65", 4 * at)
        if wide and at + 1 == len(plain):
            raise _error("truncated", f"the stream ends within {spec.name}", 4 * at)
        value = word >> 16 << 32 | plain[at + 1] if wide else word >> 16
        yield checked(Command(4 * at, spec, value))
        at += 1 + wide


def checked(command: Command) -> Command:
    """Return ``command`` if its fields hold what they may."""
    spec, value = command.spec, command.value
    unused = value & ~spec.used
    # A negative number that is narrower than the word is extended over it.
    if unused and not (spec.fields[-1].signed and value >> spec.fields[-1].width == _ones(spec)):
        raise _error("field", f"{spec.name} {value:#x} sets bits that mean nothing ({unused:#x})", command.offset)
    for field in spec.fields:
        if field.allowed and field.of(value) not in field.allowed:
            raise _error("field", f"{spec.name}: {field.name} {field.of(value)} is none of {sorted(field.allowed)}",
                         command.offset)
    return command


def _ones(spec: Spec) -> int:
    return (1 << (48 if spec.wide else 16) - spec.fields[-1].width) - 1


def _error(code: str, headline: str, offset: int) -> ModelError:
    return ModelError.of(f"npusim.{code}", headline, where=f"byte {offset} of the command stream",
                         why="the stream is damaged, or made for another accelerator or by a newer compiler")


def encode(commands: Iterable[tuple[str, int]]) -> Words:
    """Return the words of commands by name and value, each checked: streams for tests and vectors.

    Raises:
        ModelError: a value does not fit its fields.
    """
    words: list[int] = []
    for name, value in commands:
        spec = BY_NAME[name]
        bits = 48 if spec.wide else 16
        command = checked(Command(4 * len(words), spec, value & (1 << bits) - 1))
        if spec.wide:
            words += [spec.code | _WIDE | command.value >> 32 << 16, command.value & 0xFFFFFFFF]
        else:
            words.append(spec.code | command.value << 16)
    return np.array(words, np.uint32)
