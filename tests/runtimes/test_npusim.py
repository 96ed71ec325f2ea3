"""The functional model of the NPU against the reference kernels: what Vela compiled, run here, bit for bit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vitrify import ops, tflite
from vitrify.backends.vela import compile_model
from vitrify.core.errors import ModelError
from vitrify.ir import DType, Tensor
from vitrify.ops import Activation
from vitrify.runtimes.litert import LiteRT
from vitrify.runtimes.npusim import Simulator, oracle, outputs_of, read_program
from vitrify.runtimes.npusim.machine import elementwise, numerics, pooling
from vitrify.runtimes.npusim.machine.machine import Machine

sys.path.append(str(Path(__file__).parents[1] / "backends"))
from vela_networks import Network  # type: ignore[import-not-found]

Draw = Callable[[Network], list[Tensor]]
NONE = Activation.NONE


def scaled(net: Network, op: ops.Operator, inputs: list[Tensor], scale: float = 0.05, zero: int = 0,
           shape: tuple[int, ...] | None = None) -> Tensor:
    found: Tensor = net.add(op, inputs, shape or inputs[0].shape, scale=scale, zero_point=zero)
    return found


def two(net: Network) -> list[Tensor]:
    """Two maps of different scales."""
    return [scaled(net, ops.LeakyRelu(alpha=alpha), [net.x], scale, zero)
            for alpha, scale, zero in ((0.3, 0.031, 5), (0.6, 0.07, -9))]


def silu(net: Network) -> list[Tensor]:
    return [scaled(net, ops.Mul(), [net.x, scaled(net, ops.Logistic(), [net.x], 1 / 256, -128)], 0.03, -90)]


CASES: dict[str, Draw] = {
    "conv 1x1": lambda net: [net.conv(net.x, 24, activation=NONE)],
    "conv 3x3": lambda net: [net.conv(net.x, 20, 3)],
    "conv 3x3 stride 2": lambda net: [net.conv(net.x, 40, 3, 2)],
    "conv 5x5": lambda net: [net.conv(net.x, 9, 5, activation=NONE)],
    "conv of three channels": lambda net: [net.conv(net.input(1, 19, 17, 3), 16, 3, 2)],
    "depthwise": lambda net: [net.depthwise(net.x)],
    "depthwise 5x5 stride 2": lambda net: [net.depthwise(net.x, 5, 2)],
    "two layers": lambda net: [net.conv(net.depthwise(net.conv(net.x, 32, 3)), 8)],
    "add": lambda net: [scaled(net, ops.Add(), two(net), 0.09, 3)],
    "add of one scale": lambda net: [scaled(net, ops.Add(), [net.x, net.conv(net.x, 21, 3)], 0.083, -7)],
    "sub": lambda net: [scaled(net, ops.Sub(), two(net), 0.09, 3)],
    "mul": lambda net: [scaled(net, ops.Mul(), two(net), 0.11, 4)],
    "maximum": lambda net: [scaled(net, ops.Maximum(), [net.x, net.conv(net.x, 21)])],
    "add of a row": lambda net: [scaled(net, ops.Add(), [net.x, net.input(1, 1, 1, 21)], 0.083, -7)],
    "silu": silu,
    "max pool": lambda net: [net.add(ops.MaxPool2D(stride_h=2, stride_w=2, filter_height=2, filter_width=2), [net.x],
                                     (1, 10, 9, 21))],
    "average pool": lambda net: [net.add(ops.AveragePool2D(stride_h=1, stride_w=1, filter_height=3, filter_width=3,
                                                           padding=ops.Padding.VALID), [net.x], (1, 17, 15, 21))],
    "padded average pool": lambda net: [net.add(ops.AveragePool2D(stride_h=1, stride_w=1, filter_height=3,
                                                                  filter_width=3), [net.x], net.x.shape)],
    "mean": lambda net: [net.add(ops.Mean(keep_dims=True), [net.x, net.ints(1, 2)], (1, 1, 1, 21))],
    "dense": lambda net: [net.head(net.x, 12)],
    "softmax": lambda net: [scaled(net, ops.Softmax(beta=1.0), [net.x], 1 / 256, -128)],
    "upsample": lambda net: [net.add(ops.ResizeNearestNeighbor(), [net.x, net.ints(38, 34)], (1, 38, 34, 21))],
    "bilinear": lambda net: [net.add(ops.ResizeBilinear(half_pixel_centers=True), [net.x, net.ints(38, 34)],
                                     (1, 38, 34, 21))],
    "join": lambda net: [net.add(ops.Concatenation(axis=3), [net.conv(net.x, 16), net.conv(net.x, 24, 3)],
                                 (1, 19, 17, 40))],
    "turn": lambda net: [net.add(ops.Transpose(), [net.x, net.ints(0, 2, 1, 3)], (1, 17, 19, 21))],
    "matrices": lambda net: [net.add(ops.BatchMatMul(adj_y=True), [net.input(2, 10, 24), net.input(2, 12, 24)],
                                     (2, 10, 12))],
    "between islands": lambda net: [net.conv(net.gather(net.conv(net.x, 16, 3)), 8, 3)],
}
SLOW = pytest.mark.slow
CORES = ("ethos-u65-256", *(pytest.param(name, marks=SLOW) for name in (
    "ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-512")))


def compiled(draw: Draw, target: str, folder: Path, dtype: DType = DType.INT8) -> tuple[Path, Path]:
    net = Network(1, 19, 17, 21, dtype=dtype)
    source = net.save(folder / "m.tflite", *draw(net))
    compile_model(source, target, folder / "out.tflite")
    return source, folder / "out.tflite"


def answers(source: Path, output: Path, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the model of the NPU gives, and what the reference kernels give."""
    model = tflite.read(source)
    oracle(model)
    path = source.with_name("oracle.tflite")
    tflite.write(model, path)
    random = np.random.default_rng(seed)
    values = [random.integers(np.iinfo(t.dtype.numpy).min, np.iinfo(t.dtype.numpy).max, t.shape, t.dtype.numpy,
                              endpoint=True) for t in model.main.inputs]
    program = read_program(output)
    simulator = Simulator(program)
    with LiteRT(path) as reference:
        wanted = reference.invoke_raw(values)
        try:
            found = outputs_of(simulator.run(values), program)
        finally:
            simulator.close()
    return [one.reshape(other.shape) for one, other in zip(found, wanted, strict=True)], wanted


