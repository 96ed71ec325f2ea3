"""Models made and compared with the schema's own object API, which shares no code with ours."""

from __future__ import annotations

import random
import string
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl

from vitrify.tflite import schema

INT_RANGES = {"b": (-128, 127), "B": (0, 255), "i": (-2**31, 2**31 - 1), "I": (0, 2**32 - 1), "q": (-2**63, 2**63 - 1)}


def pack(model: tfl.ModelT) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def unpack(content: bytes) -> tfl.ModelT:
    return tfl.ModelT.InitFromPackedBuf(content)


def tree(value: Any) -> Any:
    """A plain form that compares: empty vectors and absent ones are the same, as every reader takes them."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [tree(v) for v in value] or None
    if hasattr(value, "__dict__"):
        return {k: tree(v) for k, v in vars(value).items()}
    return value


def one_operator(code: int, *, options: Any = None, options_type: int = 0, options2: Any = None, options2_type: int = 0,
                 version: int = 1, custom: str | None = None, custom_options: bytes | None = None) -> tfl.ModelT:
    """A model of one operator with two inputs and one output, all float32[1,4]."""
    tensors = [tfl.TensorT(shape=[1, 4], type=0, buffer=0, name=name) for name in ("a", "b", "y")]
    operator = tfl.OperatorT(opcodeIndex=0, inputs=[0, 1], outputs=[2], builtinOptions=options,
                             builtinOptionsType=options_type, builtinOptions2=options2,
                             builtinOptions2Type=options2_type,
                             customOptions=None if custom_options is None else list(custom_options))
    graph = tfl.SubGraphT(tensors=tensors, inputs=[0, 1], outputs=[2], operators=[operator], name="main")
    opcode = tfl.OperatorCodeT(deprecatedBuiltinCode=min(code, 127), builtinCode=code, version=version,
                               customCode=custom)
    return tfl.ModelT(version=3, operatorCodes=[opcode], subgraphs=[graph], buffers=[tfl.BufferT()])


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def random_options(table: str, rng: random.Random, limits: dict[str, int]) -> Any:
    """An options object with every field filled at random; ``limits`` gives the highest value of enums."""
    made = getattr(tfl, f"{table}T")()
    for field in schema.fields(table):
        assert hasattr(made, camel(field.name)), f"{table}.{field.name} is spelled otherwise in the schema"
        setattr(made, camel(field.name), _random(field, rng, limits.get(field.name)))
    return made


def _random(field: schema.Field, rng: random.Random, limit: int | None) -> Any:
    if field.kind == "string":
        return "".join(rng.choices(string.ascii_letters + "äß€", k=rng.randint(1, 9)))
    if field.kind == "vector":
        return [_number(field.of, rng, limit) for _ in range(rng.randint(1, 5))]
    assert field.kind == "scalar", f"{field.name} is a {field.kind}: teach this function to fill it"
    return _number(field.of, rng, limit)


def _number(code: str, rng: random.Random, limit: int | None) -> Any:
    if limit is not None:
        return rng.randint(0, limit)
    if code == "?":
        return rng.random() < 0.5
    if code in "fd":
        return float(np.float32(rng.uniform(-100, 100)))
    return rng.randint(*INT_RANGES[code])
