"""`vitrify reduce`: small models that fail for one node; what stops it, and what is left then."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
import reduce_models as planted
from onnx import TensorProto, helper, numpy_helper

from vitrify.core.errors import UsageError
from vitrify.pipeline.reducing.judging import Asked
from vitrify.pipeline.reducing.reduce import reduce_file, try_once
from vitrify.results import ReduceResult

ZOO = Path(__file__).parents[2] / ".cache" / "zoo"
DIES = "grep -q Strange {} && kill -SEGV $$; true"


def chain(path: Path, convolutions: int = 4, size: int = 16) -> Path:
    """A row of Conv and Relu."""
    draw = np.random.default_rng(0)
    nodes, weights, name = [], [], "x"
    for number in range(convolutions):
        shape = (8, 3 if number == 0 else 8, 3, 3)
        weights.append(numpy_helper.from_array(draw.normal(size=shape).astype(np.float32) / 6, f"w{number}"))
        nodes.append(helper.make_node("Conv", [name, f"w{number}"], [f"c{number}"], f"conv{number}", pads=[1] * 4))
        name = "y" if number == convolutions - 1 else f"r{number}"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [name], f"relu{number}"))
    graph = helper.make_graph(
        nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, size, size])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A chain with an operator that nobody knows."""
    target = tmp_path / "strange.onnx"
    planted.with_unknown_operator(chain(tmp_path / "chain.onnx"), target)
    return target


def repeated(result: ReduceResult, fresh: Path) -> dict[str, object]:
    """What the written command says in a copy of the folder elsewhere."""
    shutil.copytree(result.output, fresh, ignore=shutil.ignore_patterns(".reduce"))
    words = result.repeat.replace("vitrify", f"{sys.executable} -m vitrify", 1)
    done = subprocess.run(f"{words} --json", shell=True, cwd=fresh, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_an_unknown_operator_is_all_that_is_left(strange: Path, tmp_path: Path) -> None:
    result = reduce_file(strange, tmp_path / "out", Asked(predicate="import"))
    assert result.operators == ["Strange"]
    assert result.confirmed
    assert result.finished
    assert "Strange" in result.reason
    assert result.code == "onnx.unsupported-operator"
    assert repeated(result, tmp_path / "fresh")["code"] == result.code
    assert result.repeat in (tmp_path / "out" / "README.md").read_text()


def test_a_command_that_dies(strange: Path, tmp_path: Path) -> None:
    result = reduce_file(strange, tmp_path / "out", Asked(command=DIES))
    assert result.operators == ["Strange"]
    assert "SIGSEGV" in result.reason


def test_the_same_call_again_knows_all_that_was_tried(strange: Path, tmp_path: Path) -> None:
    first = reduce_file(strange, tmp_path / "out", Asked(command=DIES))
    again = reduce_file(strange, tmp_path / "out", Asked(command=DIES))
    assert again.nodes_after == first.nodes_after
    assert again.tries == 0
    assert again.reused > 0


def test_a_model_that_does_not_fail(tmp_path: Path) -> None:
    result = reduce_file(chain(tmp_path / "chain.onnx"), tmp_path / "out", Asked(predicate="import"))
    assert not result.ok
    assert result.findings[-1].code == "reduce.nothing"
    assert not (tmp_path / "out").exists()


def test_a_check_that_fails_now_and_then_is_told(strange: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    flaky = f": {{}}; echo x >> {counter}; test $(( $(wc -l < {counter}) % 2 )) = 0"
    result = reduce_file(strange, tmp_path / "out", Asked(command=flaky))
    assert "reduce.flaky" in {finding.code for finding in result.findings}


@pytest.mark.parametrize("asked", [
    pytest.param(Asked(), id="nothing"),
    pytest.param(Asked(predicate="nonsense"), id="unknown predicate"),
    pytest.param(Asked(predicate="sqnr"), id="without its number"),
    pytest.param(Asked(predicate="import", command="false"), id="two at once"),
    pytest.param(Asked(command="no-such-command-here {}"), id="no such command"),
])
def test_refused(asked: Asked, strange: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        reduce_file(strange, tmp_path / "out", asked)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_left_alone(strange: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds files"):
        reduce_file(strange, tmp_path / "out", Asked(predicate="import"))


def started(model: Path, output: Path, slow: str) -> subprocess.Popen[bytes]:
    """A reduction in a process of its own, a few tries on its way."""
    command = [sys.executable, "-m", "vitrify", "reduce", str(model), "--fails", slow, "-o", str(output), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               # a job in the background is started without
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    kept = output / ".reduce" / "verdicts.jsonl"
    until = time.monotonic() + 30
    while time.monotonic() < until and (not kept.exists() or kept.read_bytes().count(b"\n") < 4):
        time.sleep(0.02)
    assert process.poll() is None
    return process


SLOW = "sleep 0.1; grep -q Strange {} && exit 1; true"


def test_killed_it_goes_on(strange: Path, tmp_path: Path) -> None:
    process = started(strange, tmp_path / "out", SLOW)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    result = reduce_file(strange, tmp_path / "out", Asked(command=SLOW))
    assert result.operators == ["Strange"]
    assert result.reused >= 3
    assert result.confirmed


def test_interrupted_it_leaves_the_smallest_so_far(strange: Path, tmp_path: Path) -> None:
    process = started(strange, tmp_path / "out", SLOW)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130, told.decode()
    left = next((tmp_path / "out").glob("model.onnx"))
    assert 0 < len(onnx.load(left).graph.node) < 9
    assert try_once(left, Asked(command="grep -q Strange {} && exit 1; true"), None).ok
    assert "stopped before it was done" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not (ZOO / "yolov8n.onnx").is_file(), reason="the zoo's files are not here")
@pytest.mark.parametrize(("plant", "source", "predicate"), [
    pytest.param(planted.with_unknown_operator, "yolov8n.onnx", "import", id="unsupported operator"),
    pytest.param(planted.with_extreme_constant, "yolov8n.onnx", "sqnr:3,{planted}", id="collapse"),
    pytest.param(planted.with_wide_hard_swish, "int8/yolov8n.int8.tflite", "vela:imx93", id="Vela refuses"),
    pytest.param(planted.with_deadly_add, "int8/yolov8n.int8.tflite", "abort", id="the interpreter dies"),
])
def test_yolo(plant: planted.Plant, source: str, predicate: str, tmp_path: Path) -> None:
    model = tmp_path / f"planted{Path(source).suffix}"
    name = plant(ZOO / source, model)
    began = time.monotonic()
    result = reduce_file(model, tmp_path / "out", Asked(predicate=predicate.format(planted=name)))
    assert time.monotonic() - began < 120
    assert result.nodes_before > 200
    assert result.nodes_after <= 6
    assert result.confirmed
    assert result.finished
    assert repeated(result, tmp_path / "fresh")["ok"]
