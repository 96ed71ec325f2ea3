"""Models quantized by ONNX Runtime's own tools, from real models and real samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Way:
    """How a model is quantized: the form of the graph, the types of activations and weights."""

    operators: bool = False
    activations: str = "QUInt8"
    weights: str = "QInt8"
    per_channel: bool = False
    symmetric: bool = False


def quantized(source: Path, target: Path, samples: Sequence[Array], way: Way) -> Path:
    """Write ``source`` quantized with ``samples`` to ``target``."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = onnx.load(source)
    name = model.graph.input[0].name

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left: Iterator[Array] = iter(samples)

        def get_next(self) -> dict[str, Array] | None:
            sample = next(self.left, None)
            return None if sample is None else {name: sample}

    for dim, extent in zip(model.graph.input[0].type.tensor_type.shape.dim, samples[0].shape, strict=True):
        dim.dim_value = extent
    prepared = target.with_suffix(".prepared.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnx.save(model, prepared)
        quant_pre_process(prepared, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared, target, Reader(), quant_format=QuantFormat.QOperator if way.operators else QuantFormat.QDQ,
            activation_type=QuantType[way.activations], weight_type=QuantType[way.weights],
            per_channel=way.per_channel, extra_options={"ActivationSymmetric": way.symmetric})
    return target


def digits(archive: Path, count: int) -> list[Array]:
    """Handwritten digits as the digits model takes them, spread over all ten."""
    images = np.load(archive)["images"].reshape(-1, 28, 28)
    chosen = images[:: len(images) // count][:count].astype(np.float32)
    scaled = chosen / 255 if chosen.max() > 2 else chosen
    return [((image - 0.1307) / 0.3081)[None, None].astype(np.float32) for image in scaled]


def photos(folder: Path) -> list[Array]:
    """ImageNet photos as EfficientNet-Lite takes them."""
    from PIL import Image

    found = []
    for path in sorted(folder.glob("imagenet_*.jpg")):
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB").resize((224, 224), Image.Resampling.BICUBIC), np.float32)
        found.append(((pixels - 127) / 128).transpose(2, 0, 1)[None].copy())
    return found
