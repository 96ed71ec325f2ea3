"""Write src/vitrify/tflite/schema.json from the TFLite schema that the installed ai-edge-litert was built with.

    python scripts/update_schema.py            # rewrite the file
    python scripts/update_schema.py --check    # exit 1 when it differs

The generated Python module holds everything: field types stand in the comments of its object API, slots and scalar
types in its builder functions.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src" / "vitrify" / "tflite" / "schema.json"
SCALARS = {"Int8": "b", "Uint8": "B", "Int16": "h", "Uint16": "H", "Int32": "i", "Uint32": "I", "Int64": "q",
           "Uint64": "Q", "Float32": "f", "Float64": "d", "Bool": "?"}
UNIONS = ("BuiltinOptions", "BuiltinOptions2", "QuantizationDetails", "SparseIndexVector")


class _Recorder:
    """Stands in for a flatbuffers builder and remembers the one slot that a generated function fills."""

    seen: tuple[str, int, Any]

    def __getattr__(self, name: str) -> Any:
        def record(slot: int, value: Any, default: Any) -> None:
            self.seen = (name.removeprefix("Prepend").removesuffix("Slot"), slot, default)
        return record


def snake(name: str) -> str:
    """Turn the generated camelCase back into the schema's own spelling."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def describe() -> dict[str, Any]:
    """Return the schema as tables, unions and operator names."""
    from ai_edge_litert import schema_py_generated as schema

    text = Path(schema.__file__).read_text()
    names = re.findall(r"^class (\w+)T\(object\):", text, re.M)
    tables = {name: " ".join(_fields(schema, text, name)) for name in names}
    unions = {name: _numbered(getattr(schema, name)) for name in UNIONS}
    return {"operators": _numbered(schema.BuiltinOperator), "unions": unions, "tables": tables}


def _numbered(enum: type) -> list[str]:
    values = {k: v for k, v in vars(enum).items() if not k.startswith("_")}
    ordered = sorted(values, key=lambda name: values[name])
    assert [values[name] for name in ordered] == list(range(len(ordered))), f"{enum.__name__} has a hole"
    return ordered


def _fields(schema: Any, text: str, table: str) -> list[str]:
    body = text[text.index(f"\nclass {table}T(object):"):]
    body = body[:body.index("@classmethod")]
    hints = dict(re.findall(r"self\.(\w+) = \w+  # type: (.*)", body))
    found: list[tuple[int, str]] = []
    for field, hint in hints.items():
        upper = field[0].upper() + field[1:]
        recorder = _Recorder()
        getattr(schema, f"{table}Add{upper}")(recorder, 0)
        kind, slot, default = recorder.seen
        found.append((slot, f"{snake(field)}@{slot}:{_type(schema, table, upper, kind, hint, default)}"))
    return [entry for _, entry in sorted(found)]


def _type(schema: Any, table: str, field: str, kind: str, hint: str, default: Any) -> str:
    if kind in SCALARS:
        return SCALARS[kind] + (f"={default}" if default else "")
    if hint == "Optional[str]":
        return "string"
    if hint == "Optional[List[Optional[str]]]":
        return "[string]"
    if union := re.match(r"Union\[", hint):
        assert union
        return "union"
    if inner := re.match(r"Optional\[List\[(\w+)T\]\]", hint):
        return f"[{inner[1]}]"
    if inner := re.match(r"Optional\[(\w+)T\]", hint):
        return inner[1]
    code = getattr(getattr(schema, table), f"{field}AsNumpy").__code__
    flags = [n.removesuffix("Flags") for n in code.co_names if n.endswith("Flags") and n != "UOffsetTFlags"]
    return f"[{SCALARS[flags[0]]}]"


def render() -> str:
    """Return the file's text: one table a line, so that a change of the schema reads well."""
    parts = describe()
    tables = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in parts["tables"].items())
    unions = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in parts["unions"].items())
    return (f'{{"operators": {json.dumps(parts["operators"])},\n"unions": {{\n{unions}\n}},\n'
            f'"tables": {{\n{tables}\n}}}}\n')


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text() != render())
    TARGET.write_text(render())
