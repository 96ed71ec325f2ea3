"""Each numeric rule of the functional model is seen: altered, a case differs from the oracle."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))
from npusim_cases.compilers import COMPILERS, Compilers, Setting
from npusim_cases.judging import expected, samples_of
from npusim_cases.mutations import MUTATIONS, Mutation
from npusim_cases.pen import all_cases

from vitrify import tflite
from vitrify.core.errors import VitrifyError
from vitrify.runtimes.npusim import Program, Simulator, outputs_of, read_program
from vitrify.runtimes.npusim.machine import features

CASES = {case.name: case for case in all_cases()}
Run = tuple[Program, list[Any], list[Any]]


class Runs:
    """The compiled cases, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.compilers = folder, Compilers()
        self._made: dict[tuple[str, str], Run] = {}

    def of(self, case: str, core: str) -> Run:
        if (case, core) not in self._made:
            source = CASES[case].save(self.folder / "case.tflite")
            compiler = next(one for one in COMPILERS if one.core == core)
            made, said = self.compilers.compile(source, self.folder / "out", Setting(compiler))
            assert made is not None, said
            model = tflite.read(source)
            samples = [samples_of(model, seed) for seed in range(3)]
            wanted = expected(model, source, samples)
            assert not isinstance(wanted, str)
            self._made[case, core] = read_program(made), samples, wanted
        return self._made[case, core]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    found = Runs(tmp_path_factory.mktemp("rules"))
    yield found
    found.compilers.close()


def differs(run: Run) -> bool:
    program, samples, wanted = run
    simulator = Simulator(program)
    try:
        for sample, answers in zip(samples, wanted, strict=True):
            given = outputs_of(simulator.run(sample), program)
            if any((a.reshape(b.shape) != b).any() for a, b in zip(given, answers, strict=True)):
                return True
    except (VitrifyError, ArithmeticError, TypeError):
        return True
    finally:
        simulator.close()
    return False


@pytest.fixture(autouse=True)
def _nothing_altered_is_kept() -> Iterator[None]:
    """Places that an altered rule gave are kept for the layouts that had them, and other tests have the same ones."""
    yield
    features.pieces.cache_clear()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.rule)
def test_an_altered_rule_shows(mutation: Mutation, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.of(mutation.case, mutation.core)
    assert not differs(run)
    mutation.apply(monkeypatch)
    assert differs(run)
