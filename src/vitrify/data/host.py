"""Running a host program with the operators' own reference arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from vitrify import ops
from vitrify.core.errors import ModelError
from vitrify.ir.host import HostProgram, HostStep, values_of
from vitrify.ir.operator import Operator

Array = np.ndarray[Any, np.dtype[Any]]


def run_host(program: HostProgram, outputs: Sequence[Array]) -> list[Array]:
    """Run the steps on the file's dequantized outputs and return what the program gives."""
    values = values_of(program, outputs)
    for step in program.steps:
        made = _operator(msgspec.json.encode(step)).evaluate([values.get(i) for i in step.inputs])
        values |= dict(zip(step.outputs, made, strict=True))
    return [values[i] for i in program.gives]


@lru_cache(maxsize=256)
def _operator(encoded: bytes) -> Operator:
    step = msgspec.json.decode(encoded, type=HostStep)
    described = ops.REGISTRY.get(step.operator)
    if described is None:
        raise ModelError.of("host.operator", f"the file's host program has an unknown operator '{step.operator}'",
                            help="use a newer version of Vitrify")
    return msgspec.convert(step.attributes, described)


def attributes_of(op: Operator) -> dict[str, Any]:
    """Return an operator's attributes as plain data."""
    plain: dict[str, Any] = msgspec.to_builtins(op)
    return plain
