"""The real compiler on real and made models: what it places where, what it refuses, and how it dies."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from vela_networks import Network, neck

from vitrify import ops
from vitrify.backends.vela import Compiled, check_model, compile_model, compiling, npu_graphs
from vitrify.backends.vela.settings import arguments
from vitrify.core.errors import ModelError, TargetError, UsageError, VitrifyError
from vitrify.core.findings import Severity
from vitrify.ir import DType, Graph
from vitrify.ops import Activation
from vitrify.targets import load

MLTK = {      # file -> (NPU, folded, CPU nodes)
    "anomaly_detection/anomaly_detection": (11, 4, 2),
    "fingerprint_signature_generator/fingerprint_signature_generator": (5, 0, 0),
    "image_classification/image_classification": (15, 1, 0),
    "keyword_spotting/keyword_spotting": (12, 1, 2),
    "keyword_spotting_alexa/keyword_spotting_alexa": (55, 1, 0),
    "keyword_spotting_mobilenetv2/keyword_spotting_mobilenetv2": (67, 4, 0),
    "keyword_spotting_on_off_v3/keyword_spotting_on_off_v3": (106, 1, 0),
    "keyword_spotting_pacman_v3/keyword_spotting_pacman_v3": (89, 1, 0),
    "rock_paper_scissors/rock_paper_scissors": (9, 1, 2),
    "tflite_micro_magic_wand/tflite_micro_magic_wand": (7, 1, 2),
    "tflite_micro_speech/tflite_micro_speech": (3, 1, 0),
    "visual_wake_words/visual_wake_words": (30, 1, 2),
}
ModelFile = Callable[[str], Path]


@pytest.fixture(scope="module")
def keywords(model_file: ModelFile) -> Path:
    return model_file("mltk_int8/keyword_spotting/keyword_spotting.tflite")


def codes(error: VitrifyError) -> list[str]:
    return [finding.code for finding in error.findings]


@pytest.mark.models
@pytest.mark.parametrize("name", MLTK)
def test_real_models_compile_and_every_node_has_a_verdict(name: str, model_file: ModelFile, tmp_path: Path) -> None:
    output = tmp_path / "compiled.tflite"
    got = compile_model(model_file(f"mltk_int8/{name}.tflite"), "imx93", output)
    places = got.placement
    assert (places.count("npu"), places.count("folded"), places.count("cpu")) == MLTK[name]
    assert len(npu_graphs(output)) == places.npu_partitions == 1
    assert got.estimate.npu_cycles == sum(row.cycles for row in got.operators) > 0
    assert got.estimate.low_ms < got.estimate.latency_ms < got.estimate.high_ms
    assert got.memory.flash_bytes == output.stat().st_size
    assert got.memory.sram_bytes <= got.memory.sram_limit_bytes
    assert npu_graphs(output)[0].arena_bytes <= got.memory.arena_bytes <= got.memory.dram_bytes
    assert all(verdict.rules for verdict in places.verdicts if verdict.placement == "cpu")
    assert not any(verdict.rules for verdict in places.verdicts if verdict.placement != "cpu")


@pytest.mark.models
def test_printed_reasons_are_dropped_where_the_compiler_coped(model_file: ModelFile) -> None:
    got = check_model(model_file("mltk_int8/anomaly_detection/anomaly_detection.tflite"), "imx93")
    warned = {"SHAPE", "STRIDED_SLICE", "PACK"}
    assert all(f"operator: {kind}" in got.log for kind in warned)
    assert {v.placement for v in got.placement.verdicts if v.operator in warned} == {"folded"}
    assert {f.code for f in got.findings} == {"ethos-u.float-border"}


@pytest.mark.models
def test_the_result_is_whole_and_says_how_it_was_made(keywords: Path, tmp_path: Path) -> None:
    before = keywords.read_bytes()
    output = tmp_path / "new" / "out.tflite"
    got = compile_model(keywords, load("imx93"), output)
    assert os.listdir(output.parent) == ["out.tflite"]
    assert keywords.read_bytes() == before
    assert (got.output, got.target, got.version[:2], got.compiler) == (str(output), "imx93", "5.", "Vela")
    assert {"--accelerator-config", "--config", "--system-config", "--memory-mode"} <= set(got.options)
    assert "GB/s (assumed)" in got.estimate.source
    assert any(text.startswith("dram_bytes_per_s = 7.36e+09 (assumed") for text in got.estimate.assumptions)
    assert "measure" not in str(got.estimate)
    again = msgspec.json.decode(msgspec.json.encode(got), type=Compiled)
    assert again == got


@pytest.mark.models
@pytest.mark.parametrize("name", ["rock_paper_scissors", "keyword_spotting_alexa"])
def test_a_float_model_is_refused_with_the_cause_first(name: str, model_file: ModelFile, tmp_path: Path) -> None:
    path = model_file(f"mltk_int8/{name}/{name}.float32.tflite")
    with pytest.raises(TargetError, match=r"0 of \d+; \d+ of them compute in float") as caught:
        compile_model(path, "imx93", tmp_path / "out.tflite")
    assert codes(caught.value) == ["ethos-u.float-model", "ethos-u.float-tensor"]
    assert "vitrify quantize" in caught.value.findings[0].help
    assert "_act'" not in str(caught.value)      # the compiler's names for parts of a node stay inside
    assert not (tmp_path / "out.tflite").exists()
    checked = check_model(path, "imx93")
    assert checked.placement.coverage.nodes == 0
    assert checked.findings[0].severity is Severity.ERROR


@pytest.mark.models
def test_a_compiled_model_is_refused(keywords: Path, tmp_path: Path) -> None:
    compile_model(keywords, "imx93", tmp_path / "once.tflite")
    with pytest.raises(ModelError, match="it holds 1 ethos-u operator\n") as caught:
        compile_model(tmp_path / "once.tflite", "imx93", tmp_path / "twice.tflite")
    assert codes(caught.value) == ["ethos-u.already-compiled"]


def island(path: Path, names: tuple[str, str, str] = ("before", "island", "after")) -> Path:
    net = Network(1, 16, 16, 8)
    x = net.gather(net.conv(net.x, 16, 3, name=names[0]), names[1])
    return net.save(path, net.conv(x, 8, 3, name=names[2]))


NAMES = {
    "plain": ("before", "island", "after"),
    "commas and quotes": ('a,b,"c"', 'd "e", f', "g,h"),
    "markup": ("<x> & y]]>", "]]></table>", "'z'"),
    "spaces and newline": (" a ", "b\nc", "d\te"),
    "not ascii": ("größe", "层", "🙂"),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_cpu_node_between_cuts_the_model_in_three(names: tuple[str, str, str], tmp_path: Path) -> None:
    got = compile_model(island(tmp_path / "m.tflite", names), "imx93", tmp_path / "out.tflite")
    assert [(v.node, v.placement) for v in got.placement.verdicts] == [
        (names[0], "npu"), (names[1], "cpu"), (names[2], "npu")]
    assert [(p.placement, p.nodes, p.bytes_in, p.bytes_out) for p in got.placement.partitions] == [
        ("npu", names[:1], 2048, 4096), ("cpu", names[1:2], 4096, 4096), ("npu", names[2:], 4096, 2048)]
    assert [row.macs for row in got.operators] == [16 * 16 * 9 * 8 * 16, 0, 16 * 16 * 9 * 16 * 8]
    assert all(row.cycles > 0 for row in got.operators if row.placement == "npu")
    assert got.placement.coverage.macs == 1 > got.placement.coverage.nodes
    assert got.placement.verdicts[1].rules[0].code == "ethos-u.unsupported-operator"
    first, second = got.findings
    assert (first.code, first.severity) == ("ethos-u.unsupported-operator", Severity.WARNING)
    assert first.headline == f"GATHER '{names[1]}' stays on the CPU: the NPU has no GATHER"
    assert (second.code, second.severity) == ("ethos-u.many-calls", Severity.INFO)
    assert len(npu_graphs(tmp_path / "out.tflite")) == 2
    assert got.estimate.driver_ms == pytest.approx(2e3 * load("imx93").value("driver_call_s"))


def test_equal_reasons_make_one_finding(tmp_path: Path) -> None:
    net = Network(1, 16, 16, 8)
    x = net.conv(net.x, 16, 3)
    parts = [net.conv(net.gather(x, f"island{i}"), 8, 3) for i in range(3)]
    path = net.save(tmp_path / "m.tflite", net.add(ops.Concatenation(axis=3), parts, (1, 16, 16, 24)))
    got = compile_model(path, "imx93", tmp_path / "out.tflite")
    warned = [f for f in got.findings if f.severity is Severity.WARNING]
    assert [f.headline for f in warned] == ["3 GATHER nodes stay on the CPU: the NPU has no GATHER"]
    assert warned[0].where == "nodes 'island0', 'island1', 'island2'"
    assert got.placement.npu_partitions == len(npu_graphs(tmp_path / "out.tflite"))
    # Its NPU operators write parts of one tensor, so the file makes no graph; it is told apart all the same.
    with pytest.raises(ModelError, match="compiled already: it holds 4 ethos-u operators"):
        compile_model(tmp_path / "out.tflite", "imx93", tmp_path / "again.tflite")


def tail(net: Network) -> tuple[Graph, str]:
    x = net.conv(net.x, 200, 3)
    x = net.add(ops.ArgMax(output_type=DType.INT32.value), [x, net.ints(3)], x.shape[:3], "which", dtype=DType.INT32)
    net.graph.set_outputs([x])
    return net.graph, "it chooses among 200 channels, the limit is 127"


def custom(net: Network) -> tuple[Graph, str]:
    net.graph.set_outputs([net.add(ops.Custom(custom_code="MyOp"), [net.conv(net.x, 8)], net.x.shape, "mine")])
    return net.graph, "MyOp 'mine' stays on the CPU: the NPU has no MyOp"


def free_height(net: Network) -> tuple[Graph, str]:
    x = net.conv(net.x, 8)
    net.x.shape_signature = (1, -1, 16, 8)
    net.graph.set_outputs([net.conv(x, 8)])
    return net.graph, "dimension 1 of tensor 'input' is free; only the batch may be"


REASONS = {
    "tail": (tail, "ethos-u.arg-max-depth"),
    "custom operator": (custom, "ethos-u.unsupported-operator"),
    "free height": (free_height, "ethos-u.dynamic-shape"),
}


@pytest.mark.parametrize(("build", "code"), REASONS.values(), ids=REASONS)
def test_reasons_carry_the_value_and_the_users_name(build: Callable[[Network], tuple[Graph, str]], code: str,
                                                    tmp_path: Path) -> None:
    net = Network(1, 16, 16, 8)
    graph, text = build(net)
    got = check_model(net.save(tmp_path / "m.tflite", *graph.outputs), "imx93")
    found = [finding for finding in got.findings if finding.code == code]
    assert len(found) == 1
    assert re.search(re.escape(text), found[0].headline)
    assert found[0].severity is Severity.INFO      # at the model's end: it cuts nothing


def test_the_sum_that_comes_out_wrong_is_flagged(tmp_path: Path) -> None:
    for axes, wanted in (((1, 2), ["ethos-u.sum-wrong"]), ((1,), [])):
        net = Network(1, 8, 8, 16)
        total = net.add(ops.Sum(keep_dims=True), [net.x, net.ints(*axes)],
                        tuple(1 if i in axes else e for i, e in enumerate(net.x.shape)), "total")
        got = check_model(net.save(tmp_path / "m.tflite", total), "imx93")
        assert [finding.code for finding in got.findings] == wanted


def test_an_operator_that_stops_the_compiler_is_named(tmp_path: Path) -> None:
    net = Network(1, 8, 8, 16, dtype=DType.INT16)
    path = net.save(tmp_path / "m.tflite", net.add(ops.HardSwish(), [net.x], net.x.shape, "swish", dtype=DType.INT16))
    with pytest.raises(TargetError, match=r"Vela refuses HARD_SWISH 'swish'.*found IFM type=INT16") as caught:
        check_model(path, "imx93")
    assert codes(caught.value) == ["vela.invalid-operator"]


def test_of_a_float_model_that_stops_the_compiler_the_cause_comes_first(tmp_path: Path) -> None:
    net = Network(1, 8, 8, 16, dtype=DType.FLOAT32)
    path = net.save(tmp_path / "m.tflite", net.add(ops.HardSwish(), [net.x], net.x.shape, "swish", dtype=DType.FLOAT32))
    with pytest.raises(TargetError, match="1 of them compute in float") as caught:
        check_model(path, "imx93")
    assert codes(caught.value) == ["ethos-u.float-model", "vela.invalid-operator"]


@pytest.mark.models
def test_a_model_of_several_graphs_keeps_its_total(model_file: ModelFile) -> None:
    got = check_model(model_file("micro_wakeword_int8/alexa.tflite"), "imx93")
    assert (got.placement.count("npu"), got.placement.count("folded"), got.placement.count("cpu")) == (24, 2, 19)
    assert got.estimate.npu_cycles == 27721
    on_npu = [part.time_ms for part in got.placement.partitions if part.placement == "npu"]
    assert sum(on_npu) == pytest.approx(got.estimate.npu_ms)
    assert "vela.cycles-not-split" in [finding.code for finding in got.findings]
    unsaid = {v.operator for v in got.placement.verdicts if any(r.code == "ethos-u.no-reason" for r in v.rules)}
    assert unsaid == set()


GARBAGE = {
    "empty": (b"", ModelError),
    "short": (b"TFL3", ModelError),
    "text": (b"hello, this is no model at all", ModelError),
    "only the magic": (b"\x10\0\0\0TFL3", ModelError),
    "magic and noise": (b"\x10\0\0\0TFL3" + bytes(range(256)) * 4, ModelError),
}


@pytest.mark.parametrize(("data", "error"), GARBAGE.values(), ids=GARBAGE)
def test_no_model_is_refused_before_the_compiler_starts(data: bytes, error: type[VitrifyError], tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    with pytest.raises(error, match=r"m.tflite"):
        compile_model(path, "imx93", tmp_path / "out.tflite")


@pytest.mark.parametrize("path", [Path("nowhere.tflite"), Path("/")], ids=["missing", "folder"])
def test_a_file_that_cannot_be_read_is_the_calls_fault(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        compile_model(path, "imx93", tmp_path / "out.tflite")


def run_compiler(path: Path, folder: Path) -> None:
    """Run the compiler itself on a file that the reader would have refused."""
    chip = load("imx93")
    with compiling._working_folder(chip, path) as work:
        compiling._run(path, Graph(), chip, arguments(chip), work, 60, 8 << 30)


@pytest.mark.models
@pytest.mark.parametrize("size", [100, 20_000, 50_000])
def test_the_compilers_death_is_a_finding(size: int, keywords: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.tflite"
    path.write_bytes(keywords.read_bytes()[:size])
    with pytest.raises(TargetError, match=r"Vela on cut.tflite died of SIGSEGV") as caught:
        run_compiler(path, tmp_path)
    assert codes(caught.value) == ["process.died"]
    assert caught.value.findings[0].where == str(path)


def test_an_error_of_the_compilers_own_is_told_without_its_traceback(tmp_path: Path) -> None:
    path = tmp_path / "noise.tflite"
    path.write_bytes(b"no model")
    with pytest.raises(TargetError, match=r"Vela cannot compile noise.tflite: ") as caught:
        run_compiler(path, tmp_path)
    assert "Traceback" not in str(caught.value)


def test_a_model_that_kills_the_search_for_speed_is_compiled_for_memory(tmp_path: Path) -> None:
    path = neck(tmp_path / "m.tflite")
    got = compile_model(path, "imx93", tmp_path / "out.tflite")
    assert [finding.code for finding in got.findings] == ["vela.second-try"]
    assert got.findings[0].severity is Severity.WARNING
    assert "died of SIGSEGV when it optimized for speed" in got.findings[0].headline
    assert got.options[got.options.index("--optimise") + 1] == "Size"
    assert got.placement.coverage.nodes == 1
    with pytest.raises(TargetError, match=r"died of SIGSEGV\n"):      # asked for, so not replaced
        compile_model(path, "imx93", tmp_path / "fast.tflite", optimise="Performance")


@pytest.mark.models
def test_the_time_limit_is_a_finding(model_file: ModelFile, tmp_path: Path) -> None:
    path = model_file("mltk_int8/keyword_spotting_on_off_v3/keyword_spotting_on_off_v3.tflite")
    with pytest.raises(TargetError, match=r"took longer than 0.1 s") as caught:
        compile_model(path, "imx93", tmp_path / "out.tflite", seconds=0.1)
    assert codes(caught.value) == ["process.timeout"]
    assert os.listdir(tmp_path) == []


@pytest.mark.models
@pytest.mark.parametrize("place", ["", "file/out.tflite"], ids=["a folder", "below a file"])
def test_an_output_that_cannot_be_written_is_the_calls_fault(place: str, keywords: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot write"):
        compile_model(keywords, "imx93", tmp_path / place)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.models
def test_no_room_to_work_is_the_calls_fault(keywords: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="cannot work in the folder for temporary files"):
        compile_model(keywords, "imx93", tmp_path / "out.tflite")


def test_operators_can_be_kept_off_the_npu(tmp_path: Path) -> None:
    net = Network(1, 16, 16, 8)
    x = net.depthwise(net.conv(net.x, 8, 3, activation=Activation.NONE))
    path = net.save(tmp_path / "m.tflite", net.conv(x, 8, 3))
    got = compile_model(path, "imx93", tmp_path / "out.tflite", ignore=["DEPTHWISE_CONV_2D"])
    assert [v.placement for v in got.placement.verdicts] == ["npu", "cpu", "npu"]
    assert [rule.code for rule in got.placement.verdicts[1].rules] == ["ethos-u.kept-on-cpu"]
    assert got.placement.coverage.macs < 1


def test_an_unknown_target_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown target 'imx94'.*\n.*imx93"):
        compile_model(tmp_path / "m.tflite", "imx94", tmp_path / "out.tflite")
