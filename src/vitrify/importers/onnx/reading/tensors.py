"""Tensors of an ONNX file as numpy arrays, without copying where the format allows it.

Data beside the model must lie inside the model's own folder: a model file may come from anywhere, and must not be able
to name any other file of the reader's machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vitrify.core.errors import ModelError
from vitrify.importers.onnx.packed import BITS, packed_size, unpacked

Array = np.ndarray[Any, np.dtype[Any]]

# Number of the element type in onnx.proto's TensorProto.DataType -> numpy type. Source: onnx.proto.
DTYPES: dict[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
}
BFLOAT16 = 16
# Those that numpy does not have, by the names of the `ml_dtypes` package, which has them.
NAMES = {
    8: "string",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}
# Which repeated field holds the values when raw_data is absent. Source: onnx.proto, comments of TensorProto.
_INT32_FIELD = {2, 3, 4, 5, 6, 9, 10, BFLOAT16, *BITS}


def text(value: str | bytes) -> str:
    """A name as text; bytes that are not UTF-8 are shown escaped."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def to_array(proto: Any, folder: Path, raw: Array | None = None) -> Array:
    """Return a ``TensorProto`` as a read-only array; ``raw`` is its raw data when that was left in the file.

    Raises:
        ModelError: element type, size or place of the data is not valid.
    """
    name = text(proto.name)
    shape = tuple(proto.dims)
    kind = proto.data_type
    if kind not in DTYPES and kind not in BITS and kind != BFLOAT16:
        label = NAMES.get(kind, f"number {kind}")
        raise ModelError.of(
            "onnx.tensor-type",
            f"tensor '{name}' has the element type {label}, which is not read",
            where=f"tensor '{name}'",
        )
    if any(d < 0 for d in shape):
        raise ModelError.of(
            "onnx.tensor-size", f"tensor '{name}' has a negative dimension: {list(shape)}", where=f"tensor '{name}'"
        )
    dtype = np.dtype("uint16" if kind == BFLOAT16 else DTYPES.get(kind, "uint8"))
    flat = (
        _external(proto, name, folder, dtype, shape)
        if proto.data_location == 1
        else _embedded(proto, dtype, kind, proto.raw_data if raw is None else raw)
    )
    count = _count(shape)
    wanted = packed_size(count, kind) if kind in BITS else count
    if flat.size != wanted:
        raise ModelError.of(
            "onnx.tensor-size",
            f"tensor '{name}' holds {flat.size} elements, its shape {list(shape)} needs {wanted}",
            where=f"tensor '{name}'",
            help="the file is damaged: export or fetch it again",
        )
    if kind == BFLOAT16:
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    elif kind in BITS:
        flat = unpacked(flat, count, kind)
    array = flat.reshape(shape)
    array.flags.writeable = False
    return array


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _embedded(proto: Any, dtype: np.dtype[Any], kind: int, raw: bytes | Array) -> Array:
    if len(raw):
        whole = len(raw) - len(raw) % dtype.itemsize
        return np.frombuffer(raw if whole == len(raw) else raw[:whole], dtype.newbyteorder("<"))
    if kind in _INT32_FIELD:
        values = np.array(proto.int32_data, np.int32)
        if kind in (10, BFLOAT16):  # the bits of the half float stand in an integer
            return values.astype(np.uint16).view(dtype)
        return values.astype(dtype)
    field = {
        1: proto.float_data,
        14: proto.float_data,
        7: proto.int64_data,
        11: proto.double_data,
        15: proto.double_data,
        12: proto.uint64_data,
        13: proto.uint64_data,
    }[kind]
    if kind in (14, 15):
        return np.array(field, np.float32 if kind == 14 else np.float64).view(dtype)
    return np.array(field, dtype)


def _external(proto: Any, name: str, folder: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    entries = {text(e.key): text(e.value) for e in proto.external_data}
    file = _inside(entries.get("location", ""), name, folder)
    try:
        offset = int(entries.get("offset", "0"))
        bytes_ = packed_size(_count(shape), proto.data_type) if proto.data_type in BITS else 0
        length = int(entries.get("length", bytes_ or _count(shape) * dtype.itemsize))
        size = file.stat().st_size
    except ValueError:
        raise ModelError.of(
            "onnx.external-data", f"tensor '{name}' has an offset or length that is no number", where=f"tensor '{name}'"
        ) from None
    except OSError as error:
        raise ModelError.of(
            "onnx.external-data",
            f"the data of tensor '{name}' is missing: there is no file '{file}'",
            where=f"tensor '{name}'",
            help=f"put '{file.name}' beside the model",
        ) from error
    if offset < 0 or length < 0 or offset + length > size or length % dtype.itemsize:
        raise ModelError.of(
            "onnx.external-data",
            f"tensor '{name}' wants bytes {offset} to {offset + length} of '{file.name}', which has {size}",
            where=f"tensor '{name}'",
            help="the file is damaged: export or fetch it again",
        )
    if length == 0:
        return np.empty(0, dtype)
    mapped = np.memmap(file, np.uint8, "r", offset, (length,))
    return np.asarray(mapped).view(dtype) if offset % dtype.itemsize == 0 else np.frombuffer(mapped.tobytes(), dtype)


def _inside(location: str, name: str, folder: Path) -> Path:
    """The file of external data, refused when it lies outside the model's folder (after following links)."""
    root = folder.resolve()
    given = Path(location)
    file = (root / given).resolve() if location and "\0" not in location else root
    if file == root or given.is_absolute() or ".." in given.parts or root not in file.parents:
        raise ModelError.of(
            "onnx.external-data",
            f"tensor '{name}' keeps its data in '{location}', outside the model's folder",
            where=f"tensor '{name}'",
            why="a model may only read files beside it",
            help="move the data file beside the model and save the model again",
        )
    return file
