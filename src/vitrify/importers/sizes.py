"""What a caller may fix of a model, said in the same words for every format: dimensions by name, shapes by input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vitrify.core.findings import Finding

Sizes = Mapping[str, Sequence[int] | int]
"""What the caller fixes: a sequence is the shape of the input of that name, a number the dimension of that name."""
Dims = Sequence[int | str | None]
"""Dimensions as a file declares them: an extent, a name, or nothing."""


def show_dims(dims: Dims) -> str:
    """Print dimensions as they stand in the file."""
    return f"[{','.join(str(d) if d is not None else '?' for d in dims)}]"


def shape_option(name: str, shape: Sequence[int]) -> str:
    """Write a shape as the caller gives it; an only input needs no name."""
    return f"--shape {f'{name}=' if name else ''}{','.join(map(str, shape))}"


def unknown_dimension(name: str, known: str, where: str, why: str = "", help: str = "") -> Finding:
    """There is no dimension of that name; ``known`` says which there are."""
    return Finding(code="dim.unknown", where=where, why=why, headline=f"there is no dimension '{name}'; {known}",
                   help=help or "fix a dimension without a name through the shape of its input: --shape NAME=N,N,...")


def conflicts(inputs: Mapping[str, Dims | None], sizes: Sizes) -> Iterator[Finding]:
    """Yield a finding for each dimension that is fixed by its name at one extent and by an input's shape at another.

    ``inputs`` are the file's, with the names of their dimensions. Two shapes may differ: files use a name twice.
    """
    for given, shape in sizes.items():
        name = next(iter(inputs)) if given == "" and len(inputs) == 1 else given
        dims = inputs.get(name) or ()
        if isinstance(shape, int) or len(dims) != len(shape):
            continue
        for place, (dim, extent) in enumerate(zip(dims, shape, strict=True)):
            named = sizes.get(dim) if isinstance(dim, str) else None
            if isinstance(named, int) and named != extent:
                agreed = shape_option(given, [*shape[:place], named, *shape[place + 1:]])
                yield _conflict(f"--dim {dim}={named}", shape_option(given, shape), agreed,
                                f"dimension {place} of '{name}' is '{dim}'")


def _conflict(one: str, other: str, agreed: str, why: str) -> Finding:
    return Finding(code="dim.conflict", where=f"{one}, {other}", headline=f"{one} and {other} contradict each other",
                   why=why, help=f"leave {one} out, or say {agreed}")
