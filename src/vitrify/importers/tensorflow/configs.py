"""Keras configs: the layers of a model, and what of them is code of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding

MOST_LEVELS = 200
LAMBDAS = ("Lambda", "__lambda__")
_OWN_MODULES = ("keras", "tf_keras", "builtins")
_OTHERS = ("layers", "build_config", "compile_config", "inbound_nodes")
_PLAIN_NAMES = ("function", "__tensor__", "__numpy__", "__bytes__", "__keras_tensor__", "__tuple__", "__ellipsis__",
                "__slice__", "slice", "tuple", "float", "int", "str", "bool", "list", "dict", "set")


def layers_of(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the config of each layer, those of models inside the model too."""
    inner = config.get("config")
    listed = inner.get("layers") if isinstance(inner, dict) else inner        # Sequential once was a plain list
    for layer in listed if isinstance(listed, list) else ():
        if isinstance(layer, dict):
            yield layer
            yield from layers_of(layer)


def refuse_code(path: Path, config: dict[str, Any], known: frozenset[str] | None, trust: bool) -> None:
    """Refuse a model with code of the user's own, unless it is trusted; names every layer that has some.

    Args:
        path: names the file in messages.
        config: the model's.
        known: the layers of Keras 2, whose configs do not say where a class comes from; None for Keras 3.
        trust: lambdas may run.
    Raises:
        UsageError: there are lambdas, and ``trust`` is not given, or classes that only the user's code has.
    """
    problems = [finding for layer in (config, *layers_of(config)) for finding in _problems(path, layer, known, trust)]
    if problems:
        raise UsageError(list(dict.fromkeys(problems)))


def _problems(path: Path, layer: dict[str, Any], known: frozenset[str] | None, trust: bool) -> Iterator[Finding]:
    name = _name(layer)
    for part in _parts(layer):
        kind = str(part.get("class_name"))
        if kind in LAMBDAS:
            if not trust:
                yield Finding(
                    code="tf.lambda", where=f"{path}, layer '{name}'",
                    headline=f"layer '{name}' is a Lambda: to load it is to run Python code that the file holds",
                    help="add --trust if you know where the file comes from; or build the model with layers of Keras "
                         "(Rescaling, Activation, keras.ops) in its place")
        elif _is_custom(part, kind, known):
            whose = part.get("registered_name") or part.get("module") or kind
            if kind == "function":
                whose = str(part.get("config"))
            yield Finding(
                code="tf.custom-class", where=f"{path}, layer '{name}'",
                headline=f"layer '{name}' needs code that the file does not hold: {kind} '{whose}'",
                help="where the class is defined, save what it computes: model.export('FOLDER') writes a SavedModel, "
                     "which needs no code")


def _is_custom(part: dict[str, Any], kind: str, known: frozenset[str] | None) -> bool:
    module, registered = part.get("module"), part.get("registered_name")
    if known is not None:
        return module is None and kind not in known
    if kind == "function":
        return module == "builtins"          # a function by its name alone is somebody's own
    if kind in _PLAIN_NAMES:
        return False
    own = str(module or "keras").partition(".")[0] in _OWN_MODULES
    return not own or (isinstance(registered, str) and ">" in registered)


def _parts(layer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The layer's config and every object in it, but the layers of an inner model, which are looked at themselves."""
    waiting: list[tuple[Any, int]] = [(layer, 0)]
    while waiting:
        value, level = waiting.pop()
        if level > MOST_LEVELS:
            raise UsageError.of("tf.config", f"the config is nested more than {MOST_LEVELS} levels deep")
        if isinstance(value, dict):
            if isinstance(value.get("class_name"), str):
                yield value
            waiting += [(v, level + 1) for k, v in value.items() if k not in _OTHERS]
        elif isinstance(value, list):
            waiting += [(v, level + 1) for v in value]


def _name(layer: dict[str, Any]) -> str:
    inner = layer.get("config")
    name = layer.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
    return str(name or layer.get("class_name") or "(unnamed)")