def differing(source: Path, output: Path, seed: int = 0) -> int:
    return sum(int((one != other).sum()) for one, other in zip(*answers(source, output, seed), strict=True))


@pytest.mark.parametrize("target", CORES)
@pytest.mark.parametrize("draw", CASES.values(), ids=CASES)
def test_it_computes_what_the_reference_kernels_do(draw: Draw, target: str, tmp_path: Path) -> None:
    assert differing(*compiled(draw, target, tmp_path)) == 0


def test_native_sigmoid_and_tanh_in_16_bits(tmp_path: Path) -> None:
    net = Network(1, 6, 7, 9, dtype=DType.INT16)
    parts = [net.add(op, [net.x], net.x.shape, dtype=DType.INT16, scale=1 / 32768)
             for op in (ops.Logistic(), ops.Tanh())]
    source = net.save(tmp_path / "m.tflite", *parts)
    compile_model(source, "imx93", tmp_path / "out.tflite")
    assert differing(source, tmp_path / "out.tflite") == 0


RULES = {
    "one rounding for two": (numerics._RULES, numerics.Rounding.TFL, numerics.half_up),
    "the second rounding half up": (numerics._RULES, numerics.Rounding.TFL, lambda product, shift: numerics.half_up(
        numerics.half_up(product, np.minimum(shift, 31)), shift - np.minimum(shift, 31))),
}
TELLING = ("mul", "silu", "add of one scale", "conv 1x1", "conv 3x3", "depthwise")


