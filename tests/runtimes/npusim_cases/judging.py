"""What a compiled case gives on the functional model, held against the reference kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

from npusim_cases.compilers import Compilers, Setting
from npusim_cases.pen import Case
from vitrify import ops, tflite
from vitrify.core.errors import VitrifyError
from vitrify.ir import Model
from vitrify.ops.interpreter import Interpreter
from vitrify.ops.reference.integer import lstm
from vitrify.ops.reference.integer.fixed_point import quantize_multiplier
from vitrify.ops.reference.integer.tables import sigmoid_16, tanh_16
from vitrify.runtimes.npusim import Simulator, oracle, outputs_of, read_program

Array = np.ndarray[Any, np.dtype[Any]]
State = Literal["exact", "differs", "error", "refused", "cpu", "no-oracle"]


class Outcome(NamedTuple):
    """What came of a case under a setting. ``cpu``: nothing was left to the NPU; ``refused``: the compiler stopped."""

    case: str
    setting: Setting
    state: State
    said: str = ""

    @property
    def bad(self) -> bool:
        """True where the model of the NPU and the oracle disagree."""
        return self.state in ("differs", "error")


class Judge:
    """Holds one case after the other against the oracle, whose answers it keeps for all settings of a case."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.compilers = folder, Compilers()
        self._name = ""
        self._wanted: list[list[Array]] | str = ""
        self._samples: list[list[Array]] = []

    def close(self) -> None:
        """End the compilers."""
        self.compilers.close()

    def judge(self, case: Case, setting: Setting) -> Outcome:
        """Compile, run and compare."""
        source = self.folder / "case.tflite"
        if self._name != case.name:
            case.save(source)
            self._ask(source, bool(case.notes.get("positive")))
            self._name = case.name
        if isinstance(self._wanted, str):
            return Outcome(case.name, setting, "no-oracle", self._wanted)
        made, said = self.compilers.compile(source, self.folder / "out", setting)
        if made is None:
            return Outcome(case.name, setting, "refused", said)
        try:
            return self._compared(case, setting, made)
        except VitrifyError as error:
            finding = error.findings[0]
            return Outcome(case.name, setting, "error", f"{finding.code}: {finding.headline} ({finding.where})")
        finally:
            made.unlink(missing_ok=True)

    def _ask(self, source: Path, positive: bool) -> None:
        model = tflite.read(source)
        self._samples = [samples_of(model, seed) for seed in range(3)]
        if positive:
            self._samples = [[np.maximum(np.abs(values), 1) for values in sample] for sample in self._samples]
        self._wanted = expected(model, source, self._samples)

    def _compared(self, case: Case, setting: Setting, made: Path) -> Outcome:
        program = read_program(made)
        if not program.npu:
            return Outcome(case.name, setting, "cpu")
        simulator = Simulator(program)
        try:
            for sample, wanted in zip(self._samples, self._wanted, strict=True):
                given = outputs_of(simulator.run(sample), program)
                apart = [(a.reshape(b.shape).astype(np.int64) - b) for a, b in zip(given, wanted, strict=True)]
                wrong = sum(int((d != 0).sum()) for d in apart)
                if wrong:
                    worst = max(int(np.abs(d).max(initial=0)) for d in apart)
                    return Outcome(case.name, setting, "differs", f"{wrong} of {sum(d.size for d in apart)} values, "
                                   f"by up to {worst}")
        finally:
            simulator.close()
        return Outcome(case.name, setting, "exact")


def samples_of(model: Model, seed: int) -> list[Array]:
    """Values over the whole range; of the third sample half are at its ends."""
    random = np.random.default_rng(seed)
    found = []
    for tensor in model.main.inputs:
        info = np.iinfo(tensor.dtype.numpy)
        values = random.integers(info.min, info.max, tensor.shape, tensor.dtype.numpy, endpoint=True)
        if seed == 2:
            ends = random.choice(np.array([info.min, info.max, 0], tensor.dtype.numpy), tensor.shape)
            values = np.where(random.random(tensor.shape) < 0.5, ends, values)
        found.append(np.asarray(values, tensor.dtype.numpy))
    return found


def expected(model: Model, source: Path, samples: Sequence[Sequence[Array]]) -> list[list[Array]] | str:
    """What the oracle gives, or why there is none."""
    if any(True for _ in model.main.nodes_of(ops.UnidirectionalSequenceLSTM)):
        return _with_native_gates(model, samples)
    if any(True for kind in (ops.Sum, ops.Neg) for _ in model.main.nodes_of(kind)):
        return _in_fixed_point(model, samples)
    plain = any(True for kind in (ops.Elu,) for _ in model.main.nodes_of(kind))
    oracle(model)
    path = source.with_name("oracle.tflite")
    tflite.write(model, path)
    try:
        return _run(path, samples, reference=not plain)
    except (RuntimeError, ValueError) as error:
        return " ".join(str(error).split())[:200]


def _run(path: Path, samples: Sequence[Sequence[Array]], reference: bool) -> list[list[Array]]:
    """LiteRT's reference kernels; its other plain ones for ELU, which the reference kernels leave out."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kind = OpResolverType.BUILTIN_REF if reference else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    answers = []
    for sample in samples:
        interpreter = Interpreter(str(path), experimental_op_resolver_type=kind)
        interpreter.allocate_tensors()
        for detail, values in zip(interpreter.get_input_details(), sample, strict=True):
            interpreter.set_tensor(detail["index"], values)
        interpreter.invoke()
        answers.append([np.array(interpreter.get_tensor(one["index"])) for one in interpreter.get_output_details()])
    return answers


def _with_native_gates(model: Model, samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """An LSTM with the functions that the NPU has.

    The kernel computes its gates with another sigmoid and tanh than LOGISTIC and TANH in 16 bits have. The NPU has one
    of each only, so every compiler takes those, and bounds the sigmoid to what the kernel's reaches.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lstm, "logistic", lambda x, bits: np.clip(sigmoid_16(3 * x << bits >> 3), 11, 32757))
        patch.setattr(lstm, "tanh", lambda x, bits: tanh_16(3 * x << bits >> 3))
        return [_traced(model, sample) for sample in samples]


def _in_fixed_point(model: Model, samples: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """SUM and NEG by their definition, rescaled with one rounding.

    LiteRT's reference kernel of SUM reads int8 as uint8 and its other one sums in float32, so that ties fall to either
    side; its kernel of NEG takes steps for numbers, without zero points.
    """
    node = next(iter(model.main))
    x, y = node.input(0).quantization, node.output.quantization
    assert x is not None
    assert y is not None
    by = quantize_multiplier(float(x.scale[0]) / float(y.scale[0]))
    info = np.iinfo(node.output.dtype.numpy)
    found = []
    for (values,) in samples:
        total = values.astype(np.int64) - int(x.zero_point[0])
        if isinstance(node.op, ops.Sum):
            axes = tuple(int(axis) for axis in np.asarray(node.input(1).data).reshape(-1))
            total = total.sum(axis=axes).reshape(node.output.shape)
        else:
            total = -total
        shift = 31 - int(by.shift)
        scaled = (total * int(by.quantized) + (1 << shift - 1) >> shift) + int(y.zero_point[0])
        found.append([np.clip(scaled, info.min, info.max).astype(node.output.dtype.numpy)])
    return found


def _traced(model: Model, sample: Sequence[Array]) -> list[Array]:
    values = Interpreter(model).trace(list(sample))
    return [np.asarray(values[tensor]) for tensor in model.main.outputs]
