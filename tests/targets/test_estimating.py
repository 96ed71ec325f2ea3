"""The models of a chip's time: more work takes longer, in the right units, and each says what it waits for."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from drawn import Draw, conv, depthwise, graph, mean, permuted, value

from vitrify import ops
from vitrify.ir import Node
from vitrify.targets import load
from vitrify.targets.estimating import cpu_seconds, cpu_time, node_macs, node_times, npu_seconds, npu_time
from vitrify.targets.estimating.work import work_of

CORES = ["imx93", "imx95", "imx8mp", "mcxn947", "imxrt700", "ara240", "ethos-u55-128"]
ARRAYS = ["imx95", "imx943", "imx8mp", "mcxn947", "imxrt700", "ara240"]


def node(draw: Draw) -> Node:
    return list(graph(draw))[-1]


class Growing(NamedTuple):
    smaller: Draw
    larger: Draw


GROWING = {
    "pixels": Growing(conv(size=32, channels=32, outputs=32), conv(size=64, channels=32, outputs=32)),
    "channels": Growing(conv(size=32, channels=32, outputs=32), conv(size=32, channels=64, outputs=32)),
    "outputs": Growing(conv(size=32, channels=32, outputs=32), conv(size=32, channels=32, outputs=160)),
    "kernel": Growing(conv(size=32, channels=32, outputs=32), conv(size=32, channels=32, outputs=32, kernel=(3, 3))),
    "values": Growing(value(ops.Add(), (1, 99), (1, 99)), value(ops.Add(), (1, 99_999), (1, 99_999))),
    "slow values": Growing(permuted((1, 9, 99), (0, 2, 1)), permuted((1, 99, 99), (0, 2, 1))),
}


@pytest.mark.parametrize("chip", CORES)
@pytest.mark.parametrize("pair", GROWING.values(), ids=GROWING)
def test_more_work_takes_a_core_longer(pair: Growing, chip: str) -> None:
    small, large = (cpu_seconds(node(draw), load(chip)) for draw in pair)
    assert all(a < b for a, b in zip(small, large, strict=True))


@pytest.mark.parametrize("chip", ARRAYS)
@pytest.mark.parametrize("pair", GROWING.values(), ids=GROWING)
def test_more_work_never_takes_an_array_less(pair: Growing, chip: str) -> None:
    small, large = (npu_seconds(node(draw), load(chip)) for draw in pair)
    assert all(a <= b for a, b in zip(small, large, strict=True))
    assert small.low <= small.likely <= small.high


def test_a_large_convolution_runs_at_the_rate_of_its_products() -> None:
    chip, one = load("imx93"), node(conv(size=64, channels=512, outputs=512))
    found = cpu_time(one, chip)
    assert found.bound == "products"
    assert found.seconds.likely == pytest.approx(node_macs(one) / chip.value("cpu_macs_per_s"), rel=0.2)
    assert found.seconds.high / found.seconds.likely == pytest.approx(chip.value("cpu_spread"))
    assert "two Cortex-A55, int8, 1 thread" in found.source


WAITS = {
    "start": (value(ops.Reshape(new_shape=(8, 1)), (1, 8)), "start"),
    "values": (value(ops.Add(), (1, 99_999), (1, 99_999)), "values"),
    "products": (conv(size=64, channels=512, outputs=512), "products"),
}


@pytest.mark.parametrize(("draw", "bound"), WAITS.values(), ids=WAITS)
def test_what_a_node_waits_for(draw: Draw, bound: str) -> None:
    assert cpu_time(node(draw), load("imx93")).bound == bound


def test_threads_share_out_products_alone() -> None:
    chip = load("imx93")
    product, mover = node(conv(size=64, channels=64, outputs=64)), node(permuted((1, 99, 99), (0, 2, 1)))
    one, two, many = (cpu_seconds(product, chip, threads).likely for threads in (1, 2, 64))
    assert one > two > many > one * (1 - chip.value("cpu_parallel_share")) * 0.99
    assert one / two == pytest.approx(1.6, abs=0.2)
    assert cpu_seconds(mover, chip, 2) == cpu_seconds(mover, chip)


def test_what_reuses_nothing_has_a_rate_of_its_own() -> None:
    chip = load("imx93")
    deep, flat = node(depthwise()), node(conv(size=64, channels=64, outputs=64))
    each = [cpu_time(one, chip).seconds.likely / node_macs(one) for one in (deep, flat)]
    assert each[0] > 5 * each[1]
    assert work_of(deep).reuses_nothing
    assert not work_of(flat).reuses_nothing


def test_slow_operators_cost_more_for_each_value() -> None:
    chip = load("imx93")
    slow = cpu_seconds(node(permuted((1, 99, 99), (0, 2, 1))), chip).likely
    plain = cpu_seconds(node(value(ops.Relu(), (1, 99, 99))), chip).likely
    assert slow > 5 * plain
    assert cpu_time(node(mean((1, 32, 32, 16), (1, 2))), chip).bound == "values"


def test_channels_that_do_not_fill_the_array_are_lost() -> None:
    chip = load("imx95")
    full, over = (npu_time(node(conv(size=256, channels=channels, outputs=64, kernel=(3, 3))), chip)
                  for channels in (64, 65))
    assert full.bound == over.bound == "products"
    assert (over.seconds.likely - chip.value("npu_node_s")) / (full.seconds.likely - chip.value("npu_node_s")) == (
        pytest.approx(80 / 64, rel=0.01))


def test_a_graph_is_priced_where_its_nodes_run() -> None:
    made, chip = graph(conv(size=64)), load("imx95")
    (one,) = made
    on_npu, on_cpu, folded = (node_times(made, {one: place}, chip)[one] for place in ("npu", "cpu", "folded"))
    assert on_npu == npu_time(one, chip)
    assert on_cpu == cpu_time(one, chip)
    assert folded.seconds.high == 0
    assert node_times(made, {one: "npu"}, load("imx93"))[one].seconds.high == 0


def test_corrections_hold_for_their_kind_and_side() -> None:
    one, other = node(conv(size=64)), node(value(ops.Add(), (1, 99), (1, 99)))
    chip = load("imx95")
    better = msgspec.structs.replace(chip, corrections={"cpu": 2.0, "cpu CONV_2D": 3.0, "npu": 0.5},
                                     corrected_by="corrected by hand")
    assert cpu_seconds(one, better).likely == pytest.approx(3 * cpu_seconds(one, chip).likely)
    assert cpu_seconds(other, better).high == pytest.approx(2 * cpu_seconds(other, chip).high)
    assert npu_seconds(one, better).low == pytest.approx(npu_seconds(one, chip).low / 2)
    assert cpu_time(one, better).source.endswith("corrected by hand")
    assert npu_time(one, better).source.endswith("corrected by hand")
