"""Between stacks of source arrays [n, ...] and stacks of a file's tensors: as ``binding``, for many samples at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vitrify.data.binding import Details, quantization_of, to_file_inputs, to_source_outputs
from vitrify.ir.dtypes import element_type
from vitrify.ir.interface import Interface, OutputBinding

Array = np.ndarray[Any, np.dtype[Any]]


def to_file_stacks(interface: Interface, stacks: Mapping[str, Array], details: Sequence[Details]) -> list[Array]:
    """Turn stacks of the source's inputs into stacks of the file's input tensors.

    Raises:
        DataError: as ``to_file_inputs``, of the first sample or of one that holds NaN.
    """
    count = len(next(iter(stacks.values())))
    first = to_file_inputs(interface, {name: stack[0] for name, stack in stacks.items()}, details)
    if any(np.isnan(stack).any() for stack in stacks.values() if stack.dtype.kind == "f"):
        each = [to_file_inputs(interface, {name: stack[n] for name, stack in stacks.items()}, details)
                for n in range(count)]
        return [np.stack(tensors) for tensors in zip(*each, strict=True)]
    found = [np.broadcast_to(one, (count, *one.shape)) for one in first]
    for binding in interface.inputs:
        if not 0 <= binding.position < len(details):
            continue
        one = details[binding.position]
        value = stacks[binding.name]
        value = value.transpose(0, *(axis + 1 for axis in binding.perm)) if binding.perm else value
        if binding.scale:
            value = value * np.asarray(binding.scale, np.float32) + np.asarray(binding.offset, np.float32)
        dtype, quantization = np.dtype(one["dtype"]), quantization_of(one)
        if quantization is not None and value.dtype.kind == "f":
            value = quantization.quantize(value, dtype)
        found[binding.position] = np.ascontiguousarray(value, dtype).reshape((count, *one["shape"]))
    return found


def to_source_stacks(interface: Interface, stacks: Sequence[Array], details: Sequence[Details]) -> dict[str, Array]:
    """Turn stacks of the file's output tensors into stacks of the source's outputs."""
    if not _is_plain(interface):
        each = [to_source_outputs(interface, [stack[n] for stack in stacks], details) for n in range(len(stacks[0]))]
        return {name: np.stack([one[name] for one in each]) for name in each[0]}
    return {binding.name: _output(binding, stacks, details) for binding in interface.outputs}


def _is_plain(interface: Interface) -> bool:
    """True when each output is one tensor of the file, and nothing is computed behind it."""
    return interface.host is None and all(len(b.parts) == 1 for b in interface.outputs)


def _output(binding: OutputBinding, stacks: Sequence[Array], details: Sequence[Details]) -> Array:
    part, wanted = binding.parts[0], element_type(binding.dtype)
    value, quantization = stacks[part.position], quantization_of(details[part.position])
    if quantization is not None and wanted.kind not in "iu":
        value = quantization.dequantize(value)
    value = value.transpose(0, *(axis + 1 for axis in part.perm)) if part.perm else value
    value = value * np.float32(part.scale) if part.scale != 1.0 else value
    return np.ascontiguousarray(value.reshape((len(value), *binding.shape)), wanted)
