"""Static shapes for the graph's inputs: from the file, from the caller, and a question to the user for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.onnx.dims import default_sizes, fix_dims, shapes_of
from vitrify.importers.onnx.reading.checks import needed, reads
from vitrify.importers.onnx.rules import MOST_ELEMENTS
from vitrify.importers.onnx.source import Array, SourceGraph, SourceValue
from vitrify.importers.sizes import Sizes, show_dims

# What the question suggests for an open extent: a common picture size, or a common length.
_PICTURE, _LENGTH = 320, 128
_WITHOUT_RANK = (1, 3, _PICTURE, _PICTURE)


def static_shapes(
    graph: SourceGraph, sizes: Sizes, metadata: Mapping[str, str] | None = None, assume: bool = False
) -> tuple[dict[str, tuple[int, ...]], list[Finding]]:
    """Return the shape of every input, and what was assumed for it.

    A symbol fixed by one input's shape holds for every input that uses it. ``metadata`` is what the exporter wrote
    beside the graph. ``assume`` answers what is open itself, with the sizes that the question suggests.

    Raises:
        UsageError: ``sizes`` names no input and no dimension, or does not fit one.
        UnsupportedError: a dimension other than the batch stays open, or an input has more elements than a tensor.
    """
    fix_dims(graph, sizes)
    notes = default_sizes(graph, metadata or {}, sizes)
    given = (_unread(graph) if graph.nodes else {}) | _by_name(graph, shapes_of(sizes))
    symbols: dict[str, int] = {}
    for value in graph.inputs:
        for dim, extent in zip(value.dims or (), given.get(value.name, ()), strict=False):
            if isinstance(dim, str):
                symbols.setdefault(dim, extent)
    for value in graph.inputs:
        batch = value.dims[0] if value.dims else None
        if value.name in given or not value.dims or len(value.dims) < 2 or isinstance(batch, int):
            continue
        rest = [d for d in value.dims[1:] if not d or (isinstance(d, str) and d not in symbols)]
        if not rest and batch not in symbols:
            notes.append(
                Finding(
                    code="onnx.open-batch",
                    severity=Severity.INFO,
                    where=f"input '{value.name}'",
                    headline=f"input '{value.name}' leaves the batch open; 1 is taken",
                    help=f"--shape {value.name}={_suggest(value, symbols)}",
                )
            )
        if isinstance(batch, str):
            symbols.setdefault(batch, 1)
    found: dict[str, tuple[int, ...]] = {}
    questions: list[Finding] = []
    for value in graph.inputs:
        shape = given[value.name] if value.name in given else _known(value, symbols)
        if shape is None and assume:
            shape = _assumed(value, symbols)
        if shape is None:
            questions.append(_question(value, symbols))
        elif math.prod(shape) > MOST_ELEMENTS:
            questions.append(_too_many(value, shape))
        else:
            found[value.name] = shape
    if questions:
        raise UnsupportedError(questions)
    return found, notes


def _assumed(value: SourceValue, symbols: dict[str, int]) -> tuple[int, ...]:
    """The sizes that the question suggests; those of named dimensions hold for all inputs."""
    shape = tuple(map(int, _suggest(value, symbols).split(","))) if value.dims is not None else _WITHOUT_RANK
    for dim, extent in zip(value.dims or (), shape, strict=False):
        if isinstance(dim, str):
            symbols.setdefault(dim, extent)
    return shape


def _too_many(value: SourceValue, shape: Sequence[int]) -> Finding:
    return Finding(
        code="shape.size",
        headline=f"input '{value.name}' has {math.prod(shape):,} elements, a tensor holds at most {MOST_ELEMENTS:,}",
        where=f"input '{value.name}' {list(shape)}",
        help="export the model for a smaller input",
    )


def _unread(graph: SourceGraph) -> dict[str, tuple[int, ...]]:
    """A shape for every input that no output depends on: any will do where the file leaves it open."""
    used = {name for node in needed(graph) for name in reads(node)} | {v.name for v in graph.outputs}
    return {
        value.name: tuple(d if isinstance(d, int) else 1 for d in value.dims or ())
        for value in graph.inputs
        if value.name not in used
    }


def _by_name(graph: SourceGraph, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    inputs = {v.name: v for v in graph.inputs}
    listed = ", ".join(repr(name) for name in inputs) or "(none)"
    findings: list[Finding] = []
    given: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        target = next(iter(inputs)) if name == "" and len(inputs) == 1 else name
        if target not in inputs:
            text = (
                f"--shape names no input, and there are {len(inputs)}" if name == "" else f"there is no input '{name}'"
            )
            findings.append(
                Finding(
                    code="shape.unknown-input",
                    headline=f"{text}; the inputs are {listed}",
                    help=f"--shape NAME={','.join(map(str, shape))}",
                )
            )
            continue
        dims = inputs[target].dims
        if dims is not None and len(dims) != len(shape):
            findings.append(
                Finding(
                    code="shape.rank",
                    where=f"input '{target}'",
                    headline=f"input '{target}' has {len(dims)} "
                    f"dimensions {show_dims(dims)}, the shape given has {len(shape)}: {list(shape)}",
                    help=f"--shape {target}={_suggest(inputs[target], {})}",
                )
            )
        elif any(int(e) < (0 if d == 0 else 1) for d, e in zip(dims or [None] * len(shape), shape, strict=True)):
            findings.append(
                Finding(
                    code="shape.extent",
                    headline=f"the shape given for '{target}' has a dimension below 1: {list(shape)}",
                    where=f"input '{target}'",
                )
            )
        elif math.prod(int(d) for d in shape) > MOST_ELEMENTS:
            findings.append(
                Finding(
                    code="shape.size",
                    headline=f"the shape given for '{target}' has {math.prod(int(d) for d in shape):,} elements, a "
                    f"tensor holds at most {MOST_ELEMENTS:,}",
                    where=f"input '{target}' {list(shape)}",
                )
            )
        elif fixed := [i for i, (d, e) in enumerate(zip(dims or (), shape, strict=False)) if isinstance(d, int)
                       and d not in (0, int(e))]:
            findings += [_fixed(inputs[target], i, int(shape[i])) for i in fixed[:1]]
        else:
            given[target] = tuple(int(d) for d in shape)
    if findings:
        raise UsageError(findings)
    return given


def _fixed(value: SourceValue, index: int, given: int) -> Finding:
    """A size that the file leaves no choice about."""
    dims = value.dims or []
    free = any(not isinstance(d, int) or d == 0 for d in dims)
    fits = f"--shape {value.name}={_suggest(value, {})}" if free else f"leave --shape {value.name} out"
    return Finding(
        code="shape.fixed",
        where=f"input '{value.name}' {show_dims(dims)}",
        headline=f"the file fixes dimension {index} of '{value.name}' at {dims[index]}, the shape given has {given}",
        help=f"{fits}; another size needs another export of the model",
    )


def _known(value: SourceValue, symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    if value.dims is None:
        return None
    shape: list[int] = []
    for index, dim in enumerate(value.dims):
        extent = dim or None if isinstance(dim, int) else symbols.get(dim) if isinstance(dim, str) else None
        if extent is None and index == 0 and len(value.dims) > 1 and dim != 0:
            extent = 1
        if extent is None:
            return None
        shape.append(extent)
    return tuple(shape)


def _question(value: SourceValue, symbols: Mapping[str, int]) -> Finding:
    why = "a model for an NPU has fixed shapes; every size below is computed from this one"
    if value.dims is None:
        return Finding(
            code="onnx.open-shape",
            headline=f"input '{value.name}' has no shape in the file",
            why=why,
            where=f"input '{value.name}'",
            help=f"say which: --shape {value.name}=1,3,{_PICTURE},{_PICTURE}",
        )
    opened = [
        f"{i} ('{d}')" if d else f"{i} (0 in the file)" if d == 0 else str(i)
        for i, d in enumerate(value.dims)
        if d == 0 or (i > 0 and not isinstance(d, int) and d not in symbols) or (i == 0 and len(value.dims) == 1)
    ]
    many = "dimensions" if len(opened) > 1 else "dimension"
    return Finding(
        code="onnx.open-shape",
        where=f"input '{value.name}' {show_dims(value.dims)}",
        why=why,
        headline=f"input '{value.name}' leaves {many} {' and '.join(opened)} open",
        help=f"say which size, for example: --shape {value.name}={_suggest(value, symbols)}{_by_dims(value, symbols)}",
    )


def _by_dims(value: SourceValue, symbols: Mapping[str, int]) -> str:
    """The same answer by the dimensions' names, when all that is open has one."""
    extents = zip(value.dims or (), _suggest(value, symbols).split(","), strict=False)
    lone = len(value.dims or ()) == 1        # else the first dimension is the batch, and not asked for
    opened = {d: e for i, (d, e) in enumerate(extents) if (i or lone) and not isinstance(d, int) and d not in symbols}
    if not opened or not all(isinstance(d, str) and d.isidentifier() for d in opened):
        return ""
    return ", or " + " ".join(f"--dim {d}={e}" for d, e in opened.items())


