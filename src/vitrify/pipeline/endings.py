"""The ending of a name that is written: it must not say another format than the file has."""

from __future__ import annotations

from pathlib import Path

from vitrify.core.errors import UsageError
from vitrify.core.words import shell

TFLITE, RECIPE = ".tflite", ".toml"
_FORMATS = {
    TFLITE: "a TFLite model", RECIPE: "a TOML file", ".onnx": "an ONNX model", ".ort": "an ONNX Runtime model",
    **dict.fromkeys((".pt", ".pt2", ".pth", ".ts", ".torchscript", ".ckpt", ".safetensors"), "a PyTorch file"),
    **dict.fromkeys((".keras", ".h5", ".hdf5"), "a Keras model"), ".pb": "a TensorFlow graph",
    ".mlmodel": "a Core ML model", ".mlpackage": "a Core ML model", ".gguf": "a GGUF file",
    **dict.fromkeys((".npy", ".npz"), "a NumPy array"), **dict.fromkeys((".png", ".jpg", ".jpeg", ".bmp"), "a picture"),
    **dict.fromkeys((".json", ".html", ".csv", ".txt", ".md", ".yaml", ".yml"), "a text file"),
    **dict.fromkeys((".zip", ".tar", ".gz"), "an archive"), ".py": "a Python program",
}


def refuse_ending(option: str, target: Path | None, wanted: str) -> None:
    """Refuse a name whose ending belongs to another format; one that belongs to none is the user's own choice.

    Raises:
        UsageError: it does.
    """
    if target is None:
        return
    ending = target.suffix.lower()
    if ending == wanted or ending not in _FORMATS:
        return
    raise UsageError.of("file.ending", f"{option} {target} names {_FORMATS[ending]}; what is written is "
                        f"{_FORMATS[wanted]}", where=str(target),
                        help=f"{option} {shell(target.with_suffix(wanted))}")
