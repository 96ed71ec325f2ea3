"""What the compiler is given and what it leaves: options, printed reasons, database, summary."""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from vitrify.backends.vela.database import Perf, number, read_database, read_summary
from vitrify.backends.vela.findings import refused
from vitrify.backends.vela.messages import Message, read_messages, reason
from vitrify.backends.vela.settings import arguments, configuration
from vitrify.ir import Graph
from vitrify.targets import load

IMX93 = load("imx93")


def test_the_configuration_describes_the_chip() -> None:
    parser = configparser.ConfigParser()
    parser.read_string(configuration(IMX93))
    system, memory = parser["System_Config.IMX93"], parser["Memory_Mode.IMX93"]
    assert float(system["core_clock"]) == 1e9
    assert float(system["sram_clock_scale"]) == 1
    assert float(system["dram_clock_scale"]) == pytest.approx(0.46)
    assert (system["axi0_port"], system["axi1_port"]) == ("Sram", "Dram")
    assert {name: system[f"dram_{name}"] for name in ("burst_length", "read_latency", "write_latency")} == {
        "burst_length": "128", "read_latency": "500", "write_latency": "250"}
    assert (memory["const_mem_area"], memory["arena_mem_area"], memory["cache_mem_area"]) == ("Axi1", "Axi1", "Axi0")
    assert memory["arena_cache_size"] == str(384 * 1024)


def test_bandwidth_can_be_asked_for() -> None:
    parser = configparser.ConfigParser()
    parser.read_string(configuration(IMX93, far_bytes_per_s=3.75e9))
    assert float(parser["System_Config.IMX93"]["dram_clock_scale"]) == pytest.approx(0.234375)


def test_nothing_is_left_to_the_compilers_defaults() -> None:
    got = arguments(IMX93, optimise="Size", ignore=("ADD", "MUL"))
    pairs = dict(pairwise(got))
    assert pairs["--accelerator-config"] == "ethos-u65-256"
    assert pairs["--system-config"] == pairs["--memory-mode"] == "IMX93"
    assert pairs["--optimise"] == "Size"
    assert pairs["--ignore-ops"] == "ADD,MUL"
    assert "--show-cpu-operations" not in got


LOG = """Tensor 'in' has a dynamic signature in axis 0. Setting shape axis 0 to 1 and proceeding.

Warning (supported operators) operator: GATHER, ofm: 'a 'b', c'
Reason: Unsupported opType

Warning (supported operators) operator: QUANTIZE, ofm: 'two
lines'
Reason: Operation has tensor with unsupported DataType Float32 (in (x))
Feature-map dataTypes must be one of {"INT8"}
Warning (supported operators) operator: MEAN, ofm: 'm'
Reason: Batch > 1
 - Batch
   must be 1.

Network summary for model
CPU operators = 2 (15.4%)"""


def test_printed_reasons_are_read_block_by_block() -> None:
    assert read_messages(LOG) == [
        Message("GATHER", "a 'b', c", "Unsupported opType", ""),
        Message("QUANTIZE", "two\nlines", "Operation has tensor with unsupported DataType Float32 (in (x))",
                'Feature-map dataTypes must be one of {"INT8"}'),
        Message("MEAN", "m", "Batch > 1", "- Batch must be 1.")]


def test_a_log_cut_off_is_read_as_far_as_it_goes() -> None:
    assert [m.operator for m in read_messages(LOG[:LOG.index(" - Batch")])] == ["GATHER", "QUANTIZE", "MEAN"]
    assert [m.operator for m in read_messages(LOG[:LOG.index("Reason: Batch")])] == ["GATHER", "QUANTIZE"]
    assert read_messages("") == []


