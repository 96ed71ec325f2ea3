"""What a model's outputs mean, written into the model so that its files describe themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vitrify.core.errors import UsageError
from vitrify.ir import Model

if TYPE_CHECKING:
    from vitrify.ir import Interface
    from vitrify.tasks.spec import TaskSpec

TELLING = frozenset({"names", "task", "character", "kpt_shape"})
"""Metadata that says what outputs mean. Source: the exporters of Ultralytics and PaddleOCR."""


def describe(model: Model, task: str = "") -> None:
    """Let a model remember what its outputs mean, where the call or its exporter says so.

    Without such a word the shapes tell as much later on, and the interface keeps them.

    Raises:
        UsageError: there is no such task, or the outputs have none of its forms.
    """
    words = exporter_of(model)
    if not task and not TELLING & words.keys():
        return
    from vitrify.data.binding import identity_interface
    from vitrify.tasks.recognising import recognise
    from vitrify.tasks.registry import require_kind
    from vitrify.tasks.spec import remember

    if task:
        require_kind(task)
    interface = model.interface or identity_interface(model)
    spec = recognise(interface, words, task)
    if spec is not None:
        remember(model, spec)
    elif task:
        raise unknown_form(interface, task, model.source or "the model",
                           "leave --task out; `run` and `eval` take a form by name")


def task_of(model: Model) -> tuple[TaskSpec | None, bool]:
    """What a model is for, and whether it says so itself: else its shapes tell.

    Raises:
        ModelError: what it says cannot be read.
    """
    from vitrify.data.binding import identity_interface
    from vitrify.tasks.recognising import recognise
    from vitrify.tasks.spec import remembered

    told = remembered(model)
    if told is not None:
        return told, True
    return recognise(model.interface or identity_interface(model), exporter_of(model)), False


def exporter_of(model: Model) -> Mapping[str, str]:
    """What the exporter wrote into the source."""
    words: Mapping[str, str] = model.extras.get("exporter", {})
    return words


def unknown_form(interface: Interface, task: str, name: str, help: str) -> UsageError:
    """What is said where the outputs have no form of the task that the call names; ``help`` comes before the forms."""
    from vitrify.tasks.registry import DECODERS, load

    load()
    forms = ", ".join(f"{d.name} ({d.text})" for d in DECODERS.values() if d.kind == task)
    return UsageError.of("task.form", f"the outputs of {name} have no known form of {task}: {shapes_of(interface)}",
                         where=name, help=f"{help} with --decoder: {forms}")


def shapes_of(interface: Interface) -> str:
    """The outputs of a model, for a message."""
    return ", ".join(f"'{b.name}' [{','.join(map(str, b.shape))}]" for b in interface.outputs)
