"""Mixed precision: as few operators in 16 bits as a goal takes, whatever the number of processes, stopped or not."""

import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from vitrify import ops
from vitrify.core.errors import UsageError, VitrifyError
from vitrify.core.findings import Severity
from vitrify.core.progress import Silent
from vitrify.ir import DType, Graph, Model, Tensor
from vitrify.pipeline.options import DataOptions, QuantizeOptions
from vitrify.pipeline.quantizing.search import Goal, How, quantize_well, read_goal
from vitrify.pipeline.quantizing.search.candidates import Worth
from vitrify.pipeline.quantizing.search.kept import checkpoint, resumable
from vitrify.pipeline.quantizing.search.narrowing import pruned, shortest
from vitrify.pipeline.steps import calibrate_model
from vitrify.quant import QuantizeResult, Recipe
from vitrify.quant.recipe import Override, format_recipe, parse_recipe
from vitrify.tflite import read, write

SAMPLES = 6
TIED = Recipe(split_levels=1)
"""Leaves the parts of joins as they are."""


def branches(x: Tensor, graph: Graph, name: str, random: np.random.Generator) -> Tensor:
    """Three convolutions with x * sigmoid(x) behind, of sizes 1, 2 and 64, joined."""
    parts = []
    for scale in (1, 2, 64):
        made = convolution(graph, x, f"{name}/conv_{scale}", (8, 3, 3, x.shape[-1]), scale / 5, random)
        gate = graph.add(ops.Logistic(), [made], name=f"{name}/gate_{scale}").output
        parts.append(graph.add(ops.Mul(), [made, gate], name=f"{name}/mul_{scale}").output)
    return graph.add(ops.Concatenation(axis=3), parts, name=f"{name}/join").output


def convolution(graph: Graph, x: Tensor, name: str, shape: tuple[int, ...], size: float, random: np.random.Generator,
                weigh: bool = False) -> Tensor:
    weights = (random.standard_normal(shape) * size).astype(np.float32)
    if weigh:                                          # what reads the join hears the quiet member above all
        weights /= np.repeat([1, 2, 4096], 8).astype(np.float32)
    inputs = [x, Tensor(f"{name}/w", DType.FLOAT32, shape, data=weights),
              Tensor(f"{name}/b", DType.FLOAT32, (shape[0],), data=np.zeros(shape[0], np.float32))]
    return graph.add(ops.Conv2D(), inputs, name=name).output


def network() -> Model:
    """Branches of very different size that are joined, twice, and a convolution."""
    random, graph = np.random.default_rng(3), Graph()
    x = Tensor("x", DType.FLOAT32, (1, 12, 12, 4))
    graph.inputs.append(x)
    y = branches(x, graph, "first", random)
    y = convolution(graph, y, "between", (8, 1, 1, 24), 0.2, random, weigh=True)
    y = branches(y, graph, "second", random)
    graph.set_outputs([convolution(graph, y, "last", (4, 1, 1, 24), 0.2, random, weigh=True)])
    return Model([graph])


