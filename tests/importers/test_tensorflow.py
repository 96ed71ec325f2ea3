"""TensorFlow's models through TensorFlow: values, names, shapes and refusals. Runs in `make test-tf`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify import run
from vitrify.core.errors import VitrifyError
from vitrify.importers import load
from vitrify.pipeline.convert import convert_file
from vitrify.pipeline.options import ConvertOptions

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed here: make test-tf")
keras = pytest.importorskip("keras", reason="Keras is not installed here: make test-tf")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
LEAST_DB = 80.0
L = keras.layers


def functional(shape: tuple[int, ...], build: Callable[[Any], Any]) -> Any:
    keras.utils.set_random_seed(0)
    inputs = keras.Input(shape, name="x")
    model = keras.Model(inputs, build(inputs))
    for weight in model.weights:
        if weight.name in ("moving_mean", "beta", "bias"):
            weight.assign(np.random.default_rng(1).standard_normal(weight.shape) * 0.2)
    return model


ZOO: dict[str, Callable[[], Any]] = {
    "batch_norm": lambda: functional((16, 16, 3), lambda x: L.Dense(5)(L.GlobalAveragePooling2D()(
        L.BatchNormalization()(L.Conv2D(8, 3, padding="same", activation="relu")(x))))),
    "separable_upsampling": lambda: functional((16, 16, 4), lambda x: L.UpSampling2D(2, interpolation="bilinear")(
        L.SeparableConv2D(8, 3, padding="same")(x))),
    "attention": lambda: functional((10, 16), lambda x: L.MultiHeadAttention(2, 8)(L.LayerNormalization()(x), x) + x),
    "transposed": lambda: functional((8, 8, 4), lambda x: L.Conv2DTranspose(3, 3, 2, padding="same")(x)),
    "lstm": lambda: functional((6, 8), lambda x: L.Dense(3)(L.LSTM(6)(x))),
    "gru": lambda: functional((6, 8), lambda x: L.Dense(3)(L.GRU(6, return_sequences=True)(x))),
    "bidirectional": lambda: functional((6, 8), lambda x: L.Dense(3)(L.Bidirectional(L.LSTM(6))(x))),
    "mobilenet_v2": lambda: keras.applications.MobileNetV2((96, 96, 3), weights=None, classes=10),
    "efficientnet_b0": lambda: keras.applications.EfficientNetB0(input_shape=(64, 64, 3), weights=None, classes=10),
    "resnet50": lambda: keras.applications.ResNet50(input_shape=(64, 64, 3), weights=None, classes=10),
}


def decibels(wanted: Any, found: Any) -> float:
    wanted, found = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
    assert wanted.shape == found.shape
    return 10 * np.log10(np.square(wanted).sum() / max(np.square(wanted - found).sum(), 1e-30))


def check(path: Path, model: Callable[[Any], Any], shape: tuple[int, ...], out: Path) -> None:
    """Convert, compare with the framework, and see that no TRANSPOSE and no loop is left."""
    array = np.random.default_rng(0).standard_normal((1, *shape)).astype(np.float32)
    result = convert_file(path, out, ConvertOptions())
    assert result.transposes == 0
    assert "WHILE" not in result.operators
    found = run(out, {result.inputs[0].name: array})
    assert decibels(model(array), next(iter(found.values()))) >= LEAST_DB


@pytest.mark.parametrize("name", ZOO)
def test_keras_layers_and_applications(name: str, tmp_path: Path) -> None:
    model = ZOO[name]()
    path = tmp_path / "model.keras"
    model.save(path)
    check(path, lambda x: model(x, training=False), model.inputs[0].shape[1:], tmp_path / "out.tflite")


@pytest.mark.parametrize("form", ["saved", "h5"])
def test_the_other_formats(form: str, tmp_path: Path) -> None:
    model = ZOO["batch_norm"]()
    path = tmp_path / ("model" if form == "saved" else "model.h5")
    model.export(path, verbose=False) if form == "saved" else model.save(path)
    check(path, lambda x: model(x, training=False), (16, 16, 3), tmp_path / "out.tflite")
    imported = load(path)
    assert imported.interface is not None
    assert [i.name for i in imported.interface.inputs] == ["x"]
    assert any("conv2d" in source.name for node in imported.main for source in node.origin.sources)
    names = [source.name for node in imported.main for source in node.origin.sources]
    assert not [name for name in (*names, *(node.name for node in imported.main)) if "PartitionedCall" in name]


KERAS_2 = ["image_classification", "visual_wake_words", "keyword_spotting", "rock_paper_scissors",
           "tflite_micro_speech", "tflite_micro_magic_wand", "keyword_spotting_mobilenetv2", "anomaly_detection"]


@pytest.mark.models
@pytest.mark.parametrize("name", KERAS_2)
def test_real_keras_2_models(name: str, model_file: Callable[[str], Path], tmp_path: Path) -> None:
    import tf_keras

    path = model_file(f"mltk_keras/{name}/{name}.h5")
    model = tf_keras.models.load_model(path, compile=False)
    check(path, lambda x: model(x, training=False), tuple(model.inputs[0].shape[1:]), tmp_path / "out.tflite")


@pytest.mark.models
def test_a_real_saved_model(model_file: Callable[[str], Path], tmp_path: Path) -> None:
    path = model_file("basic_pitch_saved/basic_pitch/saved_models/icassp_2022/nmp")
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]
    array = np.random.default_rng(0).standard_normal((1, 43844, 1)).astype(np.float32)
    assert convert_file(path, tmp_path / "out.tflite", ConvertOptions()).transposes == 0
    found, wanted = run(tmp_path / "out.tflite", {"input_2": array}), signature(input_2=tf.constant(array))
    assert set(found) == set(wanted)
    assert min(decibels(wanted[name], found[name]) for name in wanted) >= LEAST_DB


class Graphs(tf.Module):  # type: ignore[misc]
    """A function for each thing that is refused."""

    def __init__(self) -> None:
        self.kept = tf.Variable(tf.zeros((1, 4)))
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant([1, 2], tf.int64), tf.constant([5, 6], tf.int64)), 0)

    def state(self, x: Any) -> Any:
        self.kept.assign_add(x)
        return {"y": x + self.kept}

    def words(self, x: Any) -> Any:
        return {"y": self.table.lookup(x)}

    def strings(self, x: Any) -> Any:
        return {"y": tf.strings.length(x)}

    def picture(self, x: Any) -> Any:
        return {"y": tf.reduce_mean(x, [1, 2])}

    def inverse(self, x: Any) -> Any:
        return {"y": tf.linalg.inv(x)}


REFUSED: dict[str, tuple[Any, str, str]] = {
    "state": (tf.TensorSpec((1, 4), name="x"), "tf.state", "AssignAddVariableOp"),
    "words": (tf.TensorSpec((1, 4), tf.int64, name="x"), "tf.table", "LookupTableFindV2"),
    "strings": (tf.TensorSpec((1,), tf.string, name="x"), "tf.type", "input 'x' is a string"),
    "picture": (tf.TensorSpec((None, None, None, 3), name="x"), "tf.open-shape", "dimensions 1 and 2 open"),
    "inverse": (tf.TensorSpec((1, 2, 2), name="x"), "tf.export", "MatrixInverse"),
}


def saved(folder: Path, name: str, spec: Any) -> Path:
    module = Graphs()
    function = tf.function(getattr(module, name)).get_concrete_function(spec)
    tf.saved_model.save(module, str(folder), signatures=function)
    return folder


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name: str, tmp_path: Path) -> None:
    spec, code, text = REFUSED[name]
    with pytest.raises(VitrifyError) as caught:
        load(saved(tmp_path / "model", name, spec))
    finding = next(f for f in caught.value.findings if f.code == code)
    assert text in str(finding)
    assert finding.help


def test_open_extents_are_fixed(tmp_path: Path) -> None:
    path = saved(tmp_path / "model", "picture", REFUSED["picture"][0])
    assert load(path, {"x": (1, 8, 6, 3)}).main.inputs[0].shape == (1, 8, 6, 3)


@pytest.mark.parametrize("keep", [0.1, 0.9])
def test_truncated_hdf5(keep: float, tmp_path: Path) -> None:
    ZOO["batch_norm"]().save(tmp_path / "model.h5")
    data = (tmp_path / "model.h5").read_bytes()
    (tmp_path / "model.h5").write_bytes(data[:int(len(data) * keep)])
    with pytest.raises(VitrifyError) as caught:
        load(tmp_path / "model.h5")
    assert caught.value.findings[0].code in ("tf.damaged", "tf.load")


def test_variables_that_are_not_there(tmp_path: Path) -> None:
    ZOO["batch_norm"]().export(tmp_path / "model", verbose=False)
    shutil.rmtree(tmp_path / "model" / "variables")
    with pytest.raises(VitrifyError) as caught:
        load(tmp_path / "model")
    assert caught.value.findings[0].code == "tf.load"
