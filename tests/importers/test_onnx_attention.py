"""Attention and rotary embedding against ONNX Runtime, and the operators that they become."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_makers import Case, Feed, imported, same_as_runtime

from vitrify.core.errors import ModelError, UnsupportedError

RNG = np.random.default_rng(9)
Q, K, V = (2, 6, 5, 8), (2, 6, 7, 8), (2, 6, 7, 4)
SHARED = (2, 2, 7, 8), (2, 2, 7, 4)
PACKED = (2, 5, 48), (2, 7, 16), (2, 7, 8)
HEADS = {"q_num_heads": 6, "kv_num_heads": 2}


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def allowed(*shape: int) -> np.ndarray:
    """A mask that leaves each query a key."""
    mask = RNG.integers(0, 2, shape).astype(bool)
    mask[..., 0] = True
    return mask


ATTENTION = {
    "4-D": Case("Attention", [Q, K, V], opset=23),
    "3-D": Case("Attention", [*PACKED], HEADS, opset=23),
    "shared keys": Case("Attention", [Q, *SHARED], opset=23),
    "scale": Case("Attention", [Q, K, V], {"scale": 0.05}, opset=23),
    "softcap": Case("Attention", [Q, K, V], {"softcap": 1.5}, opset=23),
    "causal": Case("Attention", [Q, (2, 6, 5, 8), (2, 6, 5, 4)], {"is_causal": 1}, opset=23),
    "causal, packed": Case(
        "Attention",
        [(2, 5, 48), (2, 5, 48), (2, 5, 48)],
        {"q_num_heads": 6, "kv_num_heads": 6, "is_causal": 1},
        opset=23,
    ),
    "float mask": Case("Attention", [Q, K, V, (5, 7)], opset=23),
    "constant mask": Case("Attention", [Q, K, V, f(2, 1, 5, 7)], opset=23),
    "bool mask": Case("Attention", [Q, K, V, Feed(allowed(5, 7))], opset=23),
    "constant bool mask": Case("Attention", [Q, *SHARED, allowed(2, 1, 5, 7)], opset=23),
    "mask and causality": Case(
        "Attention", [Q, (2, 6, 5, 8), (2, 6, 5, 4), Feed(allowed(5, 5))], {"is_causal": 1}, opset=23
    ),
    "cache": Case("Attention", [Q, K, V, None, (2, 6, 3, 8), (2, 6, 3, 4)], {"is_causal": 1}, opset=23, outputs=3),
}
TABLES = [(40, 4), (40, 4)]
PLACES = Feed(RNG.integers(0, 40, (2, 5)))
ROTARY = {
    "4-D": Case("RotaryEmbedding", [(2, 3, 5, 8), *(f(*t) for t in TABLES), PLACES], opset=23),
    "3-D": Case("RotaryEmbedding", [(2, 5, 24), *(f(*t) for t in TABLES), PLACES], {"num_heads": 3}, opset=23),
    "known places": Case("RotaryEmbedding", [(2, 3, 5, 8), *(f(*t) for t in TABLES), PLACES.values], opset=23),
    "interleaved": Case(
        "RotaryEmbedding", [(2, 3, 5, 8), *(f(*t) for t in TABLES), PLACES], {"interleaved": 1}, opset=23
    ),
    "a part of each row": Case(
        "RotaryEmbedding", [(2, 3, 5, 12), *(f(*t) for t in TABLES), PLACES], {"rotary_embedding_dim": 8}, opset=23
    ),
    "tables at run time": Case(
        "RotaryEmbedding", [(2, 3, 5, 12), *TABLES, PLACES], {"rotary_embedding_dim": 8, "interleaved": 1}, opset=23
    ),
    "angles of each place": Case("RotaryEmbedding", [(2, 3, 5, 8), f(2, 5, 4), f(2, 5, 4)], opset=23),
}
CASES = {**{f"attention {n}": c for n, c in ATTENTION.items()}, **{f"rotary {n}": c for n, c in ROTARY.items()}}


@pytest.mark.parametrize("name", CASES)
def test_equals_onnx_runtime(name: str, tmp_path: Path) -> None:
    same_as_runtime(CASES[name], tmp_path)


FORMS = {
    "4-D": (ATTENTION["4-D"], ["MUL", "BATCH_MATMUL", "SOFTMAX", "BATCH_MATMUL"]),
    "causal": (ATTENTION["causal"], ["MUL", "BATCH_MATMUL", "ADD", "SOFTMAX", "BATCH_MATMUL"]),
    "constant bool mask": (
        ATTENTION["constant bool mask"],
        ["MUL", "RESHAPE", "BATCH_MATMUL", "RESHAPE", "ADD", "SOFTMAX", "RESHAPE", "BATCH_MATMUL", "RESHAPE"],
    ),
    "rotary": (ROTARY["known places"], ["MUL", "SPLIT", "CONCATENATION", "MUL", "ADD"]),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str, tmp_path: Path) -> None:
    case, kinds = FORMS[name]
    assert [n.op.kind for n in imported(case.proto(), tmp_path).main] == kinds


REFUSED = {
    "heads": (Case("Attention", [Q, (2, 4, 7, 8), (2, 4, 7, 8)], opset=23), "6 query heads and 4 key heads"),
    "ranks": (Case("Attention", [Q, (2, 7, 16), (2, 7, 8)], opset=23), "different ranks"),
    "packed": (Case("Attention", [*PACKED], {"q_num_heads": 5, "kv_num_heads": 5}, opset=23), "do not hold 5"),
    "angles": (Case("RotaryEmbedding", [(2, 3, 5, 8), f(40, 3), f(40, 3), PLACES], opset=23), "for 8 of 8 elements"),
}


def test_huge_mask_is_refused(tmp_path: Path) -> None:
    case = Case("Attention", [(1, 1, 1 << 14, 1), (1, 1, 1 << 14, 1), (1, 1, 1 << 14, 1)], {"is_causal": 1}, opset=23)
    with pytest.raises(UnsupportedError, match="at most 67108864 are made"):
        imported(case.proto(), tmp_path)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    case, text = REFUSED[name]
    with pytest.raises(ModelError, match=text):
        imported(case.proto(), tmp_path)
