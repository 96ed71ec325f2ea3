"""Chips with closed compilers: a verdict for every operator, how sure it is, and a time that is called an estimate."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import pytest
from drawn import broken, conv, depthwise, graph, value

from vitrify import ops, tflite
from vitrify.core.errors import InternalError
from vitrify.ir import DType, Graph, Quantization, Tensor
from vitrify.ir.operator import REGISTRY
from vitrify.targets import base, load, names
from vitrify.targets.cost import node_macs
from vitrify.targets.estimating import can_estimate, filled_macs, npu_seconds
from vitrify.targets.rules import estimated, known, place
from vitrify.targets.rules.tables import NOTHING_PUBLIC, Table
from vitrify.tflite import schema

CHIPS = [name for name in names() if load(name).family != "ethos_u"]
OPERATORS = sorted({*schema.operators(), "CUSTOM"} - {""})
ZOO = Path(__file__).parents[2] / ".cache" / "zoo" / "int8"


def test_these_are_the_chips() -> None:
    assert CHIPS == ["ara240", "imx8mp", "imx943", "imx95", "imx952", "imxrt700", "mcxn54x", "mcxn947"]
    assert len(OPERATORS) > 200
    assert set(REGISTRY) <= set(OPERATORS)


@pytest.mark.parametrize("chip", CHIPS)
def test_no_operator_is_without_a_verdict(chip: str) -> None:
    target = load(chip)
    for operator in OPERATORS:
        found = known(operator, target)
        assert found.taken in ("yes", "no", "unknown")
        assert found.source, operator
        assert (found.taken == "unknown") == (found.confidence == "unknown"), operator


@pytest.mark.parametrize("family", ["neutron", "vip8000", "ara"])
def test_tables_speak_of_operators_that_there_are(family: str) -> None:
    table = Table(Path(base.__file__).parent / family / "operators.toml")
    for core in table.cores():
        assert table.operators(core) <= set(OPERATORS), core
        assert table.row("NEVER", core).source == NOTHING_PUBLIC
    cores = {load(chip).core for chip in CHIPS if load(chip).family == family}
    assert cores == set(table.cores())


def test_a_table_with_two_rows_for_one_operator_is_refused(tmp_path: Path) -> None:
    row = '[[c]]\noperators = "ADD"\ntaken = "yes"\nconfidence = "documented"\nsource = "a"\n'
    file = tmp_path / "operators.toml"
    file.write_text(f'[sources]\na = "somebody"\n{row}{row}')
    with pytest.raises(InternalError, match="two rows for ADD"):
        Table(file)


@pytest.mark.parametrize("operator", ["COS", "GELU", "TOPK_V2"])
def test_what_nobody_tells_is_called_unknown(operator: str) -> None:
    made = Graph("g")
    x = Tensor("x", DType.INT8, (1, 8), quantization=Quantization.per_tensor(0.1, 0))
    made.inputs.append(x)
    y = Tensor("y", DType.INT8, (1, 8), quantization=Quantization.per_tensor(0.1, 0))
    made.add(ops.Opaque(builtin=operator, table_name="", table=None), [x], [y])
    made.set_outputs([y])
    (verdict,) = place(made, load("imx95")).verdicts
    assert (verdict.placement, verdict.confidence) == ("cpu", "unknown")
    assert verdict.rules[0].code == "neutron.unknown-operator"
    assert verdict.rules[0].headline == "no public source says whether the NPU takes it"
    assert verdict.rules[0].values == {"operator": operator}
    assert place(made, load("imx95")).coverage.unsure_nodes == 1.0


def chain() -> Graph:
    """A convolution, which is documented, a mean, which is inferred on Neutron-S, and a sine, of which nothing is told.
    """
    made = graph(conv(channels=16, outputs=16))
    x = made.outputs[0]
    pooled = Tensor("pooled", DType.INT8, (1, 7, 7, 16), quantization=x.quantization)
    made.add(ops.AveragePool2D(padding=ops.Padding.VALID, stride_h=1, stride_w=1, filter_height=2, filter_width=2),
             [x], [pooled])
    last = Tensor("last", DType.INT8, (1, 7, 7, 16), quantization=x.quantization)
    made.add(ops.Sin(), [pooled], [last])
    made.set_outputs([last])
    return made


def test_shares_that_are_not_sure() -> None:
    found = place(chain(), load("imx95"))
    assert [(v.placement, v.confidence) for v in found.verdicts] == [
        ("npu", "documented"), ("npu", "inferred"), ("cpu", "unknown")]
    share = found.coverage
    assert share.nodes == pytest.approx(2 / 3)
    assert share.unsure_nodes == pytest.approx(2 / 3)
    assert (share.macs, share.unsure_macs) == (1.0, 0.0)
    assert share.time is not None
    assert share.unsure_time is not None
    assert 0 < share.time < 1
    assert 1 - share.time < share.unsure_time < 1
    sure = place(chain(), load("imxrt700")).coverage
    assert sure.unsure_nodes == pytest.approx(1 / 3)


def test_a_vela_target_has_no_estimate_of_its_own() -> None:
    made, chip = chain(), load("imx93")
    found = place(made, chip)
    assert not can_estimate(chip)
    assert estimated(made, chip, found) is None
    assert found.coverage.time is None


@pytest.mark.parametrize("chip", CHIPS)
def test_an_estimate_has_an_interval_and_says_what_it_is(chip: str) -> None:
    made, target = chain(), load(chip)
    found = place(made, target)
    times = estimated(made, target, found)
    assert times is not None
    assert 0 < times.low_ms < times.latency_ms < times.high_ms
    assert times.latency_ms == pytest.approx(times.npu_ms + times.cpu_ms + times.driver_ms)
    assert "not its compiler" in times.source
    assert times.assumptions
    assert sum(part.time_ms for part in found.partitions) == pytest.approx(times.npu_ms + times.cpu_ms)


def test_products_fill_the_array() -> None:
    chip = load("imx95")              # 64 pipelines of 16
    for channels, outputs, filled in ((16, 64, 1), (8, 64, 2), (16, 65, 128 / 65), (3, 16, 16 / 3 * 4)):
        (node,) = graph(conv(channels=channels, outputs=outputs))
        assert filled_macs(node, chip) == pytest.approx(node_macs(node) * filled), (channels, outputs)
    (node,) = graph(depthwise())
    assert filled_macs(node, chip) == pytest.approx(node_macs(node) * 16 * 4)
    (node,) = graph(value(ops.Add(), (1, 8), (1, 8)))
    assert filled_macs(node, chip) == 0


def test_more_work_takes_longer() -> None:
    chip = load("imx95")
    times = [npu_seconds(next(iter(graph(conv(size=size, channels=64, outputs=64, kernel=(3, 3))))), chip)
             for size in (16, 32, 64)]
    for bound in ("low", "likely", "high"):
        found = [getattr(time, bound) for time in times]
        assert found == sorted(found)
        assert len(set(found)) == 3


class Measured(NamedTuple):
    """A published latency of an architecture that the zoo has."""

    name: str
    chip: str
    model: str
    ms: tuple[float, ...]


FITTED = [
    Measured("yolov8n", "imx95", "yolov8n", (32.08, 42.65, 43.4, 45.5)),
    Measured("MobileNetV2 (tf.keras)", "imx95", "mobilenet_v2", (3.17,)),
    Measured("yolov5n", "imx95", "yolov5n", (13.7,)),
    Measured("yolo11n-seg", "imx95", "yolo11n_seg", (68.06,)),
    Measured("yolov8n", "imx8mp", "yolov8n", (60.8, 74.99)),
    Measured("MobileNet V2", "imx8mp", "mobilenet_v2", (6.96,)),
    Measured("MNasNet", "imx8mp", "mnasnet", (12.95,)),
    Measured("EfficientNet-lite", "imx8mp", "efficientnet_lite0", (7.32,)),
    Measured("FaceNet512", "imx8mp", "facenet", (10.0,)),
    Measured("Keyword spotting - DS CNN", "mcxn947", "ds_cnn", (3.329,)),
]


@pytest.mark.parametrize("one", FITTED, ids=[f"{one.chip}: {one.name}" for one in FITTED])
def test_only_half_of_the_models_is_fitted(one: Measured) -> None:
    assert int(hashlib.sha256(one.name.encode()).hexdigest()[:8], 16) % 2 == 0


BESIDE = {
    ("imx95", "MobileNetV2 (tf.keras)"): "1.9 times; other rows of this chip are slower at depthwise layers",
    ("imx95", "yolov5n"): "2.5 times a rate of a pipeline with one request",
    ("imx8mp", "EfficientNet-lite"): "2.2 times; most rows of this chip are slower at depthwise convolutions",
}
"""Fitted measurements outside of their interval: each is known by name, and stays here only as long as it is one."""


@pytest.mark.parametrize("one", FITTED, ids=[f"{one.chip}: {one.name}" for one in FITTED])
def test_fitted_measurements_lie_in_the_interval(one: Measured) -> None:
    file = ZOO / f"{one.model}.int8.tflite"
    if not file.exists():
        pytest.skip("the zoo's files are not here (make zoo-int8)")
    made, chip = tflite.read(file).main, load(one.chip)
    times = estimated(made, chip, place(made, chip))
    assert times is not None
    assert all(times.low_ms <= ms <= times.high_ms for ms in one.ms) == ((one.chip, one.name) not in BESIDE), str(times)
    middle = math.exp(sum(map(math.log, one.ms)) / len(one.ms))
    assert 1 / 2 < times.latency_ms / middle < (2.6 if (one.chip, one.name) in BESIDE else 2)


def test_facts_of_unpublished_chips_are_called_assumed() -> None:
    for chip in ("imx943", "imx952"):
        assert {load(chip).fact(name).basis for name in ("clock_hz", "macs_per_cycle")} == {"assumed"}
    assert load("imx95").fact("macs_per_cycle").basis == "documented"
    assert load("imxrt700").fact("dot_length").value == 8


def test_the_limit_of_the_old_flow_is_no_limit_of_the_new() -> None:
    draw = conv(batch=2)
    assert broken(draw, load("mcxn947")) == ["batch"]
    assert broken(draw, load("imxrt700")) == []
