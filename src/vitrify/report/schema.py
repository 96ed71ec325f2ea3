"""The JSON schema of what ``--json`` prints and of ``run.json``, generated from the types that are printed."""

from __future__ import annotations

from typing import Any

import msgspec

from vitrify.results import RESULTS, FailureResult, RunRecord


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON schema of a command's answer; ``run.json`` and ``failure`` are names too.

    Raises:
        KeyError: no such command.
    """
    special: dict[str, type[msgspec.Struct]] = {"run.json": RunRecord, "failure": FailureResult}
    return msgspec.json.schema(special.get(command) or RESULTS[command])


def schemas() -> dict[str, dict[str, Any]]:
    """Return all schemas by name."""
    return {name: schema_of(name) for name in (*RESULTS, "failure", "run.json")}
