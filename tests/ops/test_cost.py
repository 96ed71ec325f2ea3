"""Multiply-accumulates and bytes, counted by hand."""

import pytest
from ops_cases_window import CASES
from ops_harness import model_of

from vitrify.ops.cost import Cost, total

MACS = {
    "conv_same_stride1_dilation1": 10 * 9 * 5 * 9 * 4,
    "conv_valid_stride2_dilation1": 4 * 4 * 5 * 9 * 4,
    "conv_grouped": 5 * 6 * 6 * 9 * 4,
    "depthwise_multiplier": 5 * 6 * 12 * 15,
    "transpose_conv_same": 5 * 6 * 4 * 9 * 3,
    "fully_connected": 3 * 5 * 8,
    "batch_matmul_00": 2 * 3 * 5 * 4,
    "batch_matmul_10": 2 * 3 * 5 * 4,
    "conv_3d": 3 * 6 * 7 * 4 * 3 * 2 * 3 * 3,
    "max_pool_2d_same_2x3_stride1": 0,
}


@pytest.mark.parametrize("label", MACS)
def test_macs(label):
    (node,) = model_of(CASES[label]).main.nodes
    assert node.op.macs(node) == MACS[label]


def test_bytes_count_each_tensor_once():
    (node,) = model_of(CASES["conv_1x1"]).main.nodes
    cost = Cost.of(node)
    assert (cost.input_bytes, cost.output_bytes, cost.weight_bytes) == (5 * 6 * 8 * 4, 5 * 6 * 6 * 4, (6 * 8 + 6) * 4)
    assert total([node, node]) == cost + cost
