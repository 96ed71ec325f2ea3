"""The findings that the program's own source makes: their sentences, read from it, so that no list is kept by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import vitrify
from vitrify.results import ExplanationRow

_CALL = re.compile(r"""(?:\bcode=|\b_?finding\([^()"]*|\bof\(|\breport\(|\b_known\(r?"[^"\n]*",)\s*"""
                   r""""(?P<code>[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)+)\"""")
_POSITIONAL = ("headline", "why", "help")
_SEVERITIES = {"ERROR": "error", "WARNING": "warning", "INFO": "info"}


@cache
def _sources() -> dict[Path, str]:
    root = Path(vitrify.__file__).parent
    return {path: path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}


@cache
def mentioned() -> dict[str, list[Path]]:
    """Return the codes of findings with the modules that make them."""
    found: dict[str, list[Path]] = {}
    for path, text in _sources().items():
        for match in _CALL.finditer(text):
            found.setdefault(match["code"], []).append(path)
    return found


def rows_of(code: str) -> list[ExplanationRow]:
    """Return what the program says with a code, each sentence once."""
    rows: dict[str, ExplanationRow] = {}
    for path in dict.fromkeys(mentioned().get(code, ())):
        for call in _calls(path, code):
            row = _row(code, call)
            rows.setdefault(row.says, row)
    return list(rows.values()) or [ExplanationRow(code=code, kind="finding") for _ in mentioned().get(code, ())[:1]]


@cache
def _parsed(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(_sources()[path])) if isinstance(node, ast.Call)]


def _calls(path: Path, code: str) -> Iterator[ast.Call]:
    for node in _parsed(path):
        if any(_text(value) == code for value in (
                *node.args, *(word.value for word in node.keywords if word.arg == "code"))):
            yield node


def _row(code: str, call: ast.Call) -> ExplanationRow:
    given = {word.arg: word.value for word in call.keywords if word.arg}
    places = [_text(value) for value in call.args]
    if code in places:
        given = {**dict(zip(_POSITIONAL, call.args[places.index(code) + 1:], strict=False)), **given}
    severity = given.get("severity")
    weight = _SEVERITIES.get(severity.attr, "") if isinstance(severity, ast.Attribute) else ""
    says, why, help = (_text(given[name]) if name in given else "" for name in _POSITIONAL)
    return ExplanationRow(code=code, kind="finding", says=says, why=why, help=help,
                          severity=weight or ("error" if "severity" not in given else ""))


def _text(node: ast.expr) -> str:
    """A sentence as it is written, with its values as names in braces."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else f"{{{_name(part)}}}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return ""


def _name(part: ast.expr) -> str:
    """A short name for a value in a sentence."""
    value = part.value if isinstance(part, ast.FormattedValue) else part
    while isinstance(value, ast.Call):
        value = value.args[0] if value.args else value.func
    if isinstance(value, ast.Attribute):
        return value.attr
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return str(value.slice.value)
    return value.id if isinstance(value, ast.Name) else "..."
