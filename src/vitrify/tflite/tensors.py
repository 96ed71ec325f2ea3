"""Tensor tables to tensors and back: types, constant data, quantization."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.ir import DType, Origin, Quantization, Tensor
from vitrify.tflite.schema import Record

Array = np.ndarray[Any, np.dtype[Any]]
KEPT = {"sparsity": None, "variant_tensors": None, "has_rank": False, "external_buffer": 0}
"""Fields that travel in ``Tensor.extras`` under their own names, with the value they have when absent."""

QUANTIZATION = "quantization"
"""Key of ``Tensor.extras`` for quantization parameters without a scale: min and max only, or a blockwise scheme."""

EMPTY_BUFFER = "empty_buffer"
"""Key of ``Tensor.extras``: a constant of zero elements whose buffer holds no data vector at all."""

SCRATCH = "scratch"
"""Key of ``Tensor.extras``: memory that a custom operator works in; the file says nobody makes it."""

UNUSED = "unused"
"""Key of ``Tensor.extras``: no node of the file used the tensor."""


def read_tensor(record: Record, index: int, content: Array | None) -> Tensor:
    """Return the tensor; ``content`` is its buffer's bytes, None for a tensor that is computed.

    Raises:
        ModelError: type, shape, data or quantization do not go together.
    """
    name = record.name or f"tensor_{index}"
    try:
        dtype = DType(record.type)
    except ValueError:
        raise ModelError.of("tflite.type", f"element type {record.type} is not one of the {len(DType)} that TFLite has",
                            where=f"tensor '{name}'") from None
    shape = () if record.shape is None else tuple(record.shape.tolist())
    if any(d < 0 for d in shape):
        raise ModelError.of("tflite.shape", f"shape {list(shape)} has a negative dimension", where=f"tensor '{name}'",
                            help="export the model with fixed input shapes")
    tensor = Tensor(name, dtype, shape, origin=Origin.of(name), is_variable=record.is_variable)
    tensor.extras = {k: getattr(record, k) for k, absent in KEPT.items()
                     if getattr(record, k) is not None and getattr(record, k) != absent}
    if record.shape_signature is not None and (record.shape_signature < 0).any():
        tensor.shape_signature = tuple(record.shape_signature.tolist())
    if content is not None:
        tensor.data = _data(tensor, content)
    if record.quantization is not None:
        _read_quantization(tensor, record.quantization)
    return tensor


def _data(tensor: Tensor, content: Array) -> Array:
    """View a buffer's bytes as the tensor's elements; sparse data stays flat, types without numpy form stay bytes."""
    numpy, bits = tensor.dtype.numpy, tensor.dtype.bits
    sparse = "sparsity" in tensor.extras
    wanted = -(-math.prod(tensor.shape) * bits // 8)
    if bits and not sparse and content.size != wanted:
        raise ModelError.of("tflite.data", f"the buffer holds {content.size} bytes, {tensor.type} needs {wanted}",
                            where=f"tensor '{tensor.name}'", help="export the file again, it may be damaged")
    if numpy is None:
        return content
    if content.size % numpy.itemsize:
        raise ModelError.of("tflite.data", f"the buffer holds {content.size} bytes, no multiple of {numpy.itemsize}",
                            where=f"tensor '{tensor.name}'", help="export the file again, it may be damaged")
    flat = content.view(numpy)
    return flat if sparse else flat.reshape(tensor.shape)


def _read_quantization(tensor: Tensor, record: Record) -> None:
    scale, zero_point = record.scale, record.zero_point
    if scale is None or scale.size == 0:
        if record.min is not None or record.max is not None or record.details is not None:
            tensor.extras[QUANTIZATION] = record
        return
    axis, count = record.quantized_dimension, scale.size
    problem = ""
    if zero_point is None or zero_point.size not in (1, count):
        problem = f"{count} scales come with {0 if zero_point is None else zero_point.size} zero points"
    elif count > 1 and not 0 <= axis < len(tensor.shape):
        problem = f"{count} scales lie along dimension {axis} of a tensor of rank {len(tensor.shape)}"
    elif count > 1 and count != tensor.shape[axis]:
        problem = f"{count} scales lie along dimension {axis}, which has {tensor.shape[axis]} elements"
    if problem:
        raise ModelError.of("tflite.quantization", problem, where=f"tensor '{tensor.name}' {tensor.type}",
                            help="export the file again, it may be damaged")
    if zero_point.size != count:
        zero_point = np.repeat(zero_point, count)
    tensor.quantization = Quantization(scale, zero_point, axis if count > 1 or axis else None,
                                       record.min, record.max, record.details)


def link_details(tensors: list[Tensor]) -> None:
    """Turn the tensor numbers inside blockwise quantization details into the tensors themselves."""
    def linked(details: Record) -> Record:
        return _mapped(details, lambda index: tensors[index] if 0 <= index < len(tensors) else index)

    for tensor in tensors:
        kept = tensor.extras.get(QUANTIZATION)
        if kept is not None and kept.details is not None:
            kept.details = linked(kept.details)
        found = tensor.quantization
        if found is not None and found.details is not None:
            tensor.quantization = Quantization(found.scale, found.zero_point, found.axis, found.minimum, found.maximum,
                                               linked(found.details))


def detail_tensors(tensor: Tensor) -> list[Tensor]:
    """The tensors that the quantization details of ``tensor`` name."""
    details = _details(tensor)
    return [v for k in ("scales", "zero_points") if isinstance(v := getattr(details, k, None), Tensor)]


def _details(tensor: Tensor) -> Any:
    if tensor.quantization is not None:
        return tensor.quantization.details
    kept = tensor.extras.get(QUANTIZATION)
    return None if kept is None else kept.details


def mark_unused(tensors: list[Tensor], used: Iterable[Tensor]) -> None:
    """Mark those of ``tensors`` that are not ``used``, nor named by the quantization of one that is."""
    waiting, seen = list(used), set[int]()
    while waiting:
        tensor = waiting.pop()
        if id(tensor) not in seen:
            seen.add(id(tensor))
            waiting += detail_tensors(tensor)
    for tensor in tensors:
        if id(tensor) not in seen:
            tensor.extras[UNUSED] = True


def _mapped(details: Record, change: Callable[[Any], Any]) -> Record:
    changed = {k: change(getattr(details, k)) for k in ("scales", "zero_points") if hasattr(details, k)}
    return Record(**{**vars(details), **changed})


def write_tensor(tensor: Tensor, buffer: int, number: Callable[[Tensor], int]) -> Record:
    """Return the table of a tensor whose data stands in buffer number ``buffer``."""
    record = Record("Tensor", name=tensor.name, type=tensor.dtype.value, shape=tensor.shape, buffer=buffer,
                    is_variable=tensor.is_variable, **{k: v for k, v in tensor.extras.items() if k in KEPT})
    if -1 in tensor.shape_signature:
        record.shape_signature = tensor.shape_signature
    record.quantization = _write_quantization(tensor, number)
    return record


def _write_quantization(tensor: Tensor, number: Callable[[Tensor], int]) -> Record | None:
    found, kept = tensor.quantization, tensor.extras.get(QUANTIZATION)
    if found is not None:
        record = Record("QuantizationParameters", scale=found.scale, zero_point=found.zero_point, min=found.minimum,
                        max=found.maximum, quantized_dimension=found.axis or 0, details=found.details)
    elif kept is not None:
        record = Record(**vars(kept))
    else:
        return None
    if record.details is not None:
        record.details = _mapped(record.details, lambda v: number(v) if isinstance(v, Tensor) else v)
    return record
