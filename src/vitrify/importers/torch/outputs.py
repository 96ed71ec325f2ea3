"""What a module returns, as tensors with names: dictionaries, dataclasses, tuples and lists are taken apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def named_outputs(value: Any, taken: Iterable[str]) -> dict[str, Any]:
    """Return the tensors in what a module returned, by name: keys and fields by their own, places by number.

    What is no tensor (None, a number) is left out. ``taken`` are names that the inputs have.
    """
    found: dict[str, Any] = {}
    used = set(taken)
    for path, tensor in _leaves(value, ()):
        first = path[0] if path else ""
        name = ".".join(path) if first and not first.isdigit() else "_".join(("output", *path))
        while name in used:
            name += "_out"
        used.add(name)
        found[name] = tensor
    return found


def is_plain(value: Any) -> bool:
    """True for a tensor, and for a tuple or list of tensors: what exporters give back as it is."""
    if type(value) in (tuple, list):
        return all(hasattr(part, "detach") for part in value)
    return hasattr(value, "detach")


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(value, "detach"):
        yield path, value
        return
    parts: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        parts = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = zip(value._fields, value, strict=True)
    elif isinstance(value, list | tuple):
        parts = [(str(place), part) for place, part in enumerate(value)]
    elif dataclasses.is_dataclass(value):
        parts = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    for key, part in parts:
        yield from _leaves(part, (*path, key))
