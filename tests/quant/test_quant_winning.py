"""The ledger says what each way to round weights changed and won, as far as calibration saw the layers' inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, statistics_of

from vitrify import ops
from vitrify.ir import LedgerEntry, Model
from vitrify.quant import Recipe, quantize
from vitrify.quant.recipe import parse_recipe


def model() -> Model:
    net = Net(1, 16, 16, 3)
    x = net.add(ops.Relu(), net.conv(net.x, 16))
    return net.model(net.conv(net.add(ops.Relu(), net.conv(x, 8)), 4))


def lines(recipe: Recipe, folder: Path) -> dict[str, LedgerEntry]:
    float_model = model()
    arrays = [{"x": sample} for sample in np.random.default_rng(3).gamma(2, 1, (12, 1, 16, 16, 3)).astype(np.float32)]
    result = quantize(float_model, statistics_of(float_model, folder, recipe, arrays=arrays), recipe)
    return {entry.name: entry for entry in result.ledger.entries}


STEPS = ("weight-clipping", "rounding", "bias-correction")
LEFT_OUT = {"weight-clipping": "weight_clipping = false", "rounding": 'rounding = "nearest"',
            "bias-correction": "bias_correction = false"}


def test_each_step_has_a_line_with_what_it_won(tmp_path: Path) -> None:
    found = lines(Recipe(), tmp_path)
    for name in STEPS:
        entry = found[name]
        after, before = (float(entry.note.split(word)[1].split()[0]) for word in ("layer keeps", "rounding,"))
        assert entry.changes
        assert entry.examples
        assert before - 0.1 <= after < 90, entry.note
        assert "layers measured, on the calibration samples" in entry.note


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_is_left_out_has_none(name: str, tmp_path: Path) -> None:
    found = lines(parse_recipe(LEFT_OUT[name]), tmp_path)
    assert name not in found
