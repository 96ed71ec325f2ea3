"""A TensorFlow model as the exporters take it: a function of tensors, its inputs and outputs by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.core.findings import Finding, Severity
from vitrify.importers.sizes import Sizes, conflicts, unknown_dimension

MOST_ELEMENTS = 1 << 28
"""Of an input: 1 GB of float32."""
BATCH = "batch"
"""What --dim calls the first dimension of every input: dimensions have no names in TensorFlow."""
_PICTURE, _LENGTH = 224, 128


@dataclass
class TfSource:
    """A model that is to be exported.

    ``function`` takes tensors in the order of ``inputs`` and returns a list in the order of ``outputs``. ``inputs`` are
    TensorSpecs with open extents. ``owner`` keeps the variables alive. ``label`` names the model in messages. ``graph``
    is what the file holds of it before shapes are fixed, None when that is code.
    """

    label: str
    function: Callable[..., list[Any]]
    inputs: dict[str, Any]
    outputs: list[str]
    owner: Any = None
    graph: Any = None
    findings: list[Finding] = field(default_factory=list)


def fixed_inputs(source: TfSource, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return a static shape for each input; what was taken for granted goes to the source's findings.

    Raises:
        UsageError: a size does not fit; lists all of them.
        UnsupportedError: inputs whose shape nobody says; lists them all.
    """
    given = _given(source, sizes)
    batch = sizes.get(BATCH)
    found: dict[str, tuple[int, ...]] = {}
    questions: list[Finding] = []
    for name, spec in source.inputs.items():
        known = None if spec.shape.rank is None else list(spec.shape.as_list())
        shape = list(given[name]) if name in given else known
        if shape and shape[0] is None and (len(shape) > 1 or batch):
            shape[0] = batch if isinstance(batch, int) else 1
            if not isinstance(batch, int) and None not in shape:
                source.findings.append(Finding(
                    code="tf.open-batch", severity=Severity.INFO, where=f"input '{name}'",
                    headline=f"input '{name}' leaves the batch open; 1 is taken",
                    help=f"--shape {name}={','.join(map(str, shape))}"))
        if shape is None or None in shape:
            questions.append(_question(name, known))
        else:
            found[name] = tuple(map(int, shape))
    if questions:
        raise UnsupportedError(questions)
    _refuse_large(found)
    return found


def _given(source: TfSource, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    names = list(source.inputs)
    listed = ", ".join(map(repr, names)) or "(none)"
    given: dict[str, tuple[int, ...]] = {}
    problems: list[Finding] = []
    for name, size in sizes.items():
        if isinstance(size, int):
            if name != BATCH:
                problems.append(unknown_dimension(
                    name, "TensorFlow's have no names", source.label,
                    help=f"the first dimension is --dim {BATCH}=N; fix others by the shape of their input: "
                         f"--shape {names[0] if names else 'NAME'}=N,N,..."))
            continue
        target = names[0] if name == "" and len(names) == 1 else name
        problem = _misfit(target, size, source.inputs.get(target), listed)
        problems += [problem] if problem else []
        given[target] = tuple(size)
    problems += _fixed_batch(source, sizes)
    problems += conflicts({name: _dims(spec) for name, spec in source.inputs.items()}, sizes)
    if problems:
        raise UsageError(problems)
    return given


def _fixed_batch(source: TfSource, sizes: Sizes) -> list[Finding]:
    """A finding when the caller says another batch than the model fixes."""
    held = {name: spec.shape.as_list()[0] for name, spec in source.inputs.items() if spec.shape.rank}
    batch = sizes.get(BATCH)
    if not isinstance(batch, int) or not held or {None, batch} & set(held.values()):
        return []
    name, own = next(iter(held.items()))
    return [Finding(code="shape.fixed", where=f"--dim {BATCH}={batch}",
                    headline=f"the model fixes dimension 0 of '{name}' at {own}, --dim {BATCH} says {batch}",
                    help="another size needs another model")]


def _dims(spec: Any) -> list[str | None]:
    """The dimensions by name: only the first has one."""
    return [BATCH, *[None] * (spec.shape.rank - 1)] if spec.shape.rank else []


def _misfit(name: str, size: Sequence[int], spec: Any, listed: str) -> Finding | None:
    if spec is None:
        return Finding(code="shape.unknown-input", headline=f"there is no input '{name}'; the inputs are {listed}",
                       help=f"--shape NAME={','.join(map(str, size))}")
    if spec.shape.rank is None:
        return None
    known = spec.shape.as_list()
    if len(known) != len(size):
        return Finding(code="shape.rank", where=f"input '{name}' {_shown(known)}",
                       headline=f"input '{name}' has {len(known)} dimensions {_shown(known)}, the shape given has "
                                f"{len(size)}: {list(size)}")
    for index, (own, wanted) in enumerate(zip(known, size, strict=True)):
        if own is not None and own != wanted:
            return Finding(code="shape.fixed", where=f"input '{name}' {_shown(known)}",
                           headline=f"the model fixes dimension {index} of '{name}' at {own}, the shape given has "
                                    f"{wanted}",
                           help="another size needs another model")
    return None


def _refuse_large(shapes: Mapping[str, Sequence[int]]) -> None:
    large = [Finding(code="shape.size", where=f"input '{name}' {list(shape)}",
                     headline=f"input '{name}' has {math.prod(shape):,} elements, at most {MOST_ELEMENTS:,} are taken")
             for name, shape in shapes.items() if math.prod(shape) > MOST_ELEMENTS]
    if large:
        raise UnsupportedError(large)


def _question(name: str, known: list[int | None] | None) -> Finding:
    why = "a model for an NPU has fixed shapes; every size below is computed from this one"
    if known is None:
        return Finding(code="tf.open-shape", headline=f"input '{name}' has no shape in the model", why=why,
                       where=f"input '{name}'", help=f"say which: --shape {name}=1,{_PICTURE},{_PICTURE},3")
    opened = [str(i) for i, extent in enumerate(known) if extent is None and (i or len(known) == 1)]
    guess = _PICTURE if len(known) == 4 else _LENGTH
    shape = ",".join(str(extent or (guess if i else 1)) for i, extent in enumerate(known))
    return Finding(code="tf.open-shape", where=f"input '{name}' {_shown(known)}", why=why,
                   headline=f"input '{name}' leaves dimension{'s' * (len(opened) > 1)} {' and '.join(opened)} open",
                   help=f"say which size, for example: --shape {name}={shape}")


def _shown(known: Sequence[int | None]) -> str:
    return f"[{','.join('?' if extent is None else str(extent) for extent in known)}]"
