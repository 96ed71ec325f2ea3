"""The bundle of vectors for a board: the script that checks them runs, and tells what agrees from what does not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
from npusim_cases.judging import expected, samples_of
from npusim_cases.mutations import MUTATIONS
from npusim_cases.pen import all_cases

from vitrify import tflite

ROOT = Path(__file__).parents[2]


def test_the_script_tells_what_agrees(tmp_path: Path) -> None:
    """A plain model in the place of a compiled one, which LiteRT's kernels run without a delegate."""
    case = next(one for one in all_cases() if one.name == "ABS image")
    for name, shift in (("right", 0), ("wrong", 3)):
        source = case.save(tmp_path / f"{name}.tflite")
        model = tflite.read(source)
        samples = [samples_of(model, seed) for seed in range(3)]
        wanted = expected(model, source, samples)
        assert not isinstance(wanted, str)
        np.savez(tmp_path / f"{name}.npz", **{f"x{n}_0": row[0] for n, row in enumerate(samples)},
                 **{f"y{n}_0": row[0].astype(np.int16) + shift for n, row in enumerate(wanted)})
    (tmp_path / "rules.json").write_text(json.dumps({"right": ["one"], "wrong": ["two", "three"]}))
    shutil.copy(ROOT / "scripts" / "check_vectors.py", tmp_path)
    done = subprocess.run([sys.executable, "check_vectors.py", "none"], cwd=tmp_path, text=True, capture_output=True,
                          check=False)
    assert done.returncode == 1, done.stderr
    assert "1 of 2 models agree with the documented numerics" in done.stdout
    assert "wrong differs; it tells: two; three" in done.stdout
    assert "by up to 3" in done.stdout


def test_the_script_is_short_and_needs_no_package_of_ours() -> None:
    lines = (ROOT / "scripts" / "check_vectors.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 50
    assert not any("vitrify" in line for line in lines)


def test_every_rule_has_a_case() -> None:
    names = {case.name for case in all_cases()}
    assert all(mutation.case in names for mutation in MUTATIONS)
