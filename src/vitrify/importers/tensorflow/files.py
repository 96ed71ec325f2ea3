"""The child's side: TensorFlow's files are opened here, and nowhere else. Only ``core.isolation`` calls this."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from vitrify.core.errors import ModelError, UnsupportedError, UsageError, VitrifyError
from vitrify.core.findings import Finding
from vitrify.importers.tensorflow.archive import parsed, read_config
from vitrify.importers.tensorflow.configs import refuse_code
from vitrify.importers.tensorflow.saved import SERVING
from vitrify.importers.tensorflow.source import TfSource

Sizes = dict[str, tuple[int, ...] | int]


def export_model(path: str, kind: str, folder: str, sizes: Sizes, trust: bool, progress: Any = None
                 ) -> tuple[str, list[Finding]]:
    """Open a model of TensorFlow's and write it into ``folder`` as TFLite or ONNX; return the file and what was seen.

    Raises:
        VitrifyError: TensorFlow cannot open it, shapes are missing, or it cannot be exported.
    """
    quieten()
    from vitrify.importers.tensorflow.exporting import best_export

    try:
        source = _OPENERS[kind](Path(path), trust)
    except VitrifyError:
        raise
    except Exception as error:       # the errors of TensorFlow and Keras share no base class
        raise _cannot_load(path, error) from error
    file, told = best_export(source, sizes, Path(folder))
    return str(file), told


def quieten() -> None:
    """Keep TensorFlow to one thread, to the processor, and to itself. Works before it is imported only."""
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_ENABLE_ONEDNN_OPTS="0",
                      KERAS_BACKEND="tensorflow", AUTOGRAPH_VERBOSITY="0")
    warnings.simplefilter("ignore")
    import tensorflow

    tensorflow.get_logger().setLevel("ERROR")
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)


def _cannot_load(path: str, error: Exception) -> ModelError:
    import tensorflow

    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return ModelError.of("tf.load", f"TensorFlow cannot load '{path}': {text[:300]}", where=path,
                         why=f"TensorFlow {tensorflow.__version__}, {type(error).__name__}",
                         help="save it again, or as a SavedModel, which depends least on versions: "
                              "model.export('FOLDER')")


def _saved(path: Path, trust: bool) -> TfSource:
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))
    signatures = dict(loaded.signatures)
    name = chosen_signature(path, list(signatures))
    signature = signatures[name]
    inputs = dict(signature.structured_input_signature[1])
    order = list(inputs)

    def function(*tensors: Any) -> list[Any]:
        found = signature(**dict(zip(order, tensors, strict=True)))
        return [found[output] for output in outputs]

    outputs = list(signature.structured_outputs)
    return TfSource(path.name, function, inputs, outputs, owner=(loaded, signature), graph=signature.graph)


def chosen_signature(path: Path, names: list[str]) -> str:
    """Return the signature that is taken: serving_default, else the only one.

    Raises:
        UnsupportedError: there is none, or several.
    """
    if SERVING in names or len(names) == 1:
        return SERVING if SERVING in names else names[0]
    if not names:
        raise UnsupportedError.of(
            "tf.signature", f"'{path}' has no signature, so nothing says what its inputs are", where=str(path),
            help="save it with one: tf.saved_model.save(model, 'FOLDER', signatures=model.FUNCTION"
                 ".get_concrete_function(tf.TensorSpec([1, 224, 224, 3])))")
    raise UnsupportedError.of(
        "tf.signature", f"'{path}' has {len(names)} signatures and none is '{SERVING}': {', '.join(map(repr, names))}",
        where=str(path), help="save the one that is meant on its own: m = tf.saved_model.load('FOLDER'); "
                              f"tf.saved_model.save(m, 'FOLDER2', signatures=m.signatures['{names[0]}'])")


def _keras(path: Path, trust: bool) -> TfSource:
    import keras

    config = read_config(path)
    refuse_code(path, config, None, trust)
    return _of_keras(path, keras.saving.load_model(str(path), compile=False, safe_mode=not trust))


def _h5(path: Path, trust: bool) -> TfSource:
    config, version = read_h5(path)
    if version.startswith("3"):
        import keras
    else:
        import tf_keras as keras
    refuse_code(path, config, None if version.startswith("3") else _known(keras), trust)
    return _of_keras(path, keras.models.load_model(str(path), compile=False))


def read_h5(path: Path) -> tuple[dict[str, Any], str]:
    """Return the config of a Keras .h5 file, and the version of Keras that wrote it.

    Raises:
        ModelError: it is damaged, or holds no model.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            text, version = file.attrs.get("model_config"), file.attrs.get("keras_version", "2")
            groups = list(file)[:8]
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise ModelError.of("tf.damaged", f"'{path}' is no whole HDF5 file: {error}", where=str(path),
                            help="fetch or save the model again") from error
    if text is None:
        held = ", ".join(map(repr, groups)) or "nothing"
        raise ModelError.of("tf.weights-only", f"'{path}' holds no model, only {held}",
                            where=str(path), why="save_weights() writes no layers",
                            help="load it into its model and save the whole: model.save('model.keras')")
    return parsed(path, text), version.decode() if isinstance(version, bytes) else str(version)


def _known(keras: Any) -> frozenset[str]:
    places = (keras.layers, keras.initializers, keras.regularizers, keras.constraints, keras.models,
              keras.mixed_precision, keras.optimizers, keras.losses, keras.metrics)
    return frozenset({"Functional", "InputLayer", "TensorFlowOpLayer", "TFOpLambda", "SlicingOpLambda", "ClassMethod",
                      "InstanceProperty", "InstanceMethod", "CategoryEncoding", "Policy", "TensorShape",
                      *(name for place in places for name in dir(place))})


def _of_keras(path: Path, model: Any) -> TfSource:
    import tensorflow as tf

    if not getattr(model, "inputs", None):
        raise UsageError.of("tf.not-built", f"'{path}' does not say what its inputs are", where=str(path),
                            why="a Sequential model gets them from its first call or an Input layer",
                            help="call the model once before it is saved, or begin it with keras.Input")
    single = len(model.inputs) == 1
    names = _names(model, "input_names", [tensor.name for tensor in model.inputs])
    outputs = _names(model, "output_names", [f"output_{i}" for i in range(len(model.outputs))])

    def function(*tensors: Any) -> list[Any]:
        return list(tf.nest.flatten(model(tensors[0] if single else list(tensors), training=False)))

    inputs = {name: tf.TensorSpec(tuple(tensor.shape), tensor.dtype, name=name)
              for name, tensor in zip(names, model.inputs, strict=True)}
    return TfSource(path.name, function, inputs, outputs, owner=model)


def _names(model: Any, attribute: str, default: list[str]) -> list[str]:
    """The names that Keras gives, one each and no twice, else the default."""
    for owner in (model, getattr(model, "_functional", None)):
        names = getattr(owner, attribute, None)
        if names and len(set(names)) == len(default):
            return [str(name) for name in names]
    return default


_OPENERS = {"saved": _saved, "keras": _keras, "h5": _h5}
