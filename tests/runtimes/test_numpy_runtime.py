"""The numpy references as a runtime: every tensor of real quantized files equals LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vitrify import runtimes
from vitrify.core.errors import ModelError, UsageError
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.ops import Add, Concatenation, Cumsum
from vitrify.ops.interpreter import Interpreter
from vitrify.runtimes.base import Runtime, zeros
from vitrify.runtimes.litert import LiteRT
from vitrify.runtimes.reference import Reference
from vitrify.verify import Stage, compare

FILES = ["mltk_int8/" + name for name in (
    "anomaly_detection/anomaly_detection.tflite", "image_classification/image_classification.tflite",
    "fingerprint_signature_generator/fingerprint_signature_generator.tflite",
    "keyword_spotting/keyword_spotting.tflite", "keyword_spotting_alexa/keyword_spotting_alexa.tflite",
    "keyword_spotting_mobilenetv2/keyword_spotting_mobilenetv2.tflite",
    "keyword_spotting_on_off_v3/keyword_spotting_on_off_v3.tflite",
    "keyword_spotting_pacman_v3/keyword_spotting_pacman_v3.tflite", "rock_paper_scissors/rock_paper_scissors.tflite",
    "tflite_micro_magic_wand/tflite_micro_magic_wand.tflite", "tflite_micro_speech/tflite_micro_speech.tflite",
    "visual_wake_words/visual_wake_words.tflite")]
STREAMING = [f"micro_wakeword_int8/{name}.tflite" for name in ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")]

Find = Callable[[str], Path]


def sample(runtime: Runtime, seed: int) -> dict[str, np.ndarray]:
    """Values over most of each input's range."""
    rng = np.random.default_rng(seed)
    return {b.name: rng.normal(0, 1 if seed else 40, b.shape).astype(b.dtype) for b in runtime.interface.inputs}


@pytest.mark.parametrize("name", FILES)
def test_every_tensor_equals_litert(name: str, model_file: Find) -> None:
    with runtimes.open(model_file(name), kernels="numpy") as ours, LiteRT(model_file(name)) as theirs:
        assert ours.tensors == theirs.tensors
        assert ours.interface == theirs.interface
        for seed in range(2):
            wanted, found = (runtime.trace(sample(ours, seed)) for runtime in (theirs, ours))
            assert found.keys() == wanted.keys()
            for tensor, value in found.items():
                np.testing.assert_array_equal(value.raw, wanted[tensor].raw, err_msg=tensor)


@pytest.mark.parametrize("name", STREAMING)
def test_variables_are_kept(name: str, model_file: Find) -> None:
    path = model_file(name)
    with Reference(path, keep_state=True) as ours, LiteRT(path, keep_state=True) as theirs, Reference(path) as fresh:
        for frame in range(4):
            given = sample(ours, frame + 1)
            for output, value in ours.run(given).items():
                np.testing.assert_array_equal(value, theirs.run(given)[output])
            first, again = (fresh.trace(given) for _ in range(2))
            assert all(np.array_equal(first[t].raw, again[t].raw) for t in first)


def test_it_answers_as_litert_does(model_file: Find) -> None:
    path = model_file(FILES[1])
    with Reference(path) as ours, LiteRT(path) as theirs:
        given = zeros(ours.interface)
        wanted, found = (runtime.observe(given, runtime.tensors[:2]) for runtime in (theirs, ours))
        assert found.outputs.keys() == wanted.outputs.keys()
        assert found.saturated == wanted.saturated
        assert all(np.array_equal(found.steps[name], wanted.steps[name]) for name in wanted.steps)
        assert (ours.precision, ours.aliases) == (theirs.precision, theirs.aliases)
        assert ours.profile(runs=2, warmup=1).runs == 2
        with pytest.raises(UsageError, match="no tensor 'nothing'"):
            ours.trace(given, ["nothing"])


def test_a_model_in_memory_runs() -> None:
    graph = Graph()
    x = Tensor("x", DType.FLOAT32, (3,))
    graph.inputs = [x]
    axis = Tensor("axis", DType.INT32, (), data=np.int32(0))
    graph.set_outputs(graph.add(Cumsum(), [graph.add(Add(), [x, x], name="twice").output, axis]).outputs)
    with runtimes.open(Model([graph]), kernels="numpy") as runtime:
        (value,) = runtime.run({"x": np.array([1, 2, 3], np.float32)}).values()
        np.testing.assert_array_equal(value, [2, 6, 12])


def test_tensors_are_compared_through_it(model_file: Find) -> None:
    """``verify`` finds no difference between LiteRT's reference kernels and numpy, tensor by tensor."""
    path = model_file(FILES[0])
    stages = [Stage(name=name, path=path, kernels=kernels) for name, kernels in (("litert", "reference"),
                                                                                 ("numpy", "numpy"))]
    with Reference(path) as ours:
        found = compare(stages, [sample(ours, 1)], tensors=True)
    (compared,) = found.stages
    assert compared.tensors
    assert all(row.equal for row in compared.tensors)


def test_a_node_that_cannot_be_computed_is_named() -> None:
    graph = Graph()
    graph.inputs = [Tensor(name, DType.FLOAT32, (3,)) for name in "ab"]
    node = graph.add(Concatenation(axis=0), graph.inputs, name="the join")
    node.output.name = "joined"
    graph.set_outputs(node.outputs)
    graph.inputs[1].shape = (3, 1)
    with pytest.raises(ModelError, match=r"CONCATENATION 'the join'"):
        Interpreter(Model([graph])).run([np.zeros(3, np.float32), np.zeros((3, 1), np.float32)])


def test_an_array_of_another_type_is_refused() -> None:
    graph = Graph()
    graph.inputs = [Tensor("x", DType.FLOAT32, (3,))]
    graph.set_outputs(graph.inputs)
    with pytest.raises(ValueError, match=r"'x' is float32\[3\], its value is int8\[3\]"):
        Interpreter(Model([graph])).run([np.zeros(3, np.int8)])
