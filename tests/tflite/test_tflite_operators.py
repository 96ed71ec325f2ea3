"""Every builtin operator of the schema keeps its options through read, write and read."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import fields
from enum import IntEnum
from pathlib import Path
from typing import get_type_hints

import pytest
import tflite_trees as trees

from vitrify.ir.operator import REGISTRY
from vitrify.ops import Custom, Opaque
from vitrify.tflite import read_bytes, schema, to_bytes

ROOT = Path(__file__).resolve().parents[2]
BY_LOWER = {t.lower(): t for t in schema.tables()}
TABLES = [t for union in ("BuiltinOptions", "BuiltinOptions2") for t in schema.members(union)[1:]]


def table_of(name: str) -> str | None:
    """The options table of an operator: what its class says, else the table of the same name."""
    if name in REGISTRY:
        return REGISTRY[name].options
    return BY_LOWER.get(f"{name.replace('_', '')}options".lower())


def limits_of(name: str) -> dict[str, int]:
    if name not in REGISTRY:
        return {}
    hints = get_type_hints(REGISTRY[name])
    return {f.name: max(hints[f.name]) for f in fields(REGISTRY[name])
            if isinstance(hints[f.name], type) and issubclass(hints[f.name], IntEnum)}


def model_with(code: int, table: str | None, rng: random.Random, limits: dict[str, int]) -> bytes:
    version = rng.randint(1, 9)
    if table is None:
        return trees.pack(trees.one_operator(code, version=version))
    options = trees.random_options(table, rng, limits)
    if table in schema.members("BuiltinOptions"):
        number = schema.members("BuiltinOptions").index(table)
        return trees.pack(trees.one_operator(code, options=options, options_type=number, version=version))
    number = schema.members("BuiltinOptions2").index(table)
    return trees.pack(trees.one_operator(code, options2=options, options2_type=number, version=version))


def assert_kept(content: bytes) -> None:
    model = read_bytes(content)
    written = to_bytes(model)
    assert trees.tree(trees.unpack(written)) == trees.tree(trees.unpack(content))
    assert to_bytes(read_bytes(written)) == written


@pytest.mark.parametrize("name", schema.operators())
def test_operator_is_kept(name: str) -> None:
    rng = random.Random(name)
    for _ in range(3):
        content = model_with(schema.operator_codes()[name], table_of(name), rng, limits_of(name))
        op = read_bytes(content).main.nodes[0].op
        if name == "CUSTOM":
            assert isinstance(op, Custom)
        else:
            assert type(op) is REGISTRY.get(name, Opaque)
            assert op.kind == name
        assert_kept(content)


@pytest.mark.parametrize("table", TABLES)
def test_table_is_kept_on_any_operator(table: str) -> None:
    """A table that is not the operator's own is carried as it is."""
    for name in ("ABS", "CONV_2D", "UNIQUE"):
        assert_kept(model_with(schema.operator_codes()[name], table, random.Random(table),
                               limits_of(name) if table == table_of(name) else {}))


@pytest.mark.parametrize("name", [n for n, cls in REGISTRY.items() if cls.options])
def test_absent_options_stay_absent(name: str) -> None:
    content = trees.pack(trees.one_operator(schema.operator_codes()[name]))
    assert type(read_bytes(content).main.nodes[0].op) is REGISTRY[name]
    assert_kept(content)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_class_has_the_fields_of_its_table(name: str) -> None:
    cls = REGISTRY[name]
    expected = [f.name for f in schema.fields(cls.options)] if cls.options else []
    assert [f.name for f in fields(cls)] == expected


@pytest.mark.parametrize("name", [n for n, cls in REGISTRY.items() if cls.options])
def test_typed_values_are_those_of_the_file(name: str) -> None:
    """The typed attributes, not only the bytes, carry what the schema's own reader sees."""
    content = model_with(schema.operator_codes()[name], table_of(name), random.Random(name), limits_of(name))
    operator = trees.unpack(content).subgraphs[0].operators[0]
    seen = trees.tree(operator.builtinOptions or operator.builtinOptions2)
    op = read_bytes(content).main.nodes[0].op
    for field in fields(op):
        value = getattr(op, field.name)
        value = list(value) if isinstance(value, (tuple, bytes)) else value
        assert value == seen[trees.camel(field.name)], field.name


@pytest.mark.parametrize("options", [b"", b"\x00\x01\xff" * 100], ids=["none", "300 bytes"])
def test_custom_operator_is_kept(options: bytes) -> None:
    content = trees.pack(trees.one_operator(32, custom="MyOp", custom_options=options, version=4))
    op = read_bytes(content).main.nodes[0].op
    assert op == Custom(custom_code="MyOp", custom_options=options)
    assert_kept(content)


def test_operator_beyond_the_schema_is_carried() -> None:
    content = trees.pack(trees.one_operator(4321))
    assert read_bytes(content).main.nodes[0].op.kind == "BUILTIN_4321"
    assert_kept(content)


def test_schema_file_is_that_of_the_installed_runtime() -> None:
    run = subprocess.run([sys.executable, str(ROOT / "scripts" / "update_schema.py"), "--check"], check=False)
    assert run.returncode == 0, "run scripts/update_schema.py"
