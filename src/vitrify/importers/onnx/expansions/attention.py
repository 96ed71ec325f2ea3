"""ONNX Runtime's attention operators, written with ONNX's own Attention.

Source: ONNX Runtime, docs/ContribOperators.md.
"""

from __future__ import annotations

import numpy as np

from vitrify.importers.onnx.expansions.registry import Writer, expansion
from vitrify.importers.onnx.source import SourceNode

FILTER = -10000.0
"""What is added to the products of keys that a mask leaves out, unless the node says otherwise."""
_OPSET = 23


@expansion("com.microsoft::Attention")
def attention(w: Writer, node: SourceNode) -> str:
    """Queries, keys and values by one product with the input, then attention."""
    _refuse(w, node, {4: "past keys and values", 6: "the length of past keys"}, 1)
    if node.integer("do_rotary"):
        raise node.unsupported("rotary embedding inside of it (do_rotary)", "export with ONNX's own operators")
    sizes = node.ints("qkv_hidden_sizes")
    y = w.add("MatMul", w.needed(0), w.needed(1))
    y = w.add("Add", y, w.name(2)) if w.has(2) else y
    if sizes:
        q = w.add("Split", y, w.constant(sizes), outputs=3, axis=-1)
    else:
        q = w.add("Split", y, outputs=3, axis=-1, num_outputs=3, opset=18)
    mask = _masks(w, node, 3, 5)
    return _attend(w, node, (q, f"{q}:1", f"{q}:2"), mask, node.integer("num_heads"))


@expansion("com.microsoft::MultiHeadAttention")
def multi_head_attention(w: Writer, node: SourceNode) -> str:
    """Attention of given queries, keys and values, each with its part of one bias."""
    _refuse(w, node, {6: "past keys", 7: "past values", 8: "the length of past keys"}, 1)
    if not w.has(1) or not w.has(2):
        raise node.unsupported("keys and values packed with the queries", "export with keys and values of their own")
    given = [w.needed(0), w.needed(1), w.needed(2)]
    if w.has(3):
        bias = w.known(3, "the bias")
        if bias.size % 3:
            raise node.unsupported(f"a bias of {bias.size} values for parts of different widths")
        parts = np.split(bias.reshape(-1), 3)
        given = [w.add("Add", x, w.constant(part)) if np.any(part) else x for x, part in zip(given, parts, strict=True)]
    return _attend(w, node, (given[0], given[1], given[2]), _masks(w, node, 4, 5), node.integer("num_heads"))


@expansion("com.microsoft::GroupQueryAttention")
def group_query_attention(w: Writer, node: SourceNode) -> list[str]:
    """Causal attention in which groups of queries share keys and values; a first pass, which starts a cache."""
    _refuse(w, node, {3: "past keys", 4: "past values"}, 3)
    if node.integer("do_rotary"):
        raise node.unsupported("rotary embedding inside of it (do_rotary)", "export it as a node of its own")
    if node.integer("local_window_size", -1) > 0:
        raise node.unsupported("a local window (local_window_size)")
    if not w.has(1) or not w.has(2):
        raise node.unsupported("keys and values packed with the queries", "export with keys and values of their own")
    y = _attend(w, node, (w.needed(0), w.needed(1), w.needed(2)), "", node.integer("num_heads"),
                node.integer("kv_num_heads"), causal=True)
    return [y, f"{y}:1", f"{y}:2"][: len(node.outputs)]


def _attend(w: Writer, node: SourceNode, parts: tuple[str, str, str], mask: str, heads: int, shared: int = 0,
            causal: bool = False) -> str:
    scale = node.number("scale", 0.0)
    return w.add("Attention", *parts, *([mask] if mask else []), outputs=3, opset=_OPSET, q_num_heads=heads,
                 kv_num_heads=shared or heads, scale=scale or None, softcap=node.number("softcap", 0.0) or None,
                 is_causal=int(causal or bool(node.integer("unidirectional"))))


def _refuse(w: Writer, node: SourceNode, inputs: dict[int, str], outputs: int) -> None:
    for index, what in inputs.items():
        if w.has(index):
            raise node.unsupported(f"{what} (input '{w.name(index)}')", "export without a cache (use_cache=False)")
    if any(node.outputs[outputs:]):
        raise node.unsupported("its outputs for keys and values are used", "export without a cache (use_cache=False)")


