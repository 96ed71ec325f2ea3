"""Named dimensions of the inputs: fixed by the caller (``--dim batch=1``), or by what the file's metadata says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from vitrify.core.errors import UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.onnx.source import SourceGraph, SourceValue
from vitrify.importers.sizes import Sizes, conflicts, show_dims, unknown_dimension

MOST_PIXELS = 2**15
MOST_EXTENT = 2**31 - 1
SIZE_KEY = "imgsz"
"""Under which exporters of detectors store height and width. Source: Ultralytics' exporter, metadata of its ONNX."""


def shapes_of(sizes: Sizes) -> dict[str, Sequence[int]]:
    """The part of ``sizes`` that fixes whole inputs."""
    return {name: size for name, size in sizes.items() if not isinstance(size, int)}


def dims_of(sizes: Sizes) -> dict[str, int]:
    """The part of ``sizes`` that fixes named dimensions."""
    return {name: size for name, size in sizes.items() if isinstance(size, int)}


def fix_dims(graph: SourceGraph, sizes: Sizes) -> None:
    """Put numbers in the place of the named dimensions, in every input that uses them.

    Raises:
        UsageError: no input has a dimension of that name, the number is below 1, or a shape says another; lists all.
    """
    dims = dims_of(sizes)
    names = list(dict.fromkeys(d for value in graph.inputs for d in value.dims or () if isinstance(d, str)))
    problems = [p for name, extent in dims.items() if (p := _problem(name, extent, names, graph)) is not None]
    problems += conflicts({value.name: value.dims for value in graph.inputs}, sizes)
    if problems:
        raise UsageError(problems)
    for value in graph.inputs if dims else ():
        if value.dims is not None:
            value.dims = [dims.get(d, d) if isinstance(d, str) else d for d in value.dims]


def _problem(name: str, extent: int, names: Sequence[str], graph: SourceGraph) -> Finding | None:
    if extent < 1:
        return Finding(code="dim.extent", headline=f"dimension '{name}' cannot be {extent}; the least is 1",
                       help=f"--dim {name}=1")
    if extent > MOST_EXTENT:
        return Finding(code="dim.extent", headline=f"dimension '{name}' cannot be {extent}; a tensor holds at most "
                                                   f"{MOST_EXTENT:,} elements", help=f"--dim {name}=1")
    if name in names:
        return None
    shown = " ".join(f"'{value.name}' {show_dims(value.dims or ())}" for value in graph.inputs)
    known = f"the named dimensions are {', '.join(map(repr, names))}" if names else "no input has a named dimension"
    return unknown_dimension(name, known, f"inputs {shown}")


def default_sizes(graph: SourceGraph, metadata: Mapping[str, str], sizes: Sizes) -> list[Finding]:
    """Fix open height and width as the file's metadata says, and return what was taken.

    A picture input that the caller fixes is left to them; named dimensions are to be in place already.
    """
    size = _stored_size(metadata.get(SIZE_KEY, ""))
    if size is None:
        return []
    return [found for value in graph.inputs if (found := _take_size(value, size, sizes)) is not None]


def _take_size(value: SourceValue, size: tuple[int, int], sizes: Sizes) -> Finding | None:
    dims = value.dims
    if dims is None or len(dims) != 4 or any(isinstance(d, int) for d in dims[2:]):
        return None
    if value.name in sizes or "" in sizes:
        return None
    value.dims = [*dims[:2], *size]
    return Finding(code="onnx.default-size", severity=Severity.INFO, where=f"input '{value.name}' {show_dims(dims)}",
                   headline=f"input '{value.name}' leaves height and width open; "
                            f"{size[0]}x{size[1]} is taken, as the file's metadata says ({SIZE_KEY})",
                   help=f"another size: --shape {value.name}={_batch(dims)},{dims[1] or 3},{size[0]},{size[1]}")


def _batch(dims: Sequence[int | str | None]) -> int:
    return dims[0] if isinstance(dims[0], int) and dims[0] > 0 else 1


def _stored_size(text: str) -> tuple[int, int] | None:
    """Read ``[640, 640]`` or ``640``; None when it is neither."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    numbers = [found, found] if isinstance(found, int) else found
    if not isinstance(numbers, list) or len(numbers) != 2:
        return None
    height, width = numbers
    usable = all(isinstance(n, int) and 0 < n < MOST_PIXELS for n in (height, width))
    return (height, width) if usable else None
