"""Between the arrays of the source model and the tensors of a file: layout, quantization, parts of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vitrify.core.errors import DataError
from vitrify.core.findings import Finding
from vitrify.data.fitting import own_layout
from vitrify.data.host import run_host
from vitrify.data.limits import not_numbers
from vitrify.ir import Model, Tensor
from vitrify.ir.dtypes import element_type
from vitrify.ir.interface import InputBinding, Interface, OutputBinding, Part
from vitrify.ir.quantization import Quantization

Array = np.ndarray[Any, np.dtype[Any]]
Details = Mapping[str, Any]
"""What LiteRT says of one input or output: ``shape``, ``dtype``, ``quantization_parameters``."""


def quantization_of(details: Details) -> Quantization | None:
    """Return the quantization of an interpreter's tensor, None when it has none."""
    parameters = details.get("quantization_parameters") or {}
    scales = np.asarray(parameters.get("scales", ()), np.float32)
    if not scales.size or not np.issubdtype(np.dtype(details["dtype"]), np.integer):
        return None
    zero_points = np.asarray(parameters.get("zero_points", np.zeros(scales.shape)), np.int64)
    axis = int(parameters.get("quantized_dimension", 0)) if scales.size > 1 else None
    return Quantization(scales, zero_points, axis)


def to_file_inputs(interface: Interface, arrays: Mapping[str, Array], details: Sequence[Details]) -> list[Array]:
    """Turn the source model's input arrays into the file's input tensors, in the file's order.

    Arrays are transposed and scaled as the interface says and quantized where the file's input is quantized.

    Raises:
        DataError: an input is missing, has another shape, or holds NaN where the file has integers; lists all of them.
    """
    problems = [p for binding in interface.inputs for p in _input_problems(binding, arrays, details)]
    if problems:
        raise DataError(problems)
    found: list[Array] = [np.zeros(tuple(d["shape"]), d["dtype"]) for d in details]
    for binding in interface.inputs:
        if not 0 <= binding.position < len(details):
            continue                                # the source input is not read by anything in the file
        value = np.asarray(arrays[binding.name])
        value = value.transpose(binding.perm) if binding.perm else value
        if binding.scale:
            value = value * np.asarray(binding.scale, np.float32) + np.asarray(binding.offset, np.float32)
        found[binding.position] = _to_tensor(value, details[binding.position])
    return found


def _input_problems(binding: InputBinding, arrays: Mapping[str, Array], details: Sequence[Details]) -> list[Finding]:
    array = arrays.get(binding.name)
    if array is None:
        return [Finding(code="data.missing_input", headline=f"no array for input '{binding.name}'",
                        help=f"the sample has: {', '.join(map(repr, arrays)) or 'nothing'}")]
    if tuple(array.shape) != tuple(binding.shape):
        return [_misshaped(binding, tuple(array.shape))]
    if 0 <= binding.position < len(details) and quantization_of(details[binding.position]) is not None:
        said = not_numbers(binding.name, np.asarray(array))
        if said:
            kind = np.dtype(details[binding.position]["dtype"]).name
            return [Finding(code="data.not_finite", headline=said, where=f"input '{binding.name}'",
                            why=f"the file's input is {kind}, which has no NaN",
                            help="repair the sample, or put a number in the place of what is missing")]
    return []


def _misshaped(binding: InputBinding, found: tuple[int, ...]) -> Finding:
    """Say what shape an input takes; of an array in the file's own layout, how it becomes that."""
    why, help = own_layout(binding, found), ""
    if why and len(found) == len(binding.shape):
        back = ", ".join(str(binding.perm.index(axis)) for axis in range(len(found)))
        help = f"turn the array: array.transpose({back}); for files of samples: --prepare layout=nhwc"
    return Finding(code="data.shape", why=why, help=help,
                   headline=f"input '{binding.name}' takes {_shape(binding.shape)}, got {_shape(found)}")


def _shape(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _to_tensor(value: Array, details: Details) -> Array:
    dtype = np.dtype(details["dtype"])
    quantization = quantization_of(details)
    if quantization is not None and np.issubdtype(value.dtype, np.floating):
        value = quantization.quantize(value, dtype)
    return np.ascontiguousarray(value, dtype).reshape(tuple(details["shape"]))


def to_source_outputs(interface: Interface, tensors: Sequence[Array], details: Sequence[Details]) -> dict[str, Array]:
    """Turn the file's output tensors into the source model's outputs, by name.

    Quantized tensors are dequantized, unless the source gives the steps themselves, and pass through the host program,
    if there is one; parts are transposed, scaled and joined.
    """
    as_steps = {part.position for b in interface.outputs if element_type(b.dtype).kind in "iu" for part in b.parts
                if interface.host is None}
    reals = [tensor if place in as_steps else _real(tensor, one)
             for place, (tensor, one) in enumerate(zip(tensors, details, strict=False))]
    given = run_host(interface.host, reals) if interface.host is not None else reals
    return {binding.name: _output(binding, given) for binding in interface.outputs}


def _real(tensor: Array, details: Details) -> Array:
    quantization = quantization_of(details)
    return quantization.dequantize(tensor) if quantization is not None else tensor


def _output(binding: OutputBinding, given: Sequence[Array]) -> Array:
    parts = [_part(part, given[part.position]) for part in binding.parts]
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=binding.axis)
    if joined.shape != tuple(binding.shape) and joined.size == int(np.prod(binding.shape, dtype=np.int64)):
        joined = joined.reshape(binding.shape)
    wanted = element_type(binding.dtype)
    if wanted != joined.dtype:
        joined = joined.astype(wanted)
    return np.ascontiguousarray(joined).reshape(joined.shape)      # it would give a scalar one axis


def _part(part: Part, value: Array) -> Array:
    value = value.transpose(part.perm) if part.perm else value
    value = value.reshape(part.shape) if part.shape else value
    return value * np.float32(part.scale) if part.scale != 1.0 else value


def identity_interface(model: Model) -> Interface:
    """The interface of a model that is its own source: every input and output as the file has it."""
    graph = model.main
    names = next((s for s in model.signatures if s.graph == 0), None)
    inputs = {p: n for n, p in names.inputs.items()} if names is not None else {}
    outputs = {p: n for n, p in names.outputs.items()} if names is not None else {}
    return Interface(
        inputs=tuple(InputBinding(name=inputs.get(i, t.name), shape=t.shape, dtype=_dtype(t), position=i)
                     for i, t in enumerate(graph.inputs)),
        outputs=tuple(OutputBinding(name=outputs.get(i, t.name), shape=t.shape, dtype=_dtype(t),
                                    parts=(Part(position=i),)) for i, t in enumerate(graph.outputs)),
        source_format="tflite")


def _dtype(tensor: Tensor) -> str:
    return "float32" if tensor.quantization is not None and tensor.dtype.bits in (8, 16) else tensor.dtype.label
