"""ONNX's own function operators: what the standard defines by other operators is made of those.

This is the way for operators without a lowering. The bodies come from the `onnx` package, which is loaded only here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.importers.onnx.reading.functions import body_of
from vitrify.importers.onnx.reading.reader import Reader
from vitrify.importers.onnx.reading.tensors import DTYPES
from vitrify.importers.onnx.source import SourceFunction, SourceGraph, SourceNode
from vitrify.ir import Tensor

DEEPEST = 16
"""Bodies within bodies: the standard's own end after a few; a schema that names itself must end too."""
_NUMBERS = {name: number for number, name in DTYPES.items()}


def has_body(node: SourceNode) -> bool:
    """Return whether the standard defines the operator by others."""
    schema = _schema(node)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def standard_body(node: SourceNode, inputs: Sequence[Any]) -> SourceGraph | None:
    """The operators that a function operator is made of, for inputs of these types; None when it is no function.

    Raises:
        ModelError: the node does not fit the operator.
    """
    schema = _schema(node)
    depth, outer = 0, node.inside
    while outer is not None:
        depth, outer = depth + 1, outer.inside
    if schema is None or depth > DEEPEST:
        return None
    proto = _fixed_body(schema, node.opset) or _typed_body(schema, node, inputs)
    if proto is None:
        return None
    reader = Reader(Path(), node.opset)
    function = reader.function(proto)
    function = SourceFunction(function.body, {**_defaults(schema, reader), **function.defaults})
    return body_of(function, node, inside=node)


def _schema(node: SourceNode) -> Any:
    """The operator's schema in the node's operator set; None when there is no such operator."""
    from onnx import defs

    newest = defs.onnx_opset_version()
    try:
        return defs.get_schema(node.kind, *(() if node.domain else (min(node.opset or newest, newest),)), node.domain)
    except defs.SchemaError:
        return None


def _fixed_body(schema: Any, opset: int) -> Any:
    """The body that is the same for all types, in the newest operator set that the model may use."""
    from onnx import FunctionProto

    if not schema.has_function:
        return None
    fitting = [version for version in schema.function_opset_versions if version <= opset]
    version = max(fitting, default=min(schema.function_opset_versions))
    return FunctionProto.FromString(schema.get_function_with_opset_version(version))


def _typed_body(schema: Any, node: SourceNode, inputs: Sequence[Any]) -> Any:
    """The body for inputs of these types."""
    from onnx import FunctionProto

    if not schema.has_context_dependent_function:
        return None
    versions = schema.context_dependent_function_opset_versions
    version = max([v for v in versions if v <= node.opset], default=min(versions))
    types = [_type(value) for value in inputs]
    data = schema.get_context_dependent_function_with_opset_version(version, _node_proto(node), types)
    return FunctionProto.FromString(data) if data else None


def _type(value: Tensor | np.ndarray[Any, Any] | None) -> bytes:
    """An input's type, as the schema asks for it; of an input left out, none."""
    from onnx import TypeProto, helper

    if value is None:
        return bytes(TypeProto().SerializeToString())
    name = value.dtype.label if isinstance(value, Tensor) else value.dtype.name
    return bytes(helper.make_tensor_type_proto(_NUMBERS[name], value.shape).SerializeToString())


def _node_proto(node: SourceNode) -> bytes:
    from onnx import helper, numpy_helper

    given = {
        name: numpy_helper.from_array(np.asarray(value)) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
        if not isinstance(value, SourceGraph)
    }
    return bytes(
        helper.make_node(node.kind, node.inputs, node.outputs, node.name, domain=node.domain, **given)
        .SerializeToString()
    )


def _defaults(schema: Any, reader: Reader) -> dict[str, Any]:
    """The attributes' defaults, which the body may refer to."""
    holder = SourceNode(schema.name, "", [], [], {})
    for attribute in schema.attributes.values():
        if attribute.default_value.name:
            reader.attribute(attribute.default_value, holder)
    return holder.attributes
