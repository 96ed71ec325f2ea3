"""Example tensors that a model is exported with: of the shapes that its file or the caller says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.core.findings import Finding
from vitrify.importers.sizes import Sizes, unknown_dimension

MOST_ELEMENTS = 1 << 30
"""Elements of one example input; more is a slip of the pen, or a hostile file."""


def shapes_given(label: str, inputs: Sequence[str], sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the caller says, by input; "" stands for the only one.

    Raises:
        UsageError: a shape for an input that there is not, or an extent below 1.
    """
    shapes = {name: tuple(size) for name, size in sizes.items() if not isinstance(size, int)}
    if "" in shapes:
        if len(inputs) != 1:
            raise UsageError.of(
                "shape.which-input",
                f"{label} has {len(inputs)} inputs, the shape says not which",
                where=label,
                help=f"--shape {next(iter(inputs), 'NAME')}=...",
            )
        shapes[inputs[0]] = shapes.pop("")
    for name, shape in shapes.items():
        if name not in inputs:
            raise UsageError.of(
                "shape.unknown-input",
                f"there is no input '{name}'; the inputs are {', '.join(map(repr, inputs)) or '(none)'}",
                where=label,
            )
        if any(extent < 1 for extent in shape):
            raise UsageError.of(
                "shape.extent", f"the shape {list(shape)} of input '{name}' has an extent below 1", where=label
            )
    return shapes


def example_inputs(label: str, inputs: Sequence[str], sizes: Sizes) -> dict[str, Any]:
    """Return a random tensor for each input of a model that says nothing of their shapes.

    Raises:
        UsageError: a shape for an input that there is not, or an extent for a dimension: there are no named ones.
        UnsupportedError: inputs whose shape nobody says; lists them all.
    """
    shapes = shapes_given(label, inputs, sizes)
    dims = [name for name, size in sizes.items() if isinstance(size, int)]
    if dims:
        known = "those of TorchScript and pickled modules have no names"
        raise UsageError([unknown_dimension(name, known, label, help="say whole shapes with --shape") for name in dims])
    missing = [name for name in inputs if name not in shapes]
    if missing:
        raise UnsupportedError(
            [
                Finding(
                    code="torch.open-shape",
                    where=f"input '{name}'",
                    headline=f"'{label}' does not say which shape its input '{name}' has",
                    why="to export a module is to run it once",
                    help=f"say which: --shape {name}=1,3,224,224",
                )
                for name in missing
            ]
        )
    return {name: random_tensor(shapes[name], None, name) for name in inputs}


def random_tensor(shape: Sequence[int], dtype: Any = None, name: str = "") -> Any:
    """A tensor of normal noise, of small whole numbers where integers are wanted; the same each time.

    Raises:
        UsageError: it would have too many elements.
    """
    import math

    import torch

    if math.prod(shape) > MOST_ELEMENTS:
        raise UsageError.of(
            "shape.too-large",
            f"the shape {list(shape)} of input '{name}' has {math.prod(shape)} elements, at "
            f"most {MOST_ELEMENTS} are taken",
            where=f"input '{name}'",
        )
    generator = torch.Generator().manual_seed(0)
    if dtype is None or dtype.is_floating_point:
        return torch.randn(tuple(shape), generator=generator).to(dtype or torch.float32)
    if dtype is torch.bool:
        return torch.ones(tuple(shape), dtype=dtype)
    return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)
