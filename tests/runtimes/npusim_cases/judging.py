"""What a compiled case gives on the functional model, held against the reference kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from npusim_cases.compilers import Compilers, Setting
from npusim_cases.pen import Case

from vitrify import ops, tflite
from vitrify.core.errors import VitrifyError
from vitrify.ir import DType, Model
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
            self._ask(source)
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

    def _ask(self, source: Path) -> None:
        model = tflite.read(source)
        self._samples = [samples_of(model, seed) for seed in range(3)]
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
    plain = any(True for kind in (ops.Sum, ops.Elu) for _ in model.main.nodes_of(kind))
    oracle(model)
    path = source.with_name("oracle.tflite")
    tflite.write(model, path)
    try:
        return _run(path, samples, reference=not plain)
    except (RuntimeError, ValueError) as error:
        return " ".join(str(error).split())[:200]


def _run(path: Path, samples: Sequence[Sequence[Array]], reference: bool) -> list[list[Array]]:
    """LiteRT's reference kernels; its other plain ones for ELU, and for SUM, whose reference kernel reads other types."""
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
