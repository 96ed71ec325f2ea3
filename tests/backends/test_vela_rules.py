"""The rules against the installed compiler: its own tables, the probes, and models of many makers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from vitrify import tflite
from vitrify.backends.vela import check_model
from vitrify.backends.vela.probing import probe_rules
from vitrify.core.errors import VitrifyError
from vitrify.targets import load
from vitrify.targets.ethos_u.cores import core
from vitrify.targets.rules import judge

TARGETS = {"u55": "ethos-u55-128", "u65": "imx93", "u85": "ethos-u85-256"}
SLOW = pytest.mark.slow
PROBED = [pytest.param("u55", marks=SLOW), "u65", "u85"]        # the u55 shares the u65's rules
COMPARED = [pytest.param(TARGETS["u55"], marks=SLOW), TARGETS["u65"], pytest.param(TARGETS["u85"], marks=SLOW)]
ARCHITECTURES = {"u55": "EthosU55", "u65": "EthosU65", "u85": "EthosU85"}
LIMITS = ("process.timeout", "process.memory", "vela.memory")
ROOT = Path(__file__).parents[2] / ".cache"
OTHERS = ("micro_wakeword_int8/okay_nabu.tflite", "mltk_int8/anomaly_detection/anomaly_detection.tflite")
"""One file of each collection of int8 models; the others lie beside it."""
ZOO = sorted((ROOT / "zoo" / "int8").glob("*.int8.tflite"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_tables_are_the_compilers(name: str) -> None:
    from ethosu import regor

    said = regor.tflite_operator_constraints(ARCHITECTURES[name])
    assert core(name).operators == {{"ARGMAX": "ARG_MAX"}.get(kind, kind) for kind in said}


@pytest.mark.parametrize("name", PROBED)
def test_the_compiler_places_every_probe_as_the_rules_say(name: str) -> None:
    results = list(probe_rules(load(TARGETS[name])))
    assert len(results) >= 200
    assert [f"{one.probe.name}: rules {one.probe.codes or 'npu'}, compiler {one.place}: {one.said}"
            for one in results if not one.agrees] == []


def differences(path: Path, target: str) -> list[str]:
    """Name the nodes on which rules and compiler differ; a model on which the compiler stops needs a rule that says so.

    One that does not compile within the limits of time and memory says nothing about rules.
    """
    ours = judge(tflite.read(path).main, load(target))
    try:
        answer = check_model(path, target).placement.verdicts
    except VitrifyError as error:
        stops = [rule for one in ours for rule in one.rules if rule.code == "ethos-u.stops-compiler"]
        return [] if stops or error.findings[0].code in LIMITS else [f"no rule says: {error.findings[0].headline}"]
    return [f"{one.operator} '{one.node}': rules {one.placement} {[r.headline for r in one.rules]}, "
            f"compiler {two.placement} {[r.headline for r in two.rules]}"
            for one, two in zip(ours, answer, strict=True) if (one.placement == "cpu") != (two.placement == "cpu")]


@pytest.mark.parametrize("target", COMPARED)
def test_models_of_other_makers_are_placed_as_the_rules_say(target: str, model_file: Callable[[str], Path]) -> None:
    files = [path for one in OTHERS for path in sorted(model_file(one).parents[0 if one.count("/") == 1 else 1].glob(
        "**/*.tflite"))]
    files = [path for path in files if not path.name.endswith(".float32.tflite")]
    assert len(files) == 16
    compared = {path.name: differences(path, target) for path in files}
    assert {name: found for name, found in compared.items() if found} == {}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS.values())
def test_the_zoo_is_placed_as_the_rules_say(target: str) -> None:
    if not ZOO:
        pytest.skip("the quantized zoo is not there: make zoo-int8")
    chosen = ZOO[:int(os.environ.get("VITRIFY_ZOO_MODELS", len(ZOO)))]
    compared = {path.name: differences(path, target) for path in chosen}
    assert {name: found for name, found in compared.items() if found} == {}
