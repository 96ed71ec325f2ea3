"""What a file takes and gives as the other 8-bit type, for applications that are written for that."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import DType, Graph, Model, Quantization, Tensor
from vitrify.passes.targets.catalogue import fix

_SHIFT = 128
_OTHER = {DType.INT8: DType.UINT8, DType.UINT8: DType.INT8}


@fix("signed-ends", whole=True, cheaper=True, families=(), asked=True,
     says="takes and gives int8 where the file has uint8: the QUANTIZE between goes, or one is put there",
     wins="the type that an application has been written for; the same values, stored 128 lower")
def signed_ends(model: Model) -> int:
    """Inputs and outputs of bytes."""
    return _ends(model, DType.UINT8)


@fix("unsigned-ends", whole=True, cheaper=True, families=(), asked=True,
     says="takes and gives uint8 where the file has int8: the QUANTIZE between goes, or one is put there",
     wins="pixels and other bytes go in as they are; the same values, stored 128 higher")
def unsigned_ends(model: Model) -> int:
    """Inputs and outputs of signed bytes."""
    return _ends(model, DType.INT8)


def _ends(model: Model, kind: DType) -> int:
    graph = model.main
    inputs = [place for place, tensor in enumerate(graph.inputs) if _is(tensor, kind)]
    outputs = [place for place, tensor in enumerate(graph.outputs) if _is(tensor, kind) and tensor not in graph.inputs]
    for place in inputs:
        _input(graph, place)
    for place in outputs:
        _output(graph, place)
    if inputs or outputs:
        model.extras.pop("tensors", None)       # what only the file listed: it is another file now
    return len(inputs) + len(outputs)


def _is(tensor: Tensor, kind: DType) -> bool:
    return tensor.dtype is kind and tensor.quantization is not None and not tensor.quantization.is_per_axis


def _input(graph: Graph, place: int) -> None:
    """The input in its new type; what read it reads it through a QUANTIZE, unless that is what it was."""
    old = graph.inputs[place]
    new = _twin(old)
    graph.inputs[place] = new
    users = old.users
    if users and not old.is_output and all(_undoes(user.op, user.output, new) for user in users):
        for user in users:
            graph.replace_uses(user.output, new)
            graph.remove(user)
        return
    first = next(iter(graph), None)
    graph.add(ops.Quantize(), [new], [old], name=f"{old.name}/quantize", before=first, origin=old.origin)


def _output(graph: Graph, place: int) -> None:
    """The output in its new type, behind a QUANTIZE or in the place of one."""
    outputs = list(graph.outputs)
    old = outputs[place]
    made, new = old.producer, _twin(old)
    source = made.input(0) if made is not None and isinstance(made.op, ops.Quantize) else None
    if made is not None and source is not None and not old.uses and source.producer is not None \
            and source not in outputs and (source.dtype, source.quantization) == (new.dtype, new.quantization):
        source.name, source.origin = new.name, new.origin
        outputs[place] = source
        graph.set_outputs(outputs)
        graph.remove(made)
        return
    graph.add(ops.Quantize(), [old], [new], name=f"{old.name}/quantize", origin=old.origin)
    outputs[place] = new
    graph.set_outputs(outputs)


def _undoes(op: object, result: Tensor, new: Tensor) -> bool:
    return isinstance(op, ops.Quantize) and not result.is_output and \
        (result.dtype, result.quantization) == (new.dtype, new.quantization)


def _twin(old: Tensor) -> Tensor:
    """The same tensor in the other type, which takes over its name."""
    scales = old.quantization
    assert scales is not None
    kind = _OTHER[old.dtype]
    zero = int(scales.zero_point[0]) + (_SHIFT if kind is DType.UINT8 else -_SHIFT)
    name, old.name = old.name, f"{old.name}_{old.dtype.label}"
    new = Tensor(name, kind, old.shape, quantization=Quantization.per_tensor(float(scales.scale[0]), zero),
                 origin=old.origin)
    new.shape_signature = old.shape_signature
    return new