class Case:
    """The network in a folder, calibrated."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "float.tflite"
        write(network(), self.path)
        random = np.random.default_rng(1)
        np.save(folder / "samples.npy", random.standard_normal((SAMPLES, 12, 12, 4)).astype(np.float32))
        self.data, self.model = DataOptions(path=folder / "samples.npy"), read(self.path)
        self.statistics, _ = calibrate_model(self.path, self.model, self.data, TIED, None, Silent())

    def search(self, goal: Goal, state: Path | None = None, jobs: int = 1,
               recipe: Recipe = TIED) -> tuple[QuantizeResult, Recipe]:
        how = How(goal=goal, state=state, jobs=jobs)
        return quantize_well(self.model, self.path, self.statistics, recipe, self.data, how)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("search"))


def bits(result: QuantizeResult) -> list[str]:
    return [f"{node.op.kind} {[t.dtype.label for t in node.outputs]}" for node in result.model.main]


GOALS = {
    "kept_by_8_bits": ("sqnr>=6", ["quant.reached"], 0.0),
    "by_few": ("sqnr>=28", ["quant.mixed"], 0.3),
    "by_none": ("sqnr>=80", ["quant.mixed"], 0.4),
}


@pytest.mark.parametrize("name", GOALS)
def test_as_few_as_reach_the_goal(case: Case, name: str) -> None:
    asked, codes, most = GOALS[name]
    result, _ = case.search(read_goal(asked))
    found = [f for f in result.findings if f.code.startswith("quant.")]
    assert [f.code for f in found] == codes
    assert len(result.plan.wide) <= most * len(result.model.main)
    metric, _, least = asked.partition(">=")
    assert found[0].headline.startswith(f"{metric} >= {float(least):.1f} dB is {'not ' * (name == 'by_none')}reached: ")
    assert (found[0].severity is Severity.WARNING) == (name == "by_none")


BUDGETS = {
    "below_all_in_8_bits": ({"budget_ms": 1e-4}, "quant.over-budget",
                            r"cannot be met: all in 8 bits takes [\d.]+ ms on imx93 .* 0\.0001 ms was asked"),
    "below_with_a_goal": ({"quality": "sqnr>=28", "budget_ms": 1e-4}, "quant.over-budget", "cannot be met"),
    "as_good_as_it_gets": ({"budget_ms": 1e4}, "quant.mixed", r"sqnr is 3\d.*, [\d.]+ ms \(\+[\d.]+\) on imx93"),
    "no_budget": ({"quality": "sqnr>=28"}, "quant.mixed", r"is reached: \d+.* of 30 .* ms \(\+[\d.]+\) on imx93"),
    "reached_in_8_bits": ({"quality": "sqnr>=6"}, "quant.reached", r"with all in 8 bits, [\d.]+ ms on imx93"),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_the_time_is_told(case: Case, name: str) -> None:
    asked, code, said = BUDGETS[name]
    result, recipe = case.search(read_goal(**asked, target="imx93"))        # type: ignore[arg-type]
    found = next(f for f in result.findings if f.code.startswith("quant."))
    assert found.code == code
    assert re.search(said, found.headline), found.headline
    assert found.help or code == "quant.reached"
    if code == "quant.over-budget":
        assert not result.plan.wide
        assert not recipe.overrides


STOPS = ("ordering.rounding_costs", "searching.shortest", "searching.pruned")
"""What a search is doing when it is stopped."""


def test_stopped_or_in_parallel_the_answer_is_the_same(case: Case, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    goal, state = read_goal("sqnr>=28"), tmp_path / "out.search"
    first, recipe = case.search(goal, state)
    assert not state.exists()
    both, same = case.search(goal, tmp_path / "other.search", jobs=2)
    assert (bits(both), same) == (bits(first), recipe)

    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    left = set[str]()
    for place in STOPS:                                                 # stopped again and again, later each time
        monkeypatch.setattr(f"vitrify.pipeline.quantizing.search.{place}", stop)
        with pytest.raises(KeyboardInterrupt):
            case.search(goal, state)
        monkeypatch.undo()
        lines = state.read_text().splitlines()
        assert left < set(lines), f"stopped in {place}, nothing more is kept"
        assert len(set(lines)) == len(lines), "something was computed twice"
        left = set(lines)
    state.write_text("\n".join([*lines[:-1], lines[-1][:20]]))          # killed in the middle of a line
    again, found = case.search(goal, state)
    assert (bits(again), found) == (bits(first), recipe)
    told = next(f for f in again.findings if f.code == "quant.mixed")
    assert "taken from before" in told.why
    assert not state.exists()


def test_another_search_does_not_take_what_one_left(case: Case, tmp_path: Path) -> None:
    state = tmp_path / "out.search"
    state.write_text('["other", "a", 99.0, 0, 10]\nnonsense\n')
    result, _ = case.search(read_goal("sqnr>=28"), state)
    assert "taken from before" not in next(f for f in result.findings if f.code == "quant.mixed").why


def test_the_recipe_that_was_found_needs_no_search(case: Case) -> None:
    first, recipe = case.search(read_goal("sqnr>=28"))
    again, same = case.search(Goal(), recipe=parse_recipe(format_recipe(recipe)))
    assert same == recipe
    assert bits(again) == bits(first)


REFUSED = {
    "no_such_metric": ({"target_quality": "psnr>=3"}, "search.metric"),
    "no_number": ({"target_quality": "sqnr>=1e-"}, "search.goal"),
    "no_form": ({"target_quality": "sqnr<=3"}, "search.goal"),
    "two_goals": ({"target_quality": "sqnr>=3", "metric": "top1"}, "search.goal"),
    "a_drop_of_nothing": ({"max_drop": 1.0}, "search.goal"),
    "a_negative_drop": ({"metric": "top1", "max_drop": -1.0}, "search.goal"),
    "more_than_all": ({"target_quality": "top1>=101"}, "search.goal"),
    "a_budget_for_nothing": ({"budget_ms": 3.0}, "search.budget"),
    "a_chip_that_is_none": ({"target_quality": "sqnr>=30", "target": "imx94"}, "target.unknown"),
    "what_all_reach": ({"target_quality": "sqnr>=-5"}, "search.goal"),
    "what_16_bits_cannot": ({"target_quality": "sqnr>=120"}, "search.goal"),
    "a_share_for_percent": ({"target_quality": "top1>=0.99"}, "search.goal"),
    "a_drop_to_nothing": ({"metric": "cosine", "max_drop": 1.0}, "search.goal"),
    "a_drop_of_no_number": ({"metric": "top1", "max_drop": float("nan")}, "search.goal"),
    "a_drop_from_no_best": ({"metric": "sqnr", "max_drop": 0.5}, "search.goal"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_goals_are_refused(name: str) -> None:
    given, code = REFUSED[name]
    with pytest.raises(VitrifyError) as caught:
        msgspec.convert(given, QuantizeOptions).goal()
    assert [f.code for f in caught.value.findings] == [code]
    assert all(f.help for f in caught.value.findings)


def test_a_metric_that_says_nothing_of_the_model_is_refused(case: Case) -> None:
    for asked, why in (("top1>=99", r"output .* \[1, 12, 12, 4\]: a map"), ("agreement>=99", "no output is class"),
                       ("detections>=98", r"no output is \[1, 4 \+ classes")):
        with pytest.raises(UsageError, match=why) as caught:
            case.search(read_goal(asked))
        (found,) = caught.value.findings
        assert found.code == "search.misfit"
        assert found.help == "say one of --target-quality 'sqnr>=35', 'cosine>=0.999'"


def test_what_the_recipe_says_of_a_node_stays(case: Case) -> None:
    kept = Override(name="first/*", activations="int8")
    result, recipe = case.search(read_goal("sqnr>=80"), recipe=msgspec.structs.replace(TIED, overrides=(kept,)))
    names = {name for rule in recipe.overrides for name in rule.nodes}
    assert names
    assert not any(name.startswith("first/") for name in names)
    assert "recipe.overruled" not in {f.code for f in result.findings}


GOALS_IN_FILES = {
    "quality": ('target_quality = "sqnr>=20"', {}, "sqnr >= 20.0 dB"),
    "drop": ('metric = "top1"\nmax_drop = 2.0', {}, "top1 >= 98.0 %"),
    "budget": ('budget_ms = 3.0\ntarget = "imx93"', {}, "3 ms on imx93"),
    "another_by_option": ('metric = "top1"\nmax_drop = 2.0', {"target_quality": "sqnr>=20"}, "sqnr >= 20.0 dB"),
    "another_drop": ('metric = "top1"\nmax_drop = 2.0', {"max_drop": 1.0}, "top1 >= 99.0 %"),
    "least_db_by_option": ('target_quality = "sqnr>=20"', {"least_db": 25.0}, ""),
}


@pytest.mark.parametrize("name", GOALS_IN_FILES)
def test_a_recipe_says_the_goal(name: str, tmp_path: Path) -> None:
    text, options, said = GOALS_IN_FILES[name]
    file = tmp_path / "recipe.toml"
    file.write_text(text)
    given = msgspec.convert({"recipe": str(file), **options}, QuantizeOptions, dec_hook=lambda kind, value: kind(value))
    assert str(given.goal()) == said
    assert parse_recipe(format_recipe(given.effective())) == given.effective()
    assert given.effective().without_goal == msgspec.structs.replace(Recipe(), least_db=options.get("least_db", 0.0))


@pytest.mark.parametrize("needed", [[0], [3, 4], [0, 19], [], list(range(20))], ids=str)
def test_pruning_keeps_what_is_needed(needed: list[int]) -> None:
    names = [f"n{i}" for i in range(20)]
    wanted = {f"n{i}" for i in needed}
    kept = pruned(names, lambda sets: [Worth(float(wanted <= set(s)), len(s), 20) for s in sets],
                  lambda worth: worth.quality > 0)
    assert wanted <= set(kept)
    assert len(kept) <= max(2, len(needed) + 4)


@pytest.mark.parametrize("guess", [None, 0, 30, 99])
@pytest.mark.parametrize("place", [0, 1, 37, 99, 100])
def test_the_first_that_is_good_is_found(place: int, guess: int | None) -> None:
    sets = [tuple(f"n{i}" for i in range(count + 1)) for count in range(100)]
    tried: list[int] = []

    def worth(asked: object) -> list[Worth]:
        sizes = [len(s) for s in asked]                 # type: ignore[attr-defined]
        tried.extend(sizes)
        return [Worth(float(size), size, 100) for size in sizes]

    found = shortest(sets, worth, lambda w: w.quality > place, guess)
    if place == 100:
        assert found is None
    else:
        assert found is not None
        assert place <= found <= place + 2
        assert len(tried) <= 20


def test_a_command_that_is_killed_goes_on(case: Case, tmp_path: Path) -> None:
    """The program itself, killed as soon as its search has left something; what it leaves has the documented names."""
    data = case.path.parent / "samples.npy"
    (tmp_path / "tied.toml").write_text(format_recipe(TIED))

    def command(name: str) -> list[str]:
        return [sys.executable, "-m", "vitrify", "quantize", str(case.path), "--data", str(data), "-o", name, "-q",
                "--recipe", "tied.toml", "--target-quality", "sqnr>=28", "--save-recipe", f"{name}.toml"]

    subprocess.run(command("whole.tflite"), cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    state, seen = tmp_path / "made.tflite.search", tmp_path / "made.tflite.search.npz"
    running = subprocess.Popen(command("made.tflite"), cwd=tmp_path, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < deadline and not (
            state.exists() and len(state.read_text().splitlines()) > 2):          # a candidate is among them
        time.sleep(0.02)
    running.kill()
    running.wait()
    assert state.exists()
    assert seen.exists()
    again = subprocess.run(command("made.tflite"), cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "taken from before" in again.stdout
    assert not state.exists()
    assert not seen.exists()
    for name in ("tflite", "tflite.toml"):
        assert (tmp_path / f"made.{name}").read_bytes() == (tmp_path / f"whole.{name}").read_bytes()
    other = [word.replace("sqnr>=28", "top1>=99") for word in command("made.tflite")]
    refused = subprocess.run(other, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert "search.misfit" in refused.stdout
    assert not list(tmp_path.glob("*.search*"))


def test_an_interrupted_search_says_what_stays(tmp_path: Path) -> None:
    state = tmp_path / "o.tflite.search"
    with pytest.raises(KeyboardInterrupt) as told, resumable(state):
        raise KeyboardInterrupt
    assert str(told.value) == ""
    state.write_text("kept")
    checkpoint(state).write_bytes(b"kept")
    with pytest.raises(KeyboardInterrupt) as told, resumable(state):
        raise KeyboardInterrupt
    assert str(told.value) == ("what it has found stays in o.tflite.search and o.tflite.search.npz, and the same call "
                               "goes on from there")
