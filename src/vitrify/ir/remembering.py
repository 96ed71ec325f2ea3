"""Facts that travel in a model's own file, as JSON in an entry of its metadata."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from vitrify.core.errors import ModelError
from vitrify.ir.graph import Model

Fact = TypeVar("Fact", bound=msgspec.Struct)


def store(model: Model, entry: str, fact: msgspec.Struct) -> None:
    """Write a fact into a model."""
    model.metadata[entry] = msgspec.json.encode(fact)


def stored(model: Model, entry: str, kind: type[Fact], code: str, help: str) -> Fact | None:
    """Return what a model holds in an entry, None where it holds nothing.

    Raises:
        ModelError: it cannot be read: a finding of ``code``, which tells ``help``.
    """
    content = model.metadata.get(entry)
    if content is None:
        return None
    try:
        return msgspec.json.decode(bytes(content), type=kind)
    except msgspec.MsgspecError as error:
        raise ModelError.of(code, f"the model's entry '{entry}' cannot be used: {error}", help=help) from error
