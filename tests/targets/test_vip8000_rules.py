"""The rules of the VIP8000 and of the Ara240: what is taken, and what is refused, at each limit."""

from __future__ import annotations

import pytest
from drawn import Row, broken, conv, graph, matmul, resize, sliced, strided, value, with_constant

from vitrify import ops
from vitrify.ir import DType
from vitrify.targets import load
from vitrify.targets.ethos_u.probes.sketch import Sketch
from vitrify.targets.rules import judge, rules_of

NEAREST = ops.ResizeNearestNeighbor
BLOCKS = [[0, 0], [0, 0]]


def two_types(s: Sketch) -> object:
    return s.add(ops.Pack(values_count=2, axis=0), [s.value((4, 8), DType.FLOAT32, scale=None),
                                                    s.value((4, 8), DType.FLOAT32, scale=None)],
                 dtype=DType.FLOAT32, scale=None)


ROWS = {
    "conv": Row(conv()), "conv of int16 weights": Row(conv(weights=DType.INT16), ("hybrid-weights",)),
    "grouped": Row(conv(groups=2)), "grouped of two": Row(conv(groups=2, batch=2), ("grouped-batch",)),
    "add": Row(value(ops.Add(), (1, 8), (1, 8))),
    "add of floats": Row(value(ops.Add(), (1, 8), (1, 8), dtype=DType.FLOAT32, scale=None)),
    "add of int16": Row(value(ops.Add(), (1, 8), (1, 8), dtype=DType.INT16), ("wide-type",)),
    "neg of int64": Row(value(ops.Neg(), (1, 8), dtype=DType.INT64, scale=None), ("wide-type",)),
    "six axes": Row(value(ops.Neg(), (1, 1, 1, 1, 2, 8))),
    "seven axes": Row(value(ops.Neg(), (1,) * 6 + (8,)), ("rank",)),
    "nearest": Row(resize(NEAREST, (4, 4), (8, 8))),
    "nearest centred": Row(resize(NEAREST, (4, 4), (8, 8), centres=True), ("half-pixel",)),
    "nearest centred 2.5": Row(resize(NEAREST, (4, 4), (10, 10), centres=True), ("half-pixel",)),
    "bilinear centred": Row(resize(ops.ResizeBilinear, (4, 4), (8, 8), centres=True)),
    "size computed": Row(lambda s: s.add(NEAREST(align_corners=False, half_pixel_centers=False), [
        s.value((1, 4, 4, 8)), s.value((2,), DType.INT32, scale=None)], shape=(1, 8, 8, 8)), ("resize-variable",)),
    "depth to space without scale": Row(lambda s: s.add(ops.DepthToSpace(block_size=2), [
        s.value((1, 4, 4, 8), scale=None)]), ("missing-scale",)),
    "softmax of 65535": Row(value(ops.Softmax(beta=1.0), (1, 65535, 2))),
    "softmax of 65536": Row(value(ops.Softmax(beta=1.0), (1, 65536, 2)), ("softmax-size",)),
    "pack": Row(value(ops.Pack(values_count=2, axis=0), (4, 8), (4, 8)), ("no-pack",)),
    "pack of floats": Row(two_types),  # type: ignore[arg-type]
    "matmul": Row(matmul((1, 4, 8), (1, 8, 4)), ("matmul-type",)),
    "matmul of uint8": Row(value(ops.BatchMatMul(adj_x=False, adj_y=False), (1, 4, 8), (1, 8, 4), dtype=DType.UINT8)),
    "matmul both transposed": Row(value(ops.BatchMatMul(adj_x=True, adj_y=True), (1, 8, 4), (1, 4, 8),
                                        dtype=DType.UINT8), ("matmul-adjoint",)),
    "arg max": Row(with_constant(ops.ArgMax(output_type=2), (1, 8), 1, scale=None), ("arg-type",)),
    "select": Row(lambda s: s.add(ops.SelectV2(), [s.value((1, 8), DType.BOOL, scale=None), s.value((1, 8)),
                                                   s.value((1, 8))]), ("select-type",)),
    "slice": Row(sliced((1, 4, 4, 8), (1, 2, 4, 8))), "slice of samples": Row(sliced((2, 4, 4, 8), (1, 4, 4, 8)),
                                                                             ("slice-batch",)),
    "strided": Row(strided((1, 8), (1, 4), (1, 1))),
    "strided with an ellipsis": Row(strided((1, 8), (1, 4), (1, 1), ellipsis=1), ("slice-form",)),
    "requantized": Row(value(ops.Quantize(), (1, 8), dtype=DType.INT8)),
    "narrowed": Row(lambda s: s.add(ops.Quantize(), [s.value((1, 8), DType.INT16)], dtype=DType.INT8),
                    ("quantize-type",)),
    "blocked": Row(with_constant(ops.SpaceToBatchND(), (1, 4, 4, 8), [2, 2], BLOCKS)),
    "blocked once": Row(with_constant(ops.SpaceToBatchND(), (1, 4, 8), [2], [[0, 0]]), ("block-form",)),
    "gelu": Row(value(ops.Gelu(approximate=False), (1, 8)), ("unsupported-operator",)),
    "sign": Row(value(ops.Sign(), (1, 8), dtype=DType.FLOAT32, scale=None), ("unknown-operator",)),
    "custom": Row(lambda s: s.add(ops.Custom(custom_code="TFLite_Detection_PostProcess"), [s.value((1, 8))],
                                  shape=(1, 4)), ("custom-operator",)),
}


@pytest.mark.parametrize("one", ROWS.values(), ids=ROWS)
def test_a_node_breaks_these_rules(one: Row) -> None:
    assert broken(one.draw, load("imx8mp")) == sorted(one.codes)


def test_every_rule_is_broken_by_a_row() -> None:
    found = {f"vip8000.{code}" for one in ROWS.values() for code in one.codes}
    assert {rule.code for rule in rules_of("vip8000")} - found == {"vip8000.dynamic-shape"}


def test_free_dimensions_are_found() -> None:
    made = graph(ROWS["add"].draw)
    made.inputs[0].shape_signature = (1, -1)
    (verdict,) = judge(made, load("imx8mp"))
    assert [reason.code for reason in verdict.rules] == ["vip8000.dynamic-shape"]


@pytest.mark.parametrize("family", ["vip8000", "ara"])
def test_rules_say_all_that_a_user_needs(family: str) -> None:
    from vitrify.passes.targets import catalogue

    fixes = {one.name for one in catalogue()}
    for rule in rules_of(family):
        assert rule.code.startswith(f"{family}.")
        assert all((rule.says, rule.why, rule.source, rule.versions)), rule.code
        assert not rule.fix or rule.fix in fixes, f"{rule.code} names '{rule.fix}'"


ARA = {
    "conv": Row(conv()), "add of floats": Row(value(ops.Add(), (1, 8), (1, 8), dtype=DType.FLOAT32, scale=None),
                                              ("data-type",)),
    "softmax": Row(value(ops.Softmax(beta=1.0), (1, 8)), ("unknown-operator",)),
}


@pytest.mark.parametrize("one", ARA.values(), ids=ARA)
def test_what_is_concluded_for_the_ara(one: Row) -> None:
    assert broken(one.draw, load("ara240")) == sorted(one.codes)
    (verdict,) = judge(graph(one.draw), load("ara240"))
    assert verdict.placement == ("cpu" if one.codes else "npu")
    if "data-type" not in one.codes:
        assert verdict.is_unsure