def blamed(graph: SourceGraph, sizes: Sizes) -> str:
    """Say that shapes that were given may be why nodes do not fit each other, and which would do better."""
    shapes = shapes_of(sizes)
    if not shapes:
        return f"the sizes given may be what does not fit: {' '.join(f'--dim {n}={e}' for n, e in sizes.items())}"
    names = [name or (graph.inputs[0].name if graph.inputs else "") for name in shapes]
    given = " ".join(f"--shape {name}={','.join(map(str, s))}" for name, s in zip(names, shapes.values(), strict=True))
    rounded = " ".join(f"--shape {name}={','.join(map(str, _rounded(s)))}"
                       for name, s in zip(names, shapes.values(), strict=True))
    other = f"; sizes that a model halves several times are multiples of 32: {rounded}" if rounded != given else ""
    return f"the shape given may be what does not fit: {given}{other}"


def _rounded(shape: Sequence[int]) -> list[int]:
    """A picture's height and width, each as the next multiple of 32."""
    if len(shape) != 4:
        return list(shape)
    return [extent if extent < 32 else -(-extent // 32) * 32 for extent in shape]


def _suggest(value: SourceValue, symbols: Mapping[str, int]) -> str:
    dims = value.dims or [1]
    open_size = _PICTURE if len(dims) == 4 else _LENGTH
    known = (
        d if isinstance(d, int) and d else symbols.get(d or "", 1 if i == 0 and len(dims) > 1 else open_size)
        for i, d in enumerate(dims)
    )
    return ",".join(map(str, known))


def constant_inputs(graph: SourceGraph, values: Mapping[str, Any]) -> dict[str, Array]:
    """Take the inputs named by ``values`` out of the graph's inputs and return them as constants.

    Raises:
        UsageError: no such input, or the value is no number of the input's rank.
    """
    inputs = {v.name: v for v in graph.inputs}
    findings: list[Finding] = []
    constants: dict[str, Array] = {}
    for name, value in values.items():
        if name not in inputs:
            findings.append(
                Finding(
                    code="value.unknown-input",
                    headline=f"there is no input '{name}'; the inputs are {', '.join(map(repr, inputs))}",
                )
            )
            continue
        array = np.asarray(value, inputs[name].dtype or None)
        dims = inputs[name].dims
        if dims is not None and array.ndim != len(dims):
            findings.append(
                Finding(
                    code="value.rank",
                    headline=f"input '{name}' has {len(dims)} dimensions, the value given has {array.ndim}",
                    where=f"input '{name}'",
                )
            )
            continue
        constants[name] = array
    if findings:
        raise UsageError(findings)
    graph.inputs = [v for v in graph.inputs if v.name not in constants]
    return constants
