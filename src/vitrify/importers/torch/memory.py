"""A module, exported program or script module that the caller holds in memory."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from vitrify.core.errors import UsageError
from vitrify.importers.torch.examples import example_inputs as made_up
from vitrify.importers.torch.source import TorchSource


def from_memory(module: Any, example_inputs: Sequence[Any] | Mapping[str, Any] | None,
                sizes: Mapping[str, Sequence[int] | int]) -> TorchSource:
    """Return what is to be exported.

    Raises:
        UsageError: the object is none of the three, or the example inputs do not fit its arguments.
        UnsupportedError: there are neither example inputs nor shapes.
    """
    import torch

    if isinstance(module, torch.export.ExportedProgram):
        return _program(module, example_inputs, sizes)
    if not isinstance(module, torch.nn.Module):
        raise UsageError.of("call.model", f"a {type(module).__qualname__} is no module",
                            help="vt.load takes a torch.nn.Module, an ExportedProgram or a ScriptModule")
    label = type(module).__qualname__
    if module.training:
        raise UsageError.of("torch.training", f"{label} is in training mode", where=label,
                            why="dropout and batch statistics would be part of the model", help="call module.eval() first")
    names = argument_names(module)
    if example_inputs is None:
        required = dict.fromkeys(names[:_required(module)])
        return TorchSource(label, made_up(label, required, sizes), module=module)
    return TorchSource(label, _bound(label, names, example_inputs), module=module)


def _program(program: Any, example_inputs: Sequence[Any] | Mapping[str, Any] | None,
             sizes: Mapping[str, Sequence[int] | int]) -> TorchSource:
    names = list(program.graph_signature.user_inputs)
    if example_inputs is not None:
        return TorchSource("the exported program", _bound("the exported program", names, example_inputs), program=program)
    known = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    inputs = {name: known.get(name) for name in names}
    return TorchSource("the exported program", made_up("the exported program", inputs, sizes), program=program)


def argument_names(module: Any) -> list[str]:
    """The names of the positional arguments of a module's ``forward``."""
    if hasattr(module, "forward") and hasattr(module.forward, "schema"):
        return [argument.name for argument in module.forward.schema.arguments[1:]]
    parameters = inspect.signature(module.forward).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _required(module: Any) -> int:
    """How many of the arguments have no default."""
    if hasattr(module.forward, "schema"):
        return sum(not a.has_default_value() for a in module.forward.schema.arguments[1:])
    parameters = inspect.signature(module.forward).parameters.values()
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _bound(label: str, names: Sequence[str], given: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The example inputs by argument.

    Raises:
        UsageError: too many, an unknown name, or something that is no tensor.
    """
    import torch

    if isinstance(given, torch.Tensor):
        given = (given,)
    pairs = dict(given) if isinstance(given, Mapping) else dict(zip([*names, *_more(names, given)], given, strict=False))
    unknown = [name for name in pairs if name not in names]
    if unknown and names:
        raise UsageError.of("call.example-inputs", f"{label} takes {', '.join(names)}; there is no argument for "
                            f"'{unknown[0]}'", where=label, help=f"give {len(names)} example inputs")
    odd = [name for name, value in pairs.items() if not isinstance(value, torch.Tensor)]
    if odd:
        raise UsageError.of("call.example-inputs", f"the example for '{odd[0]}' is a {type(pairs[odd[0]]).__name__}, not a "
                            "tensor", where=label, help="give torch tensors; bind other arguments beforehand, for example "
                                                        "with a small wrapper module")
    ordered = sorted(pairs, key=list(names).index) if names else list(pairs)
    return {name: pairs[name] for name in ordered}


def _more(names: Sequence[str], given: Sequence[Any]) -> list[str]:
    return [f"input_{i}" for i in range(len(names), len(given))]
