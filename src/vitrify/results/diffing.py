"""How two models differ: their ends, their nodes, what became of the source's."""

from __future__ import annotations

from typing import Any

import msgspec

from vitrify.results.rows import TensorRow


class DiffSide(msgspec.Struct, kw_only=True):
    """One of the two models. An ONNX file is compared as ``convert`` brings it into TFLite's operators.

    ``nms`` names the operators that select boxes, ``decode`` those behind the last weights that turn raw outputs into
    boxes or the like; ``host_steps`` counts the arithmetic that a file of ours leaves to the host. ``per_axis`` and
    ``per_tensor`` count the weights that are so quantized.
    """

    file: str = ""
    format: str = ""
    kind: str = ""
    producer: str = ""
    nodes: int = 0
    graphs: int = 1
    operators: dict[str, int] = {}
    float_operators: int = 0
    float_nodes: list[str] = []
    transposes: int = 0
    nms: list[str] = []
    decode: list[str] = []
    per_axis: int = 0
    per_tensor: int = 0
    stored_float16: int = 0
    npu_graphs: int = 0
    host_steps: int = 0
    inputs: list[TensorRow] = []
    outputs: list[TensorRow] = []


class ChangeRow(msgspec.Struct, kw_only=True):
    """One difference of a node: ``kind`` is what differs, ``what`` of it, ``before`` and ``after`` the values.

    ``kind``: ``operator``, ``attribute``, ``shape``, ``extent`` (a shape that follows from other inputs), ``layout``,
    ``type``, ``scale``, ``zero-point``, ``granularity``, ``constant``, ``float-rounding``, ``rounding``,
    ``quantization`` (a constant changed by more than rounding), ``inputs``, ``place``, ``name``. ``error`` is how far
    a constant differs, as a share of its own size.
    """

    kind: str
    what: str = ""
    before: Any = None
    after: Any = None
    text: str = ""
    error: float | None = None


class EndRow(msgspec.Struct, kw_only=True):
    """An input or output in A and in B; null where one side has none."""

    side: str
    a: TensorRow | None = None
    b: TensorRow | None = None
    changes: list[ChangeRow] = []


class NodeRow(msgspec.Struct, kw_only=True):
    """Nodes of A and the nodes of B that they are.

    ``relation``: ``same``, ``quantized`` (only its types differ, and weights are rounded), ``layout`` (only the order
    of its values differs), ``resized`` (only its extents, as the model's inputs do), ``changed``, ``moved``, ``fused``
    (several became one), ``split``, ``rewritten`` (several became several), ``compiled`` (they are inside an NPU
    graph), ``added``, ``removed``. ``how`` the match was found: ``content`` of constants, ``origin``, ``name``,
    ``neighbourhood``, ``order``, ``inside``. ``passes`` made it so.
    """

    relation: str
    how: str = ""
    a: list[str] = []
    a_operators: list[str] = []
    b: list[str] = []
    b_operators: list[str] = []
    passes: list[str] = []
    changes: list[ChangeRow] = []
    note: str = ""


class SourceRow(msgspec.Struct, kw_only=True):
    """A node of an ONNX file, and the nodes of the other model that it lives on in.

    ``how``: ``kept``, ``split``, ``fused`` (with others), ``folded`` (``into`` are the nodes that use its value),
    ``unused``, ``compiled``.
    """

    name: str
    operator: str
    how: str
    into: list[str] = []
