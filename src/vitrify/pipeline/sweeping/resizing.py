"""Another size for a model: which of its inputs is the picture, and a file that leaves that size open.

What an exporter wrote as fixed often is not: a network of convolutions takes any size. So the declared extents are
opened, and the import finds out whether the graph admits them; where it holds numbers made for one size, it does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vitrify.core.errors import UnsupportedError, UsageError
from vitrify.core.words import shape_text, shell
from vitrify.pipeline.options import ConvertOptions
from vitrify.pipeline.steps import is_tflite
from vitrify.pipeline.sweeping.grid import Size

_CHANNELS = (1, 2, 3, 4)
_EXTERNAL = 1      # TensorProto.DataLocation. Source: onnx.proto.


class Picture(NamedTuple):
    """An input that is a picture: its declared extents, None where open, and the axes of height and width."""

    name: str
    dims: tuple[int | None, ...]
    axes: tuple[int, int]


class Resizable(NamedTuple):
    """The file to import at every size, and its pictures."""

    file: Path
    pictures: tuple[Picture, ...]

    def at(self, size: Size, options: ConvertOptions) -> ConvertOptions:
        """Return how to import the model at ``size``; shapes that were given stand for the other inputs."""
        if not size.pixels:
            return options
        shapes = dict(options.shapes)
        for picture in self.pictures:
            given = shapes.pop("", None) if len(self.pictures) == 1 else None
            shape = [extent or 1 for extent in shapes.get(picture.name, given or picture.dims)]
            shape[picture.axes[0]], shape[picture.axes[1]] = size
            shapes[picture.name] = tuple(shape)
        return msgspec.structs.replace(options, shapes=shapes)


def resizable(source: Path, folder: Path, name: str = "") -> Resizable:
    """Return a file in ``folder`` that is the model with the size of its pictures open.

    Args:
        source: an ONNX file.
        folder: where the file goes.
        name: the input that is the picture, for models in which that is not plain.

    Raises:
        UsageError: it is a TFLite file, or there is no such input.
        UnsupportedError: no input is a picture.
    """
    if is_tflite(source):
        raise UsageError.of(
            "sweep.fixed-shapes", f"{source.name} is a TFLite file: it holds one size and cannot be made another",
            where=str(source), why="its shapes are numbers in every tensor, and some are constants that operators read",
            help=f"give the model that it was made from (ONNX, PyTorch, Keras); without --size the sweep of "
                 f"{shell(source)} goes over precisions and memory modes")
    from vitrify.importers.onnx.reading.messages import model_proto

    proto = model_proto().FromString(source.read_bytes())
    constants = {one.name for one in proto.graph.initializer}
    inputs = [one for one in proto.graph.input if one.name not in constants]
    pictures = tuple(found for one in inputs if (not name or one.name == name) and (found := _picture(one)) is not None)
    if not pictures:
        listed = ", ".join(f"'{one.name}' {shape_text([d or '?' for d in _dims(one)])}" for one in inputs)
        raise UnsupportedError.of("sweep.no-picture", f"no input {f'{name!r} ' if name else ''}is a picture, so there "
                                  f"is no size to change; the inputs are {listed}", where=str(source),
                                  help="leave --size out, and fix what is open with --shape or --dim")
    if any(one.data_location == _EXTERNAL for one in proto.graph.initializer):
        return Resizable(source, pictures)      # its weights lie beside it: it is read where it stands
    _open(proto, {picture.name: picture.axes for picture in pictures})
    file = folder / source.name
    file.write_bytes(proto.SerializeToString())
    return Resizable(file, pictures)


def _open(proto: Any, axes: dict[str, tuple[int, int]]) -> None:
    """Leave open what was declared of the pictures' extents, and of everything that is computed from them."""
    del proto.graph.value_info[:]
    for value in proto.graph.input:
        for axis, label in zip(axes.get(value.name, ()), ("height", "width"), strict=False):
            dim = value.type.tensor_type.shape.dim[axis]
            if dim.HasField("dim_value"):           # a name may be that of other inputs' extents too
                dim.dim_param = f"{value.name} {label}"
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")


def _dims(value: Any) -> tuple[int | None, ...]:
    return tuple(d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else None
                 for d in value.type.tensor_type.shape.dim)


def _picture(value: Any) -> Picture | None:
    """Tell a picture by its rank and its few channels, on the second axis or the last."""
    dims = _dims(value)
    if len(dims) != 4:
        return None
    if dims[1] in _CHANNELS or dims[3] not in _CHANNELS:
        return Picture(value.name, dims, (2, 3))
    return Picture(value.name, dims, (1, 2))