def _masks(w: Writer, node: SourceNode, padding: int, bias: int) -> str:
    """What is added to the products: a bias as it is, and the filter where a mask of 0 and 1 leaves keys out."""
    added = w.name(bias) if w.has(bias) else ""
    if not w.has(padding):
        return added
    rank = rank_of(w, w.name(padding))
    if rank not in (2, 3):
        raise node.unsupported(
            f"a mask '{w.name(padding)}' of {'unknown' if rank is None else rank} dimensions; 2 and 3 are converted"
        )
    mask = w.add("Cast", w.name(padding), to=1)
    left_out = w.add("Sub", w.constant(1.0), mask)
    filtered = w.add("Mul", left_out, w.constant(node.number("mask_filter_value", FILTER)))
    filtered = w.add("Unsqueeze", filtered, w.constant([1, 2] if rank == 2 else [1]))
    return w.add("Add", filtered, added) if added else filtered


def rank_of(w: Writer, name: str) -> int | None:
    """The number of dimensions of a value, where the graph says it or nothing but casts lie between."""
    for value in w.graph.inputs:
        if value.name == name:
            return None if value.dims is None else len(value.dims)
    if name in w.graph.constants:
        return w.graph.constants[name].ndim
    maker = next((n for n in w.graph.nodes if name in n.outputs), None)
    if maker is not None and maker.kind in ("Cast", "Identity", "Not", "Neg") and maker.inputs[0] != name:
        return rank_of(w, maker.inputs[0])
    return None


@expansion("com.microsoft::EmbedLayerNormalization")
def embed_layer_normalization(w: Writer, node: SourceNode) -> list[str]:
    """Rows of tables for words, positions and segments, added and normalized; also how long each row's mask is."""
    ids = w.needed(0)
    total = w.add("Gather", w.needed(2), ids, axis=0)
    if w.has(8):
        places = w.add("Gather", w.needed(3), w.name(8), axis=0)
    else:
        length = w.add("Slice", w.add("Shape", ids), w.constant([1]), w.constant([2]))
        places = w.add("Slice", w.needed(3), w.constant([0]), length, w.constant([0]))
    total = w.add("Add", total, places)
    if w.has(1) and w.has(4):
        total = w.add("Add", total, w.add("Gather", w.name(4), w.name(1), axis=0))
    y = w.add("LayerNormalization", total, w.needed(5), w.needed(6), axis=-1, epsilon=node.number("epsilon", 1e-12))
    results = [y]
    if len(node.outputs) > 1:
        used = bool(node.outputs[1])
        if used and not w.has(7):
            raise node.unsupported("its output for the mask is used, but no mask is given")
        mask = w.add("ReduceSum", w.name(7), w.constant([1]), keepdims=0) if used else ""
        results += [mask, *([total] if len(node.outputs) > 2 else [])]
    return results


@expansion("com.microsoft::RotaryEmbedding")
def rotary_embedding(w: Writer, node: SourceNode) -> str:
    """ONNX's own with its inputs in another order."""
    if node.integer("is_packed_batching") or node.number("scale", 1.0) != 1.0:
        raise node.unsupported("packed batches or a scale of positions")
    if rank_of(w, w.needed(1)) != 2:
        raise node.unsupported(f"positions '{w.needed(1)}' that are no table of batch and place",
                               "export with position_ids of shape [batch, length]")
    x, size = w.needed(0), 2 * w.known(2, "the table of cosines").shape[-1]
    apart = not node.integer("num_heads") and rank_of(w, x) == 3
    if apart:               # heads as wide as the table says
        x = w.add("Transpose", w.add("Reshape", x, w.constant([0, 0, -1, size])), perm=[0, 2, 1, 3])
    y = w.add("RotaryEmbedding", x, w.needed(2), w.needed(3), w.needed(1), opset=_OPSET,
              interleaved=node.integer("interleaved"), num_heads=node.integer("num_heads"),
              rotary_embedding_dim=node.integer("rotary_embedding_dim"))
    if apart:
        y = w.add("Reshape", w.add("Transpose", y, perm=[0, 2, 1, 3]), w.constant([0, 0, -1]))
    return y


@expansion("com.microsoft::QAttention")
def quantized_attention(w: Writer, node: SourceNode) -> str:
    """Attention of quantized values and weights; what it gives is real."""
    _refuse(w, node, {8: "past keys and values"}, 1)
    scale = w.known(4, "the scale of the weights")
    x = w.add("DequantizeLinear", w.needed(0), w.needed(3), *([w.name(6)] if w.has(6) else []))
    kernel = w.add("DequantizeLinear", w.needed(1), w.needed(4), *([w.name(7)] if w.has(7) else []),
                   axis=-1 if scale.size > 1 else None)
    y = w.add("Add", w.add("MatMul", x, kernel), w.needed(2))
    q = w.add("Split", y, outputs=3, axis=-1, num_outputs=3, opset=18)
    mask = _masks(w, node, 5, len(node.inputs)) if w.has(5) else ""
    return _attend(w, node, (q, f"{q}:1", f"{q}:2"), mask, node.integer("num_heads"))
