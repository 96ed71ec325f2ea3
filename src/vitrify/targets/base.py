"""A target: the chip with its configuration, as facts that each name their source.

A target is a folder beside this file with a ``facts.toml``; its name is the folder's name. Nothing lists them by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from vitrify.core.errors import InternalError, UsageError

_FOLDER = Path(__file__).parent
_FILE = "facts.toml"


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number about a chip, and why we believe it.

    ``basis``: ``documented`` by the vendor or its tools; ``fitted`` to published measurements; ``assumed`` by us.
    ``low`` and ``high`` bound what the value may be in truth; both are None for a value without doubt.
    """

    value: float
    basis: Literal["documented", "fitted", "assumed"]
    source: str
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value that we think possible."""
        return (self.value if self.low is None else self.low, self.value if self.high is None else self.high)


class Target(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chip: what it is called, which compiler serves its NPU, and its facts by name (units stand in the names).

    ``family`` is the package of rules that holds for it, ``core`` the variant among them. ``far_memory`` holds the
    weights, unless ``constants`` are near; values live there too, or in on-chip memory (``arena``).
    ``where_compiled`` says what happens where no compiler that Vitrify drives serves the chip.
    ``cpu`` names the cores that take what the NPU does not. ``corrections`` are measured over estimated times, by side
    ("cpu", "npu") and by side and operator ("cpu ADD"), and ``corrected_by`` says whose; no file of a target has them.
    """

    name: str
    title: str
    npu: str
    backend: str
    accelerator: str
    family: str
    core: str
    far_memory: Literal["dram", "flash"] = "dram"
    arena: Literal["near", "far"] = "far"
    constants: Literal["near", "far"] = "far"
    where_compiled: str = ""
    cpu: str = "the processor beside it"
    facts: dict[str, Fact]
    corrections: dict[str, float] = {}
    corrected_by: str = ""

    @property
    def far_bytes_per_s(self) -> Fact:
        """The bandwidth of the memory outside the chip."""
        return self.fact(f"{self.far_memory}_bytes_per_s")

    def fact(self, name: str) -> Fact:
        """Return one fact.

        Raises:
            InternalError: this target's facts.toml lacks it.
        """
        try:
            return self.facts[name]
        except KeyError:
            raise InternalError.of("target.fact-missing", f"the facts of {self.name} lack '{name}'",
                                   where=f"targets/{self.name}/{_FILE}") from None

    def value(self, name: str) -> float:
        """Return one fact's value (see ``fact``)."""
        return self.fact(name).value

    def known(self, name: str) -> float | None:
        """Return one fact's value, None where nothing about it is known."""
        return self.facts[name].value if name in self.facts else None

    def correction(self, side: str, kind: str = "") -> float:
        """Return what times of ``kind`` on one side are multiplied by: its own factor, or else that of the side."""
        return self.corrections.get(f"{side} {kind}", self.corrections.get(side, 1.0))

    def told(self, source: str) -> str:
        """Return where an estimate is from, and what corrected it."""
        return f"{source}, {self.corrected_by}" if self.corrected_by else source

    def doubts(self) -> list[str]:
        """Return a sentence for each fact that is not documented: name, value, basis and source."""
        return [f"{name} = {fact.value:g} ({fact.basis}: {fact.source})"
                for name, fact in self.facts.items() if fact.basis != "documented"]


def names() -> list[str]:
    """Return the names of all targets, sorted."""
    return sorted(path.parent.name for path in _FOLDER.glob(f"*/{_FILE}"))


def load(name: str) -> Target:
    """Return the target called ``name``.

    Raises:
        UsageError: there is none; lists those there are.
        InternalError: its facts.toml does not fit.
    """
    if name not in names():
        raise UsageError.of("target.unknown", f"unknown target '{name}'", help=f"use one of: {', '.join(names())}")
    try:
        return msgspec.convert({**_content(name), "name": name}, Target)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InternalError.of("target.invalid", f"the facts of {name} do not fit: {error}",
                               where=f"targets/{name}/{_FILE}") from error


def _content(name: str) -> dict[str, Any]:
    """Return what the file of ``name`` says; of a file that extends another's, both, its own facts first."""
    content: dict[str, Any] = msgspec.toml.decode((_FOLDER / name / _FILE).read_bytes())
    base = content.pop("extends", None)
    if base is None:
        return content
    whole = _content(base)
    return {**whole, **content, "facts": {**whole["facts"], **content.get("facts", {})}}
