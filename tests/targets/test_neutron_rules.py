"""The rules of eIQ Neutron: legal at each limit, illegal just beyond, on the cores that the limit is known for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from drawn import (
    Row,
    broken,
    conv,
    depthwise,
    graph,
    matmul,
    mean,
    padded,
    permuted,
    pool,
    resize,
    sliced,
    strided,
    transposed,
    value,
    with_constant,
)

from vitrify import ops
from vitrify.ir import DType, Quantization
from vitrify.targets import load
from vitrify.targets.neutron.operators import CORES, row, variant
from vitrify.targets.neutron.products import EXTENT, PADDED_POOL_STRIDE, TAPS, TRANSPOSED_STRIDE
from vitrify.targets.neutron.shapes import (
    FACTORS,
    RESHAPE_RANK,
    SOFTMAX_CHANNELS,
    SOFTMAX_PIXELS,
    SOFTMAX_VALUES,
)
from vitrify.targets.rules import judge, rules_of

CHIPS = {"c": "imxrt700", "old": "mcxn947", "s": "imx95"}
NEAREST, BILINEAR, MAX, AVERAGE = ops.ResizeNearestNeighbor, ops.ResizeBilinear, ops.MaxPool2D, ops.AveragePool2D
WIDTH = variant("c").limits["num_macs"]
DEEP = TAPS // WIDTH // 3 * WIDTH          # channels of a 3-wide kernel that just fit
SMALL = 4096 // variant("old").limits["pipelines"] * 4 - 1

COMMON = {
    "conv": Row(conv()), "conv same": Row(conv(kernel=(3, 3), padding=ops.Padding.SAME)),
    "conv of two groups": Row(conv(groups=2), ("grouped-convolution",)),
    "conv with int16 weights": Row(conv(weights=DType.INT16), ("weights-type",)),
    "conv with int64 bias": Row(conv(bias=DType.INT64), ("bias-type",)),
    "conv with computed weights": Row(
        lambda s: s.add(ops.Conv2D(padding=ops.Padding.VALID, stride_h=1, stride_w=1),
                        [s.value((1, 8, 8, 8)), s.value((8, 1, 1, 8)), s.bias(8)]), ("weights-variable",)),
    "depthwise": Row(depthwise()),
    "add": Row(value(ops.Add(), (1, 4, 4, 8), (1, 4, 4, 8))),
    "add of floats": Row(value(ops.Add(), (1, 4, 4, 8), (1, 4, 4, 8), dtype=DType.FLOAT32, scale=None),
                         ("float-tensor",)),
    "add of int32": Row(value(ops.Add(), (1, 4, 4, 8), (1, 4, 4, 8), dtype=DType.INT32), ("data-type",)),
    "logistic without scale": Row(lambda s: s.add(ops.Logistic(), [s.value((1, 8), scale=None)], scale=1 / 256,
                                                  zero=-128), ("missing-scale",)),
    "logistic with scales per channel": Row(lambda s: s.add(ops.Logistic(), [s.value((1, 8), scales=8)], scale=1 / 256,
                                                            zero=-128), ("per-axis-quantization",)),
    "float enters": Row(lambda s: s.add(ops.Quantize(), [s.value((1, 8), DType.FLOAT32, scale=None)], dtype=DType.INT8),
                        ("float-border",)),
    "float leaves": Row(lambda s: s.add(ops.Dequantize(), [s.value((1, 8))], dtype=DType.FLOAT32, scale=None),
                        ("float-border",)),
    "concatenation of unequal scales": Row(
        lambda s: s.add(ops.Concatenation(axis=3), [s.value((1, 4, 4, 8)), s.value((1, 4, 4, 8), scale=0.1)]),
        ("unequal-scales",)),
    "maximum of unequal scales": Row(lambda s: s.add(ops.Maximum(), [s.value((1, 8)), s.value((1, 8), zero=1)]),
                                     ("unequal-scales",)),
    "mean of unequal scales": Row(
        lambda s: s.add(ops.Mean(keep_dims=True), [s.value((1, 4, 4, 8), scale=0.1), s.constant([1, 2])]),
        ("unequal-scales",)),
    "pool of unequal scales": Row(
        lambda s: s.add(MAX(padding=ops.Padding.VALID, stride_h=1, stride_w=1, filter_height=2, filter_width=2),
                        [s.value((1, 4, 4, 8), scale=0.1)]), ("unequal-scales",)),
    "pad computed": Row(lambda s: s.add(ops.Pad(), [s.value((1, 4, 4, 8)), s.value((4, 2), DType.INT32, scale=None)],
                                        shape=(1, 6, 6, 8)), ("parameter-variable",)),
    "average": Row(pool(AVERAGE, 2, 2)),
    "average padded": Row(pool(AVERAGE, 3, 1, same=True), ("pool-padding",)),
    f"reshape to {RESHAPE_RANK - 1}": Row(with_constant(ops.Reshape(), (1, 8), [1] * (RESHAPE_RANK - 2) + [8])),
    f"reshape to {RESHAPE_RANK}": Row(with_constant(ops.Reshape(), (1, 8), [1] * (RESHAPE_RANK - 1) + [8]),
                                      ("reshape-rank",)),
    "sine": Row(value(ops.Sin(), (1, 8)), ("unknown-operator",)),
}
NEW = {
    f"conv stride {EXTENT}": Row(conv(stride=EXTENT)),
    f"conv stride {EXTENT + 1}": Row(conv(stride=EXTENT + 1), ("kernel-size",)),
    f"conv dilation {EXTENT + 1}": Row(conv(dilation=EXTENT + 1), ("kernel-size",)),
    f"max stride {PADDED_POOL_STRIDE} padded": Row(pool(MAX, 64, PADDED_POOL_STRIDE, size=65, same=True)),
    f"max stride {PADDED_POOL_STRIDE + 1} padded": Row(pool(MAX, 64, PADDED_POOL_STRIDE + 1, size=65, same=True),
                                                       ("pool-stride",)),
    f"max stride {EXTENT}": Row(pool(MAX, 1, EXTENT)),
    f"max stride {EXTENT + 1}": Row(pool(MAX, 1, EXTENT + 1), ("pool-stride",)),
    f"average {EXTENT + 1} high": Row(pool(AVERAGE, EXTENT + 1, 1, size=EXTENT + 1), ("kernel-size",)),
    "transposed": Row(transposed((3, 3), (TRANSPOSED_STRIDE, TRANSPOSED_STRIDE))),
    "transposed stride 3": Row(transposed((3, 3), (TRANSPOSED_STRIDE + 1, 1)), ("transpose-conv-stride",)),
    "transposed stride beyond the kernel": Row(transposed((1, 3), (2, 2)), ("transpose-conv-stride",)),
    "add of a repeated": Row(value(ops.Add(), (1, 4, 4, 8), (1, 1, 1, 8))),
    "add of two repeated": Row(value(ops.Add(), (1, 4, 1, 8), (1, 1, 4, 8)), ("broadcast",)),
    "division": Row(lambda s: s.add(ops.Div(), [s.value((1, 8)), s.constant([3] * 8, DType.INT8, scale=0.1)])),
    "division by a value": Row(value(ops.Div(), (1, 8), (1, 8)), ("divisor",)),
    "slice": Row(strided((1, 8), (1, 4), (1, 1))),
    "slice of every second": Row(strided((1, 8), (1, 8), (1, 2)), ("slice-stride",)),
    "reflected": Row(padded([(0, 0), (1, 1), (1, 1), (0, 0)], ops.MirrorPad(mode=0))),
    "mirrored edge": Row(padded([(0, 0), (1, 1), (1, 1), (0, 0)], ops.MirrorPad(mode=1)), ("mirror-mode",)),
    **{f"nearest x{f}": Row(resize(NEAREST, (4, 6), (4 * f, 6 * f))) for f in FACTORS},
    **{f"bilinear x{f}": Row(resize(BILINEAR, (4, 6), (4 * f, 6)), ("resize-factor",)) for f in (3, 16)},
    "bilinear 2x4": Row(resize(BILINEAR, (4, 6), (8, 24))),
    "bilinear half": Row(resize(BILINEAR, (4, 6), (2, 3)), ("resize-factor",)),
    "bilinear corners": Row(resize(BILINEAR, (5, 5), (9, 9), corners=True)),
    "bilinear corners x2": Row(resize(BILINEAR, (5, 5), (10, 10), corners=True), ("resize-factor",)),
    "bilinear both flags": Row(resize(BILINEAR, (5, 5), (9, 9), corners=True, centres=True), ("resize-corners",)),
}
ONLY_C = {
    f"conv of {3 * DEEP} products": Row(conv(size=3, channels=DEEP, outputs=1, kernel=(1, 3))),
    "conv of one more": Row(conv(size=3, channels=DEEP + 1, outputs=1, kernel=(1, 3)), ("kernel-volume",)),
    f"conv {EXTENT} wide": Row(conv(size=1, wide=EXTENT, channels=1, kernel=(1, EXTENT))),
    f"conv {EXTENT + 1} wide": Row(conv(size=1, wide=EXTENT + 1, channels=1, kernel=(1, EXTENT + 1)), ("kernel-size",)),
    "add of int16": Row(value(ops.Add(), (1, 8), (1, 8), dtype=DType.INT16), ("data-type",)),
    "matmul": Row(matmul((1, 4, 8), (1, 8, 4))), "matmul of one in four axes": Row(matmul((1, 1, 4, 8), (1, 1, 8, 4))),
    "matmul with a zero point": Row(matmul((1, 4, 8), (1, 8, 4), zero=1), ("matmul-zero-point",)),
    "matmul of heads": Row(matmul((2, 2, 4, 8), (2, 2, 8, 4)), ("matmul-rank",)),
    f"softmax of {SOFTMAX_CHANNELS}": Row(value(ops.Softmax(beta=1.0), (1, 256, SOFTMAX_CHANNELS))),
    "softmax of one channel more": Row(value(ops.Softmax(beta=1.0), (1, SOFTMAX_CHANNELS + 1)), ("softmax-size",)),
    f"softmax of {SOFTMAX_PIXELS} pixels": Row(value(ops.Softmax(beta=1.0), (1, SOFTMAX_PIXELS, 128))),
    "softmax of one pixel more": Row(value(ops.Softmax(beta=1.0), (SOFTMAX_PIXELS + 1, 8)), ("softmax-size",)),
    "softmax of more values": Row(value(ops.Softmax(beta=1.0), (SOFTMAX_VALUES // 1024 + 1, 1024)), ("softmax-size",)),
    "gather": Row(with_constant(ops.Gather(axis=0, batch_dims=0), (4, 8), [1, 2]), ("unknown-operator",)),
}
ONLY_S = {
    "add of int16": Row(value(ops.Add(), (1, 8), (1, 8), dtype=DType.INT16), ("sixteen-bit",)),
    "softmax": Row(value(ops.Softmax(beta=1.0), (1, 16)), ("unknown-operator",)),
    "matmul": Row(matmul((1, 4, 8), (1, 8, 4)), ("unknown-operator",)),
    "matmul of heads with a zero point": Row(matmul((2, 2, 4, 8), (2, 2, 8, 4), zero=1),
                                             ("matmul-rank", "matmul-zero-point", "unknown-operator")),
    "conv of 65536 products": Row(conv(size=1, wide=EXTENT, channels=1, kernel=(1, EXTENT)), ("kernel-volume",)),
    "depth to space": Row(value(ops.DepthToSpace(block_size=2), (1, 4, 4, 8)), ("unsupported-operator",)),
}
ONLY_OLD = {
    "exponential": Row(value(ops.Exp(), (1, 8)), ("unsupported-operator",)),
    "conv of two": Row(conv(batch=2), ("batch",)),
    "transposed row": Row(transposed((1, 2), (1, 2))),
    "transposed image": Row(transposed((2, 2), (2, 2)), ("transpose-conv-form",)),
    "transposed row of 12 channels": Row(transposed((1, 2), (1, 2), channels=12), ("transpose-conv-form",)),
    "max stride 2": Row(pool(MAX, 2, 2)), "max stride 3": Row(pool(MAX, 3, 3), ("pool-stride",)),
    f"max of {WIDTH + 1} channels": Row(pool(MAX, 2, 2, channels=WIDTH + 1), ("channels-multiple",)),
    "mean": Row(mean((1, 4, 4, 8), (1, 2))),
    "mean over height": Row(mean((1, 4, 4, 8), (1,)), ("reduce-axes",)),
    "mean that drops axes": Row(mean((1, 4, 4, 8), (1, 2), keep=False), ("reduce-axes",)),
    "mean of 9 channels": Row(mean((1, 4, 4, 9), (1, 2)), ("channels-multiple",)),
    "joined channels": Row(value(ops.Concatenation(axis=3), (1, 4, 4, 8), (1, 4, 4, 16))),
    "joined equal shapes": Row(value(ops.Concatenation(axis=3), (1, 4, 4, 5), (1, 4, 4, 5))),
    "joined odd channels": Row(value(ops.Concatenation(axis=3), (1, 4, 4, 5), (1, 4, 4, 8)), ("channels-multiple",)),
    "sliced to 8": Row(sliced((1, 4, 4, 16), (1, 4, 4, 8))),
    "sliced to 9": Row(sliced((1, 4, 4, 16), (1, 4, 4, 9)), ("channels-multiple",)),
    f"softmax of {SMALL // WIDTH * WIDTH}": Row(value(ops.Softmax(beta=1.0), (1, SMALL // WIDTH * WIDTH))),
    f"softmax of {SMALL + 1}": Row(value(ops.Softmax(beta=1.0), (1, SMALL + 1)), ("softmax-size",)),
    "softmax of 4097 pixels": Row(value(ops.Softmax(beta=1.0), (4097, 8)), ("softmax-size",)),
    **{f"nearest x{f}": Row(resize(NEAREST, (4, 4), (4 * f, 4 * f)), () if f in (2, 4) else ("resize-factor",))
       for f in (1, 2, 3, 4, 8)},
    "nearest 2x4": Row(resize(NEAREST, (4, 4), (8, 16)), ("resize-factor",)),
    "add of a repeated": Row(value(ops.Add(), (1, 4, 4, 8), (1, 1, 1, 8)), ("broadcast",)),
    "product of odd extents": Row(value(ops.Mul(), (1, 3, 3, 7), (1, 3, 3, 7)), ("mul-extent",)),
    "product of single values": Row(value(ops.Mul(), (1, 1), (1, 1))),
    "matmul": Row(matmul((1, 8, 16), (1, 16, 8))),
    "matmul of heads": Row(matmul((2, 2, 8, 8), (2, 2, 8, 8)), ("matmul-rank",)),
    "bilinear both flags": Row(resize(BILINEAR, (5, 5), (9, 9), corners=True, centres=True), ("resize-corners",)),
    "matmul of 4 rows": Row(matmul((1, 4, 16), (1, 16, 8)), ("channels-multiple",)),
    "pad": Row(padded([(0, 0), (1, 1), (1, 1), (0, 0)])),
    "pad of channels": Row(padded([(0, 0), (0, 0), (0, 0), (0, 8)]), ("pad-channels",)),
    "to channels first": Row(permuted((1, 4, 4, 8), (0, 3, 1, 2))),
    "height and width changed": Row(permuted((1, 4, 6, 8), (0, 2, 1, 3)), ("transpose",)),
    "single axes moved": Row(permuted((1, 1, 6, 8), (1, 0, 2, 3))),
    "prelu": Row(lambda s: s.add(ops.Prelu(), [s.value((1, 64, 64, 8)), s.constant([3] * 8, DType.INT8, scale=0.1)])),
    "prelu of too many pixels": Row(
        lambda s: s.add(ops.Prelu(), [s.value((1, 65, 64, 8)), s.constant([3] * 8, DType.INT8, scale=0.1)]),
        ("prelu-size",)),
    "slice with steps": Row(strided((1, 8), (1, 8), (1, 1)), ("unknown-operator",)),
}
ROWS = {f"{core}: {name}": (core, one) for core, tables in
        {"c": (COMMON, NEW, ONLY_C), "s": (COMMON, NEW, ONLY_S), "old": (COMMON, ONLY_OLD)}.items()
        for table in tables for name, one in table.items()}
BY_CONSTRUCTION = {"neutron.dynamic-shape": "drawn below, from a shape signature",
                   "neutron.empty-graph": "judged by what stands around"}

UNBROKEN = {"c": {"neutron.unsupported-operator"}, "s": set(), "old": set()}
"""Codes that no row breaks on a core: nothing is known to be left out by the flow of SDK 3.2."""


@pytest.mark.parametrize(("core", "one"), ROWS.values(), ids=ROWS)
def test_a_node_breaks_these_rules(core: str, one: Row) -> None:
    assert broken(one.draw, load(CHIPS[core])) == sorted(one.codes)


@pytest.mark.parametrize("core", CORES)
def test_every_rule_is_broken_by_a_row(core: str) -> None:
    found = {f"neutron.{code}" for where, one in ROWS.values() if where == core for code in one.codes}
    codes = {rule.code for rule in rules_of("neutron") if core in rule.cores or not rule.cores}
    assert codes - found - set(BY_CONSTRUCTION) == UNBROKEN[core]


def test_rules_say_all_that_a_user_needs() -> None:
    from vitrify.passes.targets import catalogue

    fixes = {one.name: one for one in catalogue()}
    for rule in rules_of("neutron"):
        assert rule.code.startswith("neutron.")
        assert all((rule.says, rule.why, rule.source, rule.versions)), rule.code
        assert not rule.fix or rule.fix in fixes, f"{rule.code} names '{rule.fix}'"
        if rule.cores == {"s"} and rule.confidence == "inferred":
            assert "Neutron-C" in rule.source, rule.code
    counts = Counter((rule.code, rule.operators, rule.cores) for rule in rules_of("neutron"))
    assert not [key for key, count in counts.items() if count > 1]


def test_free_dimensions_are_found() -> None:
    made = graph(COMMON["add"].draw)
    made.inputs[0].shape_signature = (1, -1, 4, 8)
    (verdict,) = judge(made, load("imx95"))
    assert [reason.code for reason in verdict.rules] == ["neutron.dynamic-shape"]
    made.inputs[0].shape_signature = (-1, 4, 4, 8)
    assert [one.placement for one in judge(made, load("imx95"))] == ["npu"]


NOTHING = {
    "reshape": with_constant(ops.Reshape(), (1, 8), [8]),
    "expanded": with_constant(ops.ExpandDims(), (1, 8), 0),
    "mean of one pixel": mean((1, 1, 1, 8), (1, 2)),
    "permuted single axes": permuted((1, 1, 6, 8), (1, 0, 2, 3)),
    "pad by nothing": padded([(0, 0)] * 4),
    "relu of positive values": lambda s: s.add(ops.Relu(), [s.value((1, 8), zero=-128)], zero=-128),
    "relu6 of 0 to 6": lambda s: s.add(ops.Relu6(), [s.value((1, 8), zero=-128, scale=6 / 255)], zero=-128,
                                       scale=6 / 255),
}
SOMETHING = {
    "mean": mean((1, 4, 4, 8), (1, 2)),
    "permuted": permuted((1, 4, 6, 8), (0, 3, 1, 2)),
    "relu": lambda s: s.add(ops.Relu(), [s.value((1, 8), zero=3)], zero=3),
    "relu that rescales": lambda s: s.add(ops.Relu(), [s.value((1, 8), zero=-128, scale=0.1)], zero=-128),
}


@pytest.mark.parametrize("chip", ["imx95", "imxrt700"])
@pytest.mark.parametrize("name", NOTHING)
def test_a_graph_of_nothing_is_not_made(name: str, chip: str) -> None:
    (verdict,) = judge(graph(NOTHING[name]), load(chip))
    assert (verdict.placement, verdict.confidence) == ("cpu", "documented")
    assert [reason.code for reason in verdict.rules] == ["neutron.empty-graph"]


@pytest.mark.parametrize("name", SOMETHING)
def test_what_changes_values_is_made(name: str) -> None:
    assert [verdict.placement for verdict in judge(graph(SOMETHING[name]), load("imxrt700"))] == ["npu"]


def test_renaming_beside_work_is_folded() -> None:
    made = graph(COMMON["conv"].draw)
    y = made.outputs[0]
    shape = graph(NOTHING["reshape"]).nodes[0].inputs[1]
    assert shape is not None
    shape.data, shape.shape = np.array([1, -1], np.int32), (2,)
    out = made.add(ops.Reshape(), [y, shape]).output
    out.quantization = Quantization.per_tensor(0.05, 0)
    made.set_outputs([out])
    assert [verdict.placement for verdict in judge(made, load("imx95"))] == ["npu", "folded"]


def test_a_taken_operator_says_how_that_is_known() -> None:
    cases = {"imx95": {"conv": "documented", "add": "documented", "average": "inferred"},
             "imxrt700": {"conv": "documented", "average": "documented"}, "mcxn947": {"average": "inferred"}}
    for chip, rows in cases.items():
        for name, confidence in rows.items():
            (verdict,) = judge(graph(COMMON[name].draw), load(chip))
            assert (verdict.placement, verdict.confidence) == ("npu", confidence), (chip, name)
            assert verdict.source == row(verdict.operator, load(chip).core).source
            assert len(verdict.source) > 10
