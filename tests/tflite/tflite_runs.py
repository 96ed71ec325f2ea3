"""Runs in LiteRT for the tests, in a child process since a bad file can end it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def outputs(path: Path | str, reference: bool = False, seed: int = 0, runs: int = 2) -> list[bytes]:
    """The bytes of all tensors after each of ``runs`` invocations on random inputs, in their order in the file.

    With the reference kernels these are all that was computed, else the outputs only.
    """
    resolver = OpResolverType.BUILTIN_REF if reference else OpResolverType.AUTO
    interpreter = Interpreter(model_path=str(path), experimental_op_resolver_type=resolver, num_threads=1,
                              experimental_preserve_all_tensors=reference)
    details = interpreter.get_tensor_details() if reference else interpreter.get_output_details()
    interpreter.allocate_tensors()      # adds scratch tensors, which hold whatever was in memory
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], _random(rng, detail["shape"], detail["dtype"]))
        interpreter.invoke()
        found += [interpreter.get_tensor(d["index"]).tobytes() for d in details if _can_be_got(d)]
    return found


def _can_be_got(detail: dict[str, Any]) -> bool:
    """False for resources: LiteRT 2.3 dies of a segmentation fault when asked for one."""
    return detail["dtype"] is not np.object_


def signatures(path: Path | str) -> dict[str, dict[str, list[str]]]:
    """The signatures as LiteRT lists them."""
    listed: dict[str, dict[str, list[str]]] = Interpreter(model_path=str(path)).get_signature_list()
    return listed


def _random(rng: np.random.Generator, shape: np.ndarray, dtype: type) -> np.ndarray:
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
