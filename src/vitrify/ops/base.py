"""What the operator families share: refusals that show the shapes found, constant operands, axes, broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from vitrify.core.errors import ModelError, UnsupportedError, VitrifyError
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Array, Tensor, TensorType
from vitrify.ir.operator import Operator

__all__ = ["Array", "Arrays", "Inputs", "Operator", "Shape", "Tensor", "TensorType", "axes_of", "axis_of", "broadcast",
           "constant", "constant_ints", "expect", "expect_rank", "given", "infer_from_arrays", "refuse"]

Inputs = Sequence[Tensor | None]
Arrays = Sequence[Array | None]
Shape = tuple[int, ...]
T = TypeVar("T", Tensor, Array)


def _label(value: Tensor | Array | None) -> str:
    if value is None:
        return "-"
    shape = ",".join(map(str, value.shape))
    return f"{value.dtype.label if isinstance(value, Tensor) else value.dtype.name}[{shape}]"


def refuse(op: Operator, problem: str, inputs: Inputs | Arrays) -> VitrifyError:
    """Build the error for inputs that do not fit; ``problem`` goes on after the operator's name."""
    names = ", ".join(f"'{t.name}'" for t in inputs if isinstance(t, Tensor) and not t.is_constant)
    return ModelError.of("ops.inputs", f"{op.kind} {problem}",
                         where=f"inputs {', '.join(map(_label, inputs))}" + (f" ({names})" if names else ""))


def given(op: Operator, inputs: Sequence[T | None], least: int, most: int | None = None) -> list[T]:
    """Return the first ``least`` inputs, all present, after checking how many there are."""
    most = least if most is None else most
    if not least <= len(inputs) <= max(most, least):
        wanted = str(least) if most == least else f"{least} to {most}"
        raise refuse(op, f"takes {wanted} inputs, got {len(inputs)}", inputs)
    found = [value for value in inputs[:least] if value is not None]
    if len(found) != least:
        missing = next(i for i, value in enumerate(inputs) if value is None)
        raise refuse(op, f"needs its input {missing}, which is left out", inputs)
    return found


def expect(op: Operator, holds: bool, problem: str, inputs: Inputs | Arrays) -> None:
    """Refuse the inputs unless ``holds``."""
    if not holds:
        raise refuse(op, problem, inputs)


def expect_rank(op: Operator, inputs: Inputs | Arrays, index: int, rank: int) -> None:
    """Refuse the inputs unless input ``index`` has ``rank`` dimensions."""
    value = inputs[index]
    if value is None or len(value.shape) != rank:
        found = "none" if value is None else str(len(value.shape))
        raise refuse(op, f"needs {rank} dimensions in input {index}, got {found}", inputs)


def constant(op: Operator, inputs: Inputs, index: int, what: str) -> Array:
    """Return the data of input ``index``, which decides the output's shape."""
    tensor = inputs[index] if index < len(inputs) else None
    if tensor is None:
        raise refuse(op, f"needs its input {index} ({what}), which is left out", inputs)
    if tensor.data is None:
        raise UnsupportedError.of("ops.dynamic", f"{op.kind} takes its {what} from '{tensor.name}', which is computed "
                                  "at run time; its output has no static shape", where=f"tensor '{tensor.name}'",
                                  help="fix the input shapes of the model, so that the value can be folded")
    return tensor.data


def constant_ints(op: Operator, inputs: Inputs, index: int, what: str) -> Shape:
    """Return the integers of constant input ``index``, flattened."""
    return tuple(int(v) for v in np.asarray(constant(op, inputs, index, what)).reshape(-1))


def axis_of(op: Operator, axis: int, rank: int, inputs: Inputs | Arrays) -> int:
    """Return ``axis`` counted from the front."""
    if not -rank <= axis < rank:
        raise refuse(op, f"has axis {axis}, outside of {rank} dimensions", inputs)
    return axis + rank if axis < 0 else axis


def axes_of(op: Operator, axes: Sequence[int], rank: int, inputs: Inputs | Arrays) -> Shape:
    """Return the axes counted from the front, each once, in order."""
    return tuple(sorted({axis_of(op, int(a), rank, inputs) for a in axes}))


def broadcast(op: Operator, inputs: Inputs | Arrays, *shapes: Sequence[int]) -> Shape:
    """Return the shape that ``shapes`` broadcast to."""
    try:
        return tuple(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        shown = " and ".join(str(list(s)) for s in shapes)
        raise refuse(op, f"cannot broadcast {shown}", inputs) from None


def infer_from_arrays(op: Operator, arrays: Arrays) -> list[TensorType]:
    """Infer the output types for arrays instead of tensors."""
    return op.infer([None if a is None else Tensor("", DType.of(a.dtype), a.shape, data=a) for a in arrays])
