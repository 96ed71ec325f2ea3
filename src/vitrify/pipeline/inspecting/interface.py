"""How the source model's inputs and outputs are made up of the file's own, in words that an application can follow."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.ir import InputBinding, Model, OutputBinding, Part, Tensor
from vitrify.results import BindingRow


def binding_rows(model: Model) -> list[BindingRow]:
    """Describe what an application does before and after it runs the file; empty without a recorded interface."""
    interface = model.interface
    if interface is None:
        return []
    graph = model.main
    rows = [_input(binding, graph.inputs) for binding in interface.inputs]
    if interface.host is not None:
        taken = [f"output {number} is '{t.name}' {t.type}; dequantize: {t.quantization}"
                 for number, t in enumerate(graph.outputs)]
        rows.append(BindingRow(side="between", name="arithmetic on the file's outputs, in float",
                               steps=[*taken, *interface.host.describe().splitlines()]))
    given = graph.outputs if interface.host is None else ()
    return rows + [_output(binding, given) for binding in interface.outputs]


def _input(binding: InputBinding, inputs: Sequence[Tensor]) -> BindingRow:
    row = BindingRow(side="in", name=binding.name, shape=list(binding.shape), dtype=binding.dtype)
    if not 0 <= binding.position < len(inputs):
        row.steps = ["nothing in the file reads it"]
        return row
    tensor = inputs[binding.position]
    row.steps = [f"transpose by {list(binding.perm)}"] if binding.perm else []
    if binding.scale:
        row.steps.append(f"per channel: multiply by {_numbers(binding.scale)}, add {_numbers(binding.offset)}")
    if tensor.quantization is not None and tensor.quantization.scale.size:
        row.steps.append(f"quantize: {tensor.quantization}")
    row.steps.append(f"give to the file's input '{tensor.name}' {tensor.type}")
    return row


def _numbers(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"


def _output(binding: OutputBinding, outputs: Sequence[Tensor]) -> BindingRow:
    row = BindingRow(side="out", name=binding.name, shape=list(binding.shape), dtype=binding.dtype)
    for part in binding.parts:
        row.steps.append(_part(part, outputs))
    if len(binding.parts) > 1:
        row.steps.append(f"join the {len(binding.parts)} parts along axis {binding.axis}")
    return row


def _part(part: Part, outputs: Sequence[Tensor]) -> str:
    if part.position < len(outputs):
        tensor = outputs[part.position]
        words = [f"take the file's output '{tensor.name}' {tensor.type}"]
        if tensor.quantization is not None and tensor.quantization.scale.size:
            words.append(f"dequantize: {tensor.quantization}")
    else:
        words = [f"take value {part.position} of the arithmetic above"]
    words += [f"transpose by {list(part.perm)}"] if part.perm else []
    words += [f"reshape to {list(part.shape)}"] if part.shape else []
    words += [f"multiply by {part.scale:g}"] if part.scale != 1.0 else []
    return "; ".join(words)
