"""Example tensors that a model is exported with: of the shapes that its file or the caller says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.core.findings import Finding

Sizes = Mapping[str, Sequence[int] | int]


def example_inputs(label: str, inputs: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Return a random tensor for each input.

    Args:
        label: names the model in messages.
        inputs: by name, a tensor (also a fake one) whose shape and type are known, or None.
        sizes: what the caller says: shapes by input, "" for the only one.
    Raises:
        UsageError: a shape for an input that there is not.
        UnsupportedError: inputs whose shape nobody says; lists them all.
    """
    shapes = {name: tuple(size) for name, size in sizes.items() if not isinstance(size, int)}
    if "" in shapes and len(inputs) == 1:
        shapes[next(iter(inputs))] = shapes.pop("")
    unknown = [name for name in shapes if name not in inputs]
    if unknown:
        raise UsageError.of("shape.unknown-input", f"there is no input '{unknown[0]}'; the inputs are "
                            f"{', '.join(map(repr, inputs)) or '(none)'}", where=label)
    found: dict[str, Any] = {}
    questions: list[Finding] = []
    for name, known in inputs.items():
        shape = shapes.get(name) or _shape(known)
        if shape is None:
            questions.append(Finding(
                code="torch.open-shape", where=f"input '{name}'",
                headline=f"'{label}' does not say which shape its input '{name}' has",
                why="to export a module is to run it once", help=f"say which: --shape {name}=1,3,224,224"))
        else:
            found[name] = random_tensor(shape, getattr(known, "dtype", None))
    if questions:
        raise UnsupportedError(questions)
    return found


def _shape(known: Any) -> tuple[int, ...] | None:
    """The shape of a tensor whose extents are known; symbolic ones have a hint, the size that it was exported with."""
    if known is None or not hasattr(known, "shape"):
        return None
    return tuple(int(getattr(getattr(extent, "node", None), "hint", None) or extent) for extent in known.shape)


def random_tensor(shape: Sequence[int], dtype: Any = None) -> Any:
    """A tensor of normal noise, of small whole numbers where integers are wanted; the same each time."""
    import torch

    generator = torch.Generator().manual_seed(0)
    if dtype is None or dtype.is_floating_point:
        return torch.randn(tuple(shape), generator=generator).to(dtype or torch.float32)
    if dtype is torch.bool:
        return torch.ones(tuple(shape), dtype=dtype)
    return torch.randint(0, 2, tuple(shape), generator=generator).to(dtype)
