"""Which task a model is for, told from its inputs, its outputs and what its exporter wrote into it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from vitrify.data.preprocess import PictureShape
from vitrify.ir.interface import Interface
from vitrify.tasks.naming import class_names
from vitrify.tasks.registry import DECODERS, Decoder, Signs, load
from vitrify.tasks.spec import TaskSpec


def signs_of(interface: Interface, metadata: Mapping[str, str]) -> Signs:
    """What tells the form of a model's outputs."""
    shapes = [PictureShape.of(tuple(binding.shape)) for binding in interface.inputs]
    picture = next((shape for shape in shapes if shape is not None), None)
    given, taken = ({b.name: tuple(b.shape) for b in ends} for ends in (interface.outputs, interface.inputs))
    return Signs(given, taken, (picture.height, picture.width) if picture else (0, 0),
                 picture.channels if picture else 0, metadata)


def fitting(signs: Signs, kind: str = "") -> list[tuple[Decoder, Mapping[str, Any]]]:
    """The decoders whose form the outputs have, the likeliest first."""
    load()
    found = [(one, options) for one in DECODERS.values() if not kind or one.kind == kind
             for options in (one.fits(signs),) if options is not None]
    return sorted(found, key=lambda pair: -pair[0].weight)


def recognise(interface: Interface, metadata: Mapping[str, str], kind: str = "") -> TaskSpec | None:
    """What a model is for; with ``kind`` only among the forms of that task. None where nothing tells."""
    signs = signs_of(interface, metadata)
    found = fitting(signs, kind)
    if not found and kind:
        only = [one for one in DECODERS.values() if one.kind == kind]
        found = [(only[0], {})] if len(only) == 1 else []        # no choice: it says itself what it cannot take
    if not found:
        return None
    best, options = found[0]
    return specified(best, options, metadata)


def specified(one: Decoder, options: Mapping[str, Any], metadata: Mapping[str, str]) -> TaskSpec:
    """The plain data of a decoder with its options and the exporter's class names."""
    return TaskSpec(kind=one.kind, decoder=one.name, names=names_of(metadata), score=one.score, overlap=one.overlap,
                    options=dict(options))


def names_of(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """The classes' names as exporters write them."""
    return class_names(metadata.get("names", ""))


def numbers_of(text: str) -> list[float]:
    """Numbers of a list as exporters write it; empty for anything else."""
    try:
        found = ast.literal_eval(text[:10_000])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    whole = found if isinstance(found, list | tuple) else [found]
    return [float(x) for x in whole if isinstance(x, int | float)]
