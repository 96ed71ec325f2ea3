"""Options tables to typed operators and back, by field names alone.

A class of ``vitrify.ops`` names its table in ``options`` and its fields as the schema does, so no operator has code
here. Builtin operators without a class are carried as ``Opaque`` with their table.
"""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from functools import cache
from typing import Any, get_type_hints

from vitrify.core.errors import ModelError
from vitrify.ir import Node, Operator
from vitrify.ir.operator import REGISTRY
from vitrify.ops import Custom, Opaque
from vitrify.tflite import schema
from vitrify.tflite.schema import Record

OPTIONS = "builtin_options"
"""Key of ``Node.extras`` for a file's options that are not the ones the operator's class names: the operator as it was
read, and the table, None when the file has no options. Once the node has another operator it says nothing."""

CUSTOM_CODE = 32


@cache
def _enums(name: str) -> dict[str, type[IntEnum]]:
    cls = REGISTRY[name]
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)
            if isinstance(hints[f.name], type) and issubclass(hints[f.name], IntEnum)}


def name_of(code: int) -> str:
    """The name of a builtin code; ``BUILTIN_n`` when the schema does not know it."""
    known = schema.operators()
    return known[code] if 0 <= code < len(known) else f"BUILTIN_{code}"


def code_of(op: Operator) -> int:
    """The builtin code of an operator.

    Raises:
        ModelError: the schema has no operator of that name.
    """
    if isinstance(op, Custom):
        return CUSTOM_CODE
    name = op.builtin if isinstance(op, Opaque) else op.name
    if name.startswith("BUILTIN_"):
        return int(name.removeprefix("BUILTIN_"))
    code = schema.operator_codes().get(name)
    if code is None:
        raise ModelError.of("tflite.operator", f"TFLite has no operator '{op.kind}'")
    return code


def read_operator(code: int, custom_code: str, custom_options: bytes, table: Record | None
                  ) -> tuple[Operator, dict[str, Any]]:
    """Return the operator, and the extras its node must keep.

    Raises:
        ModelError: an option has a value that the schema does not know.
    """
    if code == CUSTOM_CODE:
        custom = Custom(custom_code=custom_code, custom_options=custom_options)
        return custom, {} if table is None else {OPTIONS: (custom, table)}
    extras: dict[str, Any] = {"custom_options": custom_options} if custom_options else {}
    name = name_of(code)
    cls = REGISTRY.get(name)
    if cls is None:
        return Opaque(builtin=name, table_name=table.table if table else "", table=table), extras
    own = table if table is not None and table.table == cls.options else None
    op = _typed(cls, own or Record(cls.options)) if cls.options else cls()
    if own is None and (table is not None or cls.options):
        extras[OPTIONS] = (op, table)
    return op, extras


def _typed(cls: type[Operator], table: Record) -> Operator:
    enums = _enums(cls.name)
    values: dict[str, Any] = {}
    for field in fields(cls):
        value = getattr(table, field.name)
        if field.name in enums:
            value = _member(cls, field.name, enums[field.name], value)
        elif hasattr(value, "tolist"):
            value = bytes(value) if isinstance(field.default, bytes) else tuple(value.tolist())
        elif value is None and isinstance(field.default, (tuple, bytes)):
            value = type(field.default)()
        values[field.name] = value
    return cls(**values)


def _member(cls: type[Operator], field: str, enum: type[IntEnum], value: int) -> IntEnum:
    try:
        return enum(value)
    except ValueError:
        raise ModelError.of("tflite.option", f"{cls.name} has {field} {value}, the schema knows 0 to {max(enum)}",
                            help="export the file again, it may be damaged") from None


def write_options(node: Node) -> Record | None:
    """Return the options table of a node, None when it has none."""
    op = node.op
    read, kept = node.extras.get(OPTIONS, (None, None))
    if read == op:
        options: Record | None = kept
        return options
    if isinstance(op, Opaque):
        table: Record | None = op.table
        return table
    if op.options is None:
        return None
    empty = ((), b"", "")
    values = {f.name: getattr(op, f.name) for f in fields(op)}
    return Record(op.options, **{k: v for k, v in values.items() if not (isinstance(v, (tuple, bytes)) and v in empty)})


def version_of(node: Node) -> int:
    """The operator version to write: the file's own, else what the operator says its types and attributes need."""
    kept = node.extras.get("version")
    if kept is not None:
        return int(kept)
    return node.op.version(node)