@pytest.mark.parametrize("name", RULES)
def test_another_rounding_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, key, rule = RULES[name]
    monkeypatch.setitem(table, key, rule)
    assert any(_differs(CASES[case], tmp_path / str(number)) for number, case in enumerate(TELLING))


def _differs(draw: Draw, folder: Path) -> bool:
    folder.mkdir()
    files = compiled(draw, "imx93", folder)
    return any(differing(*files, seed) > 0 for seed in range(4))


def test_a_padded_average_that_divides_by_the_whole_window_shows(tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "divide", lambda total, count: numerics.divide(total, count.max()))
    assert differing(*compiled(CASES["padded average pool"], "imx93", tmp_path)) > 0


def test_operands_that_are_not_widened_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(elementwise._HEADROOM, 8, 10)
    assert differing(*compiled(CASES["add"], "imx93", tmp_path)) > 0


def test_what_the_compiler_gets_wrong_shows(tmp_path: Path) -> None:
    """A slice that is folded into a product of matrices: Vela 5.2 multiplies the whole tensor."""
    net = Network(1, 8, 64)
    part = net.add(ops.Slice(), [net.x, net.ints(0, 0, 0), net.ints(1, 4, 64)], (1, 4, 64))
    product = net.add(ops.BatchMatMul(adj_y=True), [part, net.input(1, 4, 64)], (1, 4, 4))
    source = net.save(tmp_path / "m.tflite", product)
    compile_model(source, "imx93", tmp_path / "out.tflite")
    assert differing(source, tmp_path / "out.tflite") > 0


def test_what_the_compiler_writes_beyond_its_arena_shows(tmp_path: Path) -> None:
    """The same of columns: the product has rows as long as the whole tensor's."""
    net = Network(1, 16, 64)
    part = net.add(ops.Slice(), [net.x, net.ints(0, 0, 0), net.ints(1, 16, 32)], (1, 16, 32))
    product = net.add(ops.BatchMatMul(adj_y=True), [part, net.input(1, 16, 32)], (1, 16, 16))
    source = net.save(tmp_path / "m.tflite", product)
    compile_model(source, "imx93", tmp_path / "out.tflite")
    with pytest.raises(ModelError, match=r"OFM takes bytes \d+\.\.\d+ of the arena, which has \d+") as caught:
        answers(source, tmp_path / "out.tflite")
    assert caught.value.findings[0].where.startswith("ELEMENTWISE at byte")


def test_damaged_streams_end_in_errors_that_say_where(tmp_path: Path) -> None:
    """Words, constants and sizes that were changed: a result or an error of ours, never another."""
    _, output = compiled(CASES["two layers"], "imx93", tmp_path)
    step = read_program(output).npu[0]
    from vitrify.runtimes.npusim.stream.words import decode, encode

    names = [(command.spec.name, command.value) for command in step.commands]
    words = encode(names)
    random = np.random.default_rng(0)
    codes, places = set(), set()
    for _ in range(300):
        changed = words.copy()
        for at in random.integers(0, len(words), 2):
            changed[at] ^= np.uint32(1 << int(random.integers(0, 32)))
        constants = step.constants.copy()
        constants[random.integers(0, len(constants), 3)] ^= 1
        machine = Machine(step.accelerator, constants, np.zeros(step.arena_bytes, np.uint8),
                          np.zeros(step.fast_bytes, np.uint8))
        try:
            machine.run(tuple(decode(changed)))
        except ModelError as error:
            codes.add(error.findings[0].code)
            places.add(error.findings[0].where.partition(" at ")[0] or "nowhere")
    assert "nowhere" not in places
    assert {"npusim.out-of-bounds", "npusim.unknown-command"} <= codes
