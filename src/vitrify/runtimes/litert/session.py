"""The child's side: LiteRT interpreters, kept open between calls. Only ``core.isolation`` calls what is here."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import ai_edge_litert
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from vitrify.core.errors import ModelError
from vitrify.runtimes.litert.reasons import reason
from vitrify.runtimes.litert.spec import Details, Spec

Array = np.ndarray[Any, np.dtype[Any]]

_RESOLVERS = {"reference": OpResolverType.BUILTIN_REF,
              "optimized": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
              "xnnpack": OpResolverType.BUILTIN}
_STATEFUL = frozenset({"VAR_HANDLE", "CALL_ONCE"})
_KEPT = 4
"""Interpreters kept in one child: a model with and without inner tensors, and a previous one."""

_open: dict[Spec, Session] = {}


def _native(path: str) -> Any:
    """The path as LiteRT opens it: a name that is no text has to come as bytes."""
    return path if path.isascii() else os.fsencode(path)


class Session:
    """One interpreter, allocated."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.kernels = spec.kernels
        self.interpreter = self._make()
        try:
            self.inputs = self.interpreter.get_input_details()
            self.outputs = self.interpreter.get_output_details()
            self.operators = self.interpreter._get_ops_details()
            self.tensors = self.interpreter.get_tensor_details()
        except (ValueError, RuntimeError) as error:      # a name that is no text, an index out of range
            raise ModelError.of("litert.load", f"LiteRT cannot describe the file: {error}", where=spec.path) from error
        self._has_resources = any(op["op_name"] in _STATEFUL for op in self.operators)
        self._resources = {d["index"] for d in self.tensors if d["dtype"] is np.object_}
        self._used = False

    def _make(self) -> Interpreter:
        spec = self.spec
        try:
            interpreter = self._load(_RESOLVERS[spec.kernels])
        except (ValueError, RuntimeError) as error:
            raise ModelError.of("litert.load", f"LiteRT cannot load the file: {error}", where=spec.path) from error
        try:
            details = interpreter.get_input_details()
            for position, shape in spec.shapes:
                interpreter.resize_tensor_input(details[position]["index"], shape)
            interpreter.allocate_tensors()
        except (ValueError, RuntimeError, IndexError) as error:
            raise ModelError.of("litert.prepare", f"LiteRT cannot prepare the model: {reason(error, interpreter)}",
                                where=spec.path) from error
        return interpreter

    def _load(self, resolver: OpResolverType) -> Interpreter:
        spec = self.spec
        try:
            return Interpreter(model_path=_native(spec.path), num_threads=spec.threads,
                               experimental_op_resolver_type=resolver,
                               experimental_preserve_all_tensors=spec.keep_all)
        except ValueError as error:
            # LiteRT 2.3 has no reference kernels for CEIL, ROUND and ELU, nor for the versions that its own tools give
            # TILE and DEPTH_TO_SPACE in int8; the optimized ones then run all of the file.
            if resolver != OpResolverType.BUILTIN_REF or "Didn't find op" not in str(error):
                raise
            self.kernels = "optimized"
            return self._load(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)

    def reset(self) -> None:
        """Bring variables back to their start; models with resources get a new interpreter, as only that does it."""
        if self._used and self._has_resources:
            self.interpreter = self._make()
        else:
            self.interpreter.reset_all_variables()

    def invoke(self, arrays: Sequence[Array]) -> None:
        """Set the inputs and run."""
        self._used = True
        try:
            for details, array in zip(self.inputs, arrays, strict=True):
                self.interpreter.set_tensor(details["index"], array)
            self.interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise ModelError.of("litert.invoke", f"LiteRT cannot run the model: {error}",
                                where=self.spec.path) from error

    def read(self, index: int) -> Array | None:
        """Return a tensor's value, None where it has none (strings of optional outputs, resources)."""
        if index in self._resources:
            return None                  # LiteRT dies of reading one
        try:
            value: Array = self.interpreter.get_tensor(index)
        except ValueError:
            return None
        return value


def session(spec: Spec) -> Session:
    """Return the open session, opening it when needed and closing the oldest one beyond ``_KEPT``."""
    if spec not in _open:
        while len(_open) >= _KEPT:
            del _open[next(iter(_open))]
        _open[spec] = Session(spec)
    return _open[spec]


def details(spec: Spec) -> Details:
    """Describe the file's inputs, outputs and tensors."""
    opened = session(spec)
    computed = [int(i) for op in opened.operators for i in op["outputs"]]
    return Details(opened.inputs, opened.outputs, opened.tensors, computed,
                   _signature(opened), ai_edge_litert.__version__, opened.kernels)


def _signature(opened: Session) -> tuple[dict[str, int], dict[str, int]] | None:
    """Name inputs and outputs by the first signature that covers exactly those of the main graph."""
    inputs = {d["index"]: position for position, d in enumerate(opened.inputs)}
    outputs = {d["index"]: position for position, d in enumerate(opened.outputs)}
    for key in opened.interpreter.get_signature_list():
        runner = opened.interpreter.get_signature_runner(key)
        taken = {name: inputs.get(d["index"], -1) for name, d in runner.get_input_details().items()}
        given = {name: outputs.get(d["index"], -1) for name, d in runner.get_output_details().items()}
        if sorted(taken.values()) == sorted(inputs.values()) and sorted(given.values()) == sorted(outputs.values()):
            return taken, given
    return None


def invoke(spec: Spec, arrays: Sequence[Array], wanted: Sequence[int] | None = None,
           keep_state: bool = False) -> list[Array | None]:
    """Run once and return the outputs, or the tensors with the ``wanted`` indices."""
    opened = session(spec)
    if not keep_state:
        opened.reset()
    opened.invoke(arrays)
    indices = [d["index"] for d in opened.outputs] if wanted is None else wanted
    return [opened.read(index) for index in indices]


def invoke_many(spec: Spec, stacks: Sequence[Array], keep_state: bool = False) -> tuple[list[Array], float]:
    """Run each row of the stacks; return stacks of the outputs, and the seconds inside the interpreter."""
    opened = session(spec)
    count = len(stacks[0])
    rows: list[list[Array]] = [[] for _ in opened.outputs]
    indices = [d["index"] for d in opened.outputs]
    seconds = 0.0
    for number in range(count):
        start = time.perf_counter()
        if not keep_state:
            opened.reset()
        opened.invoke([stack[number] for stack in stacks])
        for index, row in zip(indices, rows, strict=True):
            row.append(opened.interpreter.get_tensor(index))
        seconds += time.perf_counter() - start
    return [np.stack(row) for row in rows], seconds


def timings(spec: Spec, arrays: Sequence[Array], runs: int, warmup: int) -> list[float]:
    """Return the seconds of each of ``runs`` runs."""
    opened = session(spec)
    opened.reset()
    opened.invoke(arrays)
    seconds = []
    for number in range(warmup - 1 + runs):
        start = time.perf_counter()
        opened.interpreter.invoke()
        if number >= warmup - 1:
            seconds.append(time.perf_counter() - start)
    return seconds