TEXTS = {      # what the compiler prints -> code, part of the headline
    "Unsupported opType": ("ethos-u.unsupported-operator", "no such operator"),
    "Operation has tensor with unsupported DataType Float32 (t (1))": ("ethos-u.float-tensor", "'t (1)' is float"),
    "Operation has tensor with unsupported DataType Bool (t)": ("ethos-u.tensor-type", "'t' is Bool"),
    "Dynamic non-batch dimension at axis 2 on tensor a/b c": ("ethos-u.dynamic-shape", "dimension 2 of tensor 'a/b c'"),
    "Operation has shapeless tensor": ("ethos-u.unknown-shape", "no constant shape"),
    "Unsupported depth-reduction.  IFM: 1, 768, 7, 7": ("ethos-u.depth-reduction", "[1, 768, 7, 7]"),
    "Operation does not support per-axis quantization": ("ethos-u.per-axis-quantization", "for convolutions only"),
    "Operation has mismatching quantization parameters.": ("ethos-u.unequal-scales", "scale or zero point"),
    "Unsupported kernel stride: 4, 5": ("ethos-u.stride", "stride 4, 5 is outside"),
    "stride out of range: (4,5)": ("ethos-u.stride", "stride 4,5 is outside"),
    "Transpose with permutation 2, 0, 1 has shape out of range: 64, 4": ("ethos-u.transpose", "(2, 0, 1) of [64, 4]"),
    "H scale-factor must be an integer power of two. scale-factor: (3/1)": ("ethos-u.resize-factor", "2, 4, 8"),
    "Batch > 1: 2, 15, 15, 4": ("ethos-u.batch", "its batch is 2, the NPU takes 1"),
    "Tensor 'a' has batch size: 4": ("ethos-u.batch", "its batch is 4, the NPU takes 1"),
    "Something that nobody has seen": ("ethos-u.constraint", "something that nobody has seen"),
    "IFM is strange": ("ethos-u.constraint", "IFM is strange"),
    "": ("ethos-u.constraint", "no reason was printed"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_reasons_have_stable_codes_and_keep_the_value(text: str) -> None:
    code, headline = TEXTS[text]
    got = reason(Message("OP", "out", text, ""))
    assert got.code == code
    assert headline in got.headline
    assert "{" not in got.headline


def test_the_compilers_name_for_part_of_a_node_is_turned_back() -> None:
    message = Message("RELU", "x", "Operation has tensor with unsupported DataType Float32 (x_act)", "")
    assert "'x'" in reason(message).headline
    assert "'x_act'" in reason(message, {"x_act"}).headline      # the user's own name


def table(name: str, *rows: str) -> str:
    body = "\n".join(rows)
    return f'<table name="{name}">\n<![CDATA[\n{body}\n]]>\n</table>\n'


DATABASE = "<?xml version='1.0'?>\n<debug source=\"m\">\n" + table(
    "source", '"id","operator","kernel_w","ext_key"', '1,"Conv2D",1,0', '2,"Gather",1,1', '3,"Reshape",1,2',
    '4,"Relu",1,3') + table(
    "optimised", '"id","source_id","operator"', '10,1,"Conv2D"', '11,2,"Passthrough"', '12,4,"Relu"', '13,,"Copy"',
) + table("queue", '"offset","cmdstream_id","optimised_id","scheduled_id"', "8,1,10,100", "64,2,13,103") + table(
    "group", '"id","group_id"', "102,100") + table(
    "perf", '"id","source_id","optimised_id","operator","name","staging_usage","op_cycles","npu_cycles","mac_count",'
    '"Sram_ac","Dram_ac"', '100,1,10,"Conv2D","a "b", c",0,500,400,900,30,450',
    '101,2,11,"Passthrough","g",0,0,0,0,0,0',
    '102,4,12,"Relu","r, s",0,0,0,0,0,0', '103,0,13,"Copy","made",0,7,7,0,0,0') + table(
    "perf_debug", '"id","DramFeatureMap_read","DramFeatureMap_write","DramWeights_read","Sram_read"', "100,10,20,3,99",
) + "</debug>\n"


def test_the_database_joins_by_id_whatever_the_names_hold() -> None:
    got = read_database(DATABASE)
    assert got.keys == {"1": 0, "2": 1, "3": 2, "4": 3}
    assert got.streams == {"1": 1, "4": 1}       # fused: it runs where the one before it runs
    assert got.perf["1"] == [Perf("100", "1", "Conv2D", 500, 400, 30, 450, 900, 33, 99, 'a b", c"')]
    assert got.perf["2"][0].on_cpu
    assert [row.cycles for row in got.perf[""]] == [7]      # made by the compiler itself


@pytest.mark.parametrize("text", ["", "<debug>", DATABASE[:200], "<table name=\"perf\">\n<![CDATA[\n\n]]>\n</table>\n"],
                         ids=["empty", "no tables", "cut off", "empty table"])
def test_a_database_without_tables_is_empty(text: str) -> None:
    got = read_database(text)
    assert (got.perf, got.streams) == ({}, {})


@dataclass
class Bound:
    cycles: int
    npu: int
    dram: int
    slower: float
    wanted: float


BOUNDS = {
    "bound by memory": Bound(100, 40, 100, 2, 200),
    "bound by memory, then by computing": Bound(100, 90, 100, 0.5, 90),
    "bound by computing": Bound(100, 100, 40, 2, 100),
    "computing until memory takes over": Bound(100, 100, 80, 2, 160),
    "waiting besides": Bound(130, 100, 80, 1, 130),
}


@pytest.mark.parametrize("case", BOUNDS.values(), ids=BOUNDS)
def test_only_what_waits_for_memory_is_stretched(case: Bound) -> None:
    row = Perf("1", "1", "Conv2D", case.cycles, case.npu, 0, case.dram, 0, 0)
    assert row.cycles_with_far(case.slower) == pytest.approx(case.wanted)


def test_cells_and_summary_are_read_with_care() -> None:
    assert [number(text) for text in ("12", "12.7", "", "None")] == [12, 12, 0, 0]
    assert read_summary("a,b\n1,2\n") == {"a": "1", "b": "2"}
    assert read_summary("") == {}


def test_the_target_survives_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(IMX93), type=type(IMX93)) == IMX93


def test_a_model_that_does_not_fit_is_told_by_its_bytes() -> None:
    said = "RuntimeError: Compilation failed: Failed to allocate tensors. Memory used 414080, limit 393216"
    found = refused(Path("m.tflite"), load("ethos-u85-256"), Graph(), 1, said, "")[-1]
    assert (found.code, found.headline) == (
        "vela.memory", "the tensors of m.tflite need 414,080 bytes at once; the target has 393,216 for them")
