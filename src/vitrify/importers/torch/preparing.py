"""A source made ready for the exporters: on the CPU, in float32, with outputs that are plain tensors with names."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from vitrify.core.errors import UnsupportedError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.sizes import show_dims
from vitrify.importers.torch.outputs import is_plain, named_outputs
from vitrify.importers.torch.quiet import first_line, quiet
from vitrify.importers.torch.source import TorchSource
from vitrify.importers.torch.tainting import run_watched

_VARIANTS = (-1.0, 0.25)
"""Factors of the example inputs for further trials: a trace holds one way through the module's Python code, so other
values have to give what PyTorch gives too."""
_EXTENT = re.compile(r"(\w+)\.size\(\)\[(\d+)\]")
_SIGNS = {"<=": "at most", ">=": "at least", "<": "below", ">": "above", "==": "equal to", "!=": "other than"}


@dataclass(frozen=True)
class Trial:
    """Input arrays by name, and what PyTorch answers to them."""

    inputs: dict[str, Any]
    outputs: list[Any]


def prepared(source: TorchSource) -> tuple[TorchSource, list[Trial]]:
    """Return the source to export, and trials of it: PyTorch's own answers. The caller's module stays as it is.

    Raises:
        UnsupportedError: it computes with complex numbers, has no weights yet, or does not run.
    """
    source = _widened(source)
    wanted = _run(source, watched=source.program is None and not hasattr(source.module, "graph"))
    outputs = named_outputs(wanted, source.inputs)
    if not outputs:
        raise UnsupportedError.of(
            "torch.outputs", f"{source.label} returns no tensor, but a {type(wanted).__name__}", where=source.label
        )
    if len(source.outputs) != len(outputs):
        source.outputs = list(outputs)
    trials = [_trial(source, source.inputs, outputs), *_more_trials(source)]
    if source.program is None and not is_plain(wanted):
        source = _flattened(source)
    return source, trials


def _trial(source: TorchSource, inputs: dict[str, Any], outputs: dict[str, Any]) -> Trial:
    return Trial(
        {name: _array(tensor) for name, tensor in inputs.items()}, [_array(value) for value in outputs.values()]
    )


def _more_trials(source: TorchSource) -> Iterator[Trial]:
    for factor in _VARIANTS:
        inputs = {
            name: tensor * factor if tensor.is_floating_point() else tensor for name, tensor in source.inputs.items()
        }
        try:
            found = _run(replace(source, inputs=inputs))
        except UnsupportedError:
            continue  # the module does not take such values
        yield _trial(source, inputs, named_outputs(found, source.inputs))


def _widened(source: TorchSource) -> TorchSource:
    """The source with its weights and example inputs in float32 and on the CPU."""
    import torch

    held = source.module if source.program is None else source.program
    tensors = [*_weights(held), *source.inputs.values()]
    if any(tensor.is_complex() for tensor in tensors):
        raise UnsupportedError.of(
            "torch.complex",
            f"{source.label} computes with complex numbers",
            where=source.label,
            why="there are none in TFLite",
            help="compute the real and imaginary parts as tensors",
        )
    if any(tensor.is_meta for tensor in tensors):
        raise UnsupportedError.of(
            "torch.meta",
            f"{source.label} has no weights: they are on the 'meta' device",
            where=source.label,
            help="load the weights first",
        )
    kinds = {str(t.dtype).removeprefix("torch.") for t in tensors if t.is_floating_point() and t.dtype != torch.float32}
    moved = {str(t.device) for t in tensors if t.device.type != "cpu"}
    if not kinds and not moved:
        return source
    inputs = {name: _plain(tensor) for name, tensor in source.inputs.items()}
    told = (
        [
            Finding(
                code="torch.float32",
                severity=Severity.INFO,
                where=source.label,
                headline=f"{source.label} was exported in float32: {', '.join(sorted(kinds))} became float32",
                why="TFLite computes floats in 32 bits; the weights' values are the same",
            )
        ]
        if kinds
        else []
    )
    source = replace(source, inputs=inputs, findings=[*source.findings, *told])
    if source.program is None:
        source.module = copy.deepcopy(source.module).float().cpu()
    elif kinds:
        module = source.callee.float()
        args, kwargs = source.arguments
        with quiet():
            source.program = torch.export.export(module, args, kwargs)
        source._callee = None
    return source


def _weights(held: Any) -> Iterator[Any]:
    if hasattr(held, "state_dict"):
        state = held.state_dict
        yield from (
            tensor for tensor in (state() if callable(state) else state).values() if hasattr(tensor, "is_complex")
        )


def _plain(tensor: Any) -> Any:
    tensor = tensor.detach().cpu()
    return tensor.float() if tensor.is_floating_point() else tensor


def _run(source: TorchSource, *, watched: bool = False) -> Any:
    import torch

    args, kwargs = source.arguments
    try:
        with torch.no_grad(), quiet():
            if not watched:
                return source.callee(*args, **kwargs)
            found, source.reads_values = run_watched(
                lambda: source.callee(*args, **kwargs), list(source.inputs.values())
            )
            return found
    except Exception as error:  # the module's own, whatever they are
        shapes = ", ".join(f"{name} {show_dims(tensor.shape)}" for name, tensor in source.inputs.items())
        demand = _demand(error)
        if demand:
            raise UnsupportedError.of(
                "torch.range",
                f"{source.label} was not exported for {shapes}: it needs {demand}",
                where=source.label,
                why="a program computes rightly only for the shapes that it was exported for",
                help="give such a shape, or export the program again with a wider torch.export.Dim",
            ) from error
        raise UnsupportedError.of(
            "torch.run",
            f"{source.label} does not run on {shapes}: {first_line(error)}",
            where=source.label,
            why=f"{type(error).__name__}; to export is to run once",
            help="check the inputs: --shape or example_inputs says others",
        ) from error


def _demand(error: Exception) -> str:
    """The condition of a program that does not hold, in words; empty when the error tells of none.

    Source: PyTorch, torch/export/_unlift.py: an AssertionError "Guard failed: " with Python code.
    """
    mark, _, code = first_line(error).partition("Guard failed: ")
    if mark or not code or not isinstance(error, AssertionError):
        return ""
    text = _EXTENT.sub(r"dimension \2 of '\1'", code)
    for sign, word in _SIGNS.items():
        text = text.replace(f" {sign} ", f" to be {word} ")
    return text


def _flattened(source: TorchSource) -> TorchSource:
    """The source with a module that returns a tuple of its tensors. Its parts are shared with the caller's."""
    module = copy.copy(source.module)
    module._forward_hooks = copy.copy(module._forward_hooks)
    taken = list(source.inputs)
    module.register_forward_hook(lambda _module, _arguments, result: tuple(named_outputs(result, taken).values()))
    return replace(source, module=module, _callee=None)


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()
