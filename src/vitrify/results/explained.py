"""What `explain` and `targets` answer: codes in words, chips with their facts."""

from __future__ import annotations

import msgspec


class ExplanationRow(msgspec.Struct, kw_only=True):
    """One meaning of a code. ``kind``: rule (of a target), diagnosis (of a whole file), or finding (anything else).

    ``says`` is what is allowed; of a finding its sentence, with values as names in braces. ``confidence``, ``source``
    and ``versions`` (of the compiler) say how far to believe it. ``operators`` empty: all. ``rules``: what a diagnosis
    is the cause of.
    """

    code: str
    kind: str
    says: str = ""
    why: str = ""
    help: str = ""
    fix: str = ""
    source: str = ""
    confidence: str = ""
    versions: str = ""
    severity: str = ""
    operators: list[str] = []
    targets: list[str] = []
    rules: list[str] = []


class FactRow(msgspec.Struct, kw_only=True):
    """One number about a chip. ``basis``: documented, fitted or assumed; ``low`` and ``high`` bound it, null without
    doubt."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    basis: str = ""
    source: str = ""


class TargetRow(msgspec.Struct, kw_only=True):
    """A chip. ``backend`` is the compiler that serves its NPU, ``has_compiler`` whether it is installed, ``rules`` how
    many rules hold for it; ``where_compiled`` says what happens where no compiler that Vitrify drives serves it.
    ``macs_per_cycle``, ``clock_hz`` and ``cache_bytes`` are null where nothing is known of them; ``assumed`` lists
    those that are not documented. ``operators`` and ``facts`` are given of a chip that was asked for by name."""

    name: str
    title: str = ""
    npu: str = ""
    backend: str = ""
    has_compiler: bool = False
    accelerator: str = ""
    family: str = ""
    core: str = ""
    rules: int = 0
    where_compiled: str = ""
    macs_per_cycle: int | None = None
    clock_hz: float | None = None
    cache_bytes: int | None = None
    assumed: list[str] = []
    operators: list[str] = []
    facts: list[FactRow] = []
