"""Small integer graphs for tests of fixes, and the check of a fix in LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vitrify import ops, tflite
from vitrify.ir import DType, Graph, Model, Operator, Origin, Quantization, Tensor
from vitrify.ir.graph import Array
from vitrify.ir.validation import validate
from vitrify.passes.targets import find
from vitrify.pipeline.checking.fixes.applying import Applied, apply_fixes
from vitrify.targets import base as targets
from vitrify.targets.rules import judge

SCALE, ZERO = 0.05, -7
LACKING = (ops.DepthToSpace, ops.Sum)
"""What LiteRT has no reference kernel of, or a wrong one; its plain kernel is right."""


class Maker:
    """Builds one graph of int8 values, or of another type."""

    def __init__(self, dtype: DType = DType.INT8, seed: int = 0) -> None:
        self.graph = Graph()
        self.dtype = dtype
        self.random = np.random.default_rng(seed)
        self.count = 0

    def steps(self, scale: float = SCALE, zero: int | None = None) -> Quantization:
        usual = {DType.INT8: ZERO, DType.UINT8: ZERO + 128}.get(self.dtype, 0)
        return Quantization.per_tensor(scale, usual if zero is None else zero)

    def input(self, *shape: int, scale: float = SCALE, zero: int | None = None) -> Tensor:
        name = f"x{len(self.graph.inputs)}"
        tensor = Tensor(name, self.dtype, shape, quantization=self.steps(scale, zero), origin=Origin.of(name))
        self.graph.inputs.append(tensor)
        return tensor

    def const(self, values: object, dtype: object = np.int32, quantization: Quantization | None = None) -> Tensor:
        data = np.asarray(values, dtype)
        self.count += 1
        return Tensor(f"c{self.count}", DType.of(data.dtype), data.shape, data=data, quantization=quantization)

    def ints(self, *values: int) -> Tensor:
        return self.const(values)

    def weights(self, *shape: int, axis: int = 0, bias: bool = True, x: Tensor) -> list[Tensor]:
        """Random int8 weights with a scale per channel, and a bias."""
        channels = shape[axis]
        data = self.random.integers(-127, 128, shape, dtype=np.int8)
        fan = max(1, data.size // channels)
        scale = (self.random.uniform(0.5, 1.5, channels) / (64 * np.sqrt(fan))).astype(np.float32)
        found = [self.const(data, np.int8, Quantization.per_axis(scale, axis))]
        if bias:
            assert x.quantization is not None
            wide = np.int64 if self.dtype is DType.INT16 else np.int32
            found.append(self.const(self.random.integers(-900, 900, channels), wide,
                                    Quantization.per_axis(scale * x.quantization.scale[0], 0)))
        return found

    def op(self, op: Operator, *inputs: Tensor | None, scale: float = SCALE, zero: int | None = None,
           dtype: DType | None = None) -> Tensor:
        return self.outs(op, *inputs, scale=scale, zero=zero, dtype=dtype)[0]

    def outs(self, op: Operator, *inputs: Tensor | None, scale: float = SCALE, zero: int | None = None,
             dtype: DType | None = None) -> tuple[Tensor, ...]:
        self.count += 1
        name = f"{op.kind.lower()}{self.count}"
        node = self.graph.add(op, inputs, name=name, origin=Origin.of(name, op.kind))
        for tensor in node.outputs:
            tensor.dtype = dtype or tensor.dtype
            if tensor.dtype in (DType.INT8, DType.UINT8, DType.INT16):
                tensor.quantization = self.steps(scale, zero)
        return node.outputs

    def model(self, *outputs: Tensor) -> Model:
        self.graph.set_outputs(outputs)
        model = Model(graphs=[self.graph])
        validate(model)
        return model


def given(model: Model, runs: int = 3, seed: int = 5) -> list[list[Array]]:
    """Random values over the whole range of each input."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        arrays = []
        for tensor in model.main.inputs:
            kind = tensor.dtype.numpy
            assert kind is not None
            if kind.kind == "f":
                arrays.append(random.normal(0, 3, tensor.shape).astype(kind))
            else:
                info = np.iinfo(kind)
                arrays.append(random.integers(info.min, info.max, tensor.shape, kind, endpoint=True))
        found.append(arrays)
    return found


def run(model: Model, path: Path, batches: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """What LiteRT's reference kernels give."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    tflite.write(model, path)
    plain = model.main.count(*LACKING)
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if plain else OpResolverType.BUILTIN_REF
    runtime = Interpreter(str(path), experimental_op_resolver_type=resolver)
    runtime.allocate_tensors()
    found = []
    for arrays in batches:
        for details, array in zip(runtime.get_input_details(), arrays, strict=True):
            runtime.set_tensor(details["index"], array)
        runtime.invoke()
        found.append([runtime.get_tensor(details["index"]) for details in runtime.get_output_details()])
    return found


def largest_difference(before: Sequence[Sequence[Array]], after: Sequence[Sequence[Array]]) -> int:
    """In steps."""
    worst = 0
    for old, new in zip(before, after, strict=True):
        for one, other in zip(old, new, strict=True):
            assert one.shape == other.shape
            assert one.dtype == other.dtype
            worst = max(worst, int(np.abs(one.astype(np.int64) - other.astype(np.int64)).max()))
    return worst


def on_cpu(model: Model, target: str = "imx93") -> list[str]:
    """The operators that the rules leave to the CPU."""
    return [v.operator for v in judge(model.main, targets.load(target)) if v.placement == "cpu"]


def check_fix(build: Callable[[], Model], name: str, folder: Path, *, target: str = "imx93", most: int = 0,
              others: Sequence[str] = ()) -> tuple[Model, list[Applied]]:
    """Apply one fix; the result must be within ``most`` steps of the original and run wholly on the NPU."""
    model = build()
    names = [t.name for t in model.main.inputs], [t.name for t in model.main.outputs]
    types = [(t.type, t.quantization) for t in model.main.outputs]
    batches = given(model)
    before = run(model, folder / "before.tflite", batches)
    places = apply_fixes(model, targets.load(target), find([name, *others]))
    assert places, f"'{name}' changed nothing"
    validate(model)
    assert ([t.name for t in model.main.inputs], [t.name for t in model.main.outputs]) == names
    assert [(t.type, t.quantization) for t in model.main.outputs] == types
    worst = largest_difference(before, run(model, folder / "after.tflite", batches))
    assert worst <= most, f"off by {worst} steps"
    assert not on_cpu(model, target)
    return model, places
