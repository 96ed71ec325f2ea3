"""The TFLite schema as data: tables, fields, slots, unions and operator names.

Nothing here knows what a field means. ``schema.json`` is written by ``scripts/update_schema.py`` from the schema that
the installed runtime was built with, so that a new operator needs no line of code.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

SCALARS = {code: np.dtype(name).newbyteorder("<") for code, name in {
    "b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "q": "i8", "Q": "u8", "f": "f4", "d": "f8",
    "?": "?"}.items()}
"""Element types by their letter of the ``struct`` module."""


class Field(NamedTuple):
    """One field of a table. ``kind`` says how the value is stored: ``scalar``, ``vector`` (of scalars), ``string``,
    ``strings``, ``table``, ``tables`` or ``union``; ``of`` is the scalar's letter or the table's name."""

    name: str
    slot: int
    kind: str
    of: str
    default: Any


class Record:
    """A decoded table: one attribute for each field; absent vectors, strings and tables are None.

    Unions are a Record; their type number is not repeated in a field of its own.
    """

    def __init__(self, table: str, **values: Any) -> None:
        self.table = table
        self.__dict__.update(defaults(table))
        self.__dict__.update(values)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self.__dict__.keys() == other.__dict__.keys() and all(
            _same(value, other.__dict__[name]) for name, value in self.__dict__.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items() if k != "table" and v is not None)
        return f"{self.table}({shown})"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is not None and b is not None and np.array_equal(a, b)
    return bool(a == b)


@cache
def _document() -> dict[str, Any]:
    text = resources.files("vitrify.tflite").joinpath("schema.json").read_bytes()
    document: dict[str, Any] = msgspec.json.decode(text)
    return document


@cache
def operators() -> tuple[str, ...]:
    """The builtin operators' names; the position is the code."""
    return tuple(_document()["operators"])


@cache
def operator_codes() -> dict[str, int]:
    """The builtin operators' codes by name."""
    return {name: code for code, name in enumerate(operators())}


@cache
def tables() -> frozenset[str]:
    """The names of all tables."""
    return frozenset(_document()["tables"])


@cache
def fields(table: str) -> tuple[Field, ...]:
    """The fields of a table in the order of their slots, without the type numbers of unions."""
    parts = [_field(entry) for entry in _document()["tables"][table].split()]
    unions = {f"{f.name}_type" for f in parts if f.kind == "union"}
    return tuple(f for f in parts if f.name not in unions)


def _field(entry: str) -> Field:
    name, rest = entry.split("@")
    slot, kind = rest.split(":")
    kind, _, default = kind.partition("=")
    if kind in SCALARS:
        value = {"?": bool, "f": float, "d": float}.get(kind, int)(int(default or 0))
        return Field(name, int(slot), "scalar", kind, value)
    inner = kind.strip("[]")
    if kind == inner:
        return Field(name, int(slot), inner if inner in ("string", "union") else "table", inner, None)
    many = "vector" if inner in SCALARS else "strings" if inner == "string" else "tables"
    return Field(name, int(slot), many, inner, None)


@cache
def defaults(table: str) -> dict[str, Any]:
    """The value of each field that a file does not mention."""
    return {f.name: f.default for f in fields(table)}


UNIONS = {"builtin_options": "BuiltinOptions", "builtin_options2": "BuiltinOptions2",
          "details": "QuantizationDetails", "array_segments": "SparseIndexVector",
          "array_indices": "SparseIndexVector"}
"""The union that each union field holds."""


@cache
def members(union: str) -> tuple[str, ...]:
    """The tables that a union may hold; the position is the type number, the first is NONE."""
    return tuple(_document()["unions"][union])


@cache
def options_field(table: str) -> str:
    """The field of Operator that holds options of this table."""
    return "builtin_options" if table in members("BuiltinOptions") else "builtin_options2"
