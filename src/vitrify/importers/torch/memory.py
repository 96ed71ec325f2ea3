"""A module, exported program or script module that the caller holds in memory."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding
from vitrify.importers.sizes import Sizes
from vitrify.importers.torch.examples import example_inputs as made_up
from vitrify.importers.torch.program import from_program
from vitrify.importers.torch.source import TorchSource

Given = Sequence[Any] | Mapping[str, Any] | None


def from_memory(module: Any, example_inputs: Given, sizes: Sizes) -> TorchSource:
    """Return what is to be exported.

    Raises:
        UsageError: the object is none of the three, or the example inputs do not fit its arguments.
        UnsupportedError: there are neither example inputs nor shapes.
    """
    import torch

    if isinstance(module, torch.export.ExportedProgram):
        return _program(module, example_inputs, sizes)
    if not isinstance(module, torch.nn.Module):
        raise UsageError.of(
            "call.model",
            f"a {type(module).__qualname__} is no module",
            help="vt.load takes a torch.nn.Module, an ExportedProgram or a ScriptModule",
        )
    label = str(getattr(module, "original_name", type(module).__qualname__))
    if module.training:
        raise UsageError.of(
            "torch.training",
            f"{label} is in training mode",
            where=label,
            why="dropout and batch statistics would be part of the model",
            help="call module.eval()",
        )
    names = argument_names(module)
    if example_inputs is None:
        return TorchSource(label, made_up(label, required_names(module), sizes), module=module)
    if sizes:
        raise UsageError.of(
            "call.example-inputs",
            f"{label} has example inputs, and shapes besides",
            where=label,
            help="leave the shapes out: the examples have theirs",
        )
    inputs = _bound(label, names, example_inputs)
    by_name = list(inputs) != names[: len(inputs)] and (bool(names) or isinstance(example_inputs, Mapping))
    return TorchSource(label, inputs, module=module, by_name=by_name)


def _program(program: Any, given: Given, sizes: Sizes) -> TorchSource:
    from torch.utils import _pytree

    label = "the exported program"
    if given is None:
        return from_program(label, program, sizes)
    names = list(program.graph_signature.user_inputs)
    if isinstance(given, Mapping):
        flat = list(_bound(label, names, given).values())
    else:
        flat = _pytree.tree_leaves(tuple(given) if not hasattr(given, "dtype") else (given,))
    if len(flat) != len(names):
        raise UsageError.of(
            "call.example-inputs",
            f"{label} takes {len(names)} inputs, {len(flat)} are given",
            where=label,
            help=f"give {', '.join(names)}",
        )
    return from_program(label, program, sizes, flat)


def argument_names(module: Any) -> list[str]:
    """The names of the arguments of a module's ``forward`` that may be given by position."""
    if hasattr(module, "forward") and hasattr(module.forward, "schema"):
        return [argument.name for argument in module.forward.schema.arguments[1:]]
    parameters = inspect.signature(module.forward).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def required_names(module: Any) -> list[str]:
    """Those that have no default."""
    if hasattr(module.forward, "schema"):
        return [a.name for a in module.forward.schema.arguments[1:] if not a.has_default_value()]
    parameters = inspect.signature(module.forward).parameters.values()
    return [
        p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]


def _keywords(module_names: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    return sorted(given, key=lambda name: module_names.index(name) if name in module_names else len(module_names))


def _bound(label: str, names: Sequence[str], given: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The example inputs by argument; None stands for an argument that is left out.

    Raises:
        UsageError: too many, an unknown name, or something that is no tensor; lists them all.
    """
    import torch

    if isinstance(given, torch.Tensor):
        given = (given,)
    if isinstance(given, Mapping):
        pairs = {name: given[name] for name in _keywords(names, given)}
    else:
        more = [f"input_{number}" for number in range(len(names), len(given))]
        pairs = dict(zip([*names, *more], given, strict=False))
    pairs = {name: value for name, value in pairs.items() if value is not None}
    unknown = [name for name in pairs if name not in names] if names else []
    if unknown:
        raise UsageError.of(
            "call.example-inputs",
            f"{label} takes {', '.join(names)}; there is no argument for '{unknown[0]}'",
            where=label,
            help=f"give at most {len(names)} example inputs, by those names",
        )
    odd = {name: type(value).__name__ for name, value in pairs.items() if not isinstance(value, torch.Tensor)}
    if odd:
        raise UsageError(
            [
                Finding(
                    code="call.example-inputs",
                    headline=f"the example for '{name}' is a {kind}, not a tensor",
                    where=label,
                    why="a model file takes tensors",
                    help="give torch tensors; bind other arguments beforehand, with a small module that hands them on",
                )
                for name, kind in odd.items()
            ]
        )
    return pairs
