"""Write the vectors that tell whether a chip computes as documented: small models, inputs, and what must come out.

    python scripts/vectors.py FOLDER [TARGET]

Each model was chosen because it tells a numeric rule from another; `rules.json` says which. On the board, in the
folder, `python3 check_vectors.py` says where silicon agrees. The expected values match the documented numerics and the
reference kernels; nothing here was compared with silicon.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "runtimes"))
from npusim_cases.compilers import COMPILERS, Compilers, Setting  # noqa: E402
from npusim_cases.judging import expected, samples_of  # noqa: E402
from npusim_cases.mutations import MUTATIONS  # noqa: E402
from npusim_cases.pen import all_cases  # noqa: E402

from vitrify import tflite  # noqa: E402


def main() -> int:
    """Write the bundle; 1 if a model cannot be compiled."""
    folder, target = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "ethos-u65-256"
    folder.mkdir(parents=True, exist_ok=True)
    cases, compilers, rules = {case.name: case for case in all_cases()}, Compilers(), {}
    for name, core in dict.fromkeys((one.case, one.core) for one in MUTATIONS):
        stem = f"{name} {core}".lower().replace(" ", "_").replace(",", "")
        source = cases[name].save(folder / f"{stem}.source.tflite")
        compiler = next(one for one in COMPILERS if one.core == core)
        made, said = compilers.compile(source, folder / "out", Setting(compiler, target))
        if made is None:
            print(f"{name}: {said}")
            return 1
        made.replace(folder / f"{stem}.tflite")
        model = tflite.read(source)
        samples = [samples_of(model, seed) for seed in range(3)]
        wanted = expected(model, source, samples)
        assert not isinstance(wanted, str), wanted
        np.savez_compressed(folder / f"{stem}.npz", **{
            f"{kind}{number}_{place}": values for kind, arrays in (("x", samples), ("y", wanted))
            for number, row in enumerate(arrays) for place, values in enumerate(row)})
        rules[stem] = [one.rule for one in MUTATIONS if (one.case, one.core) == (name, core)]
        source.unlink()
    compilers.close()
    shutil.rmtree(folder / "out")
    (folder / "oracle.tflite").unlink(missing_ok=True)
    (folder / "rules.json").write_text(json.dumps(rules, indent=1), encoding="utf-8")
    shutil.copy(ROOT / "scripts" / "check_vectors.py", folder)
    print(f"{len(rules)} models for {target}, {len(MUTATIONS)} rules: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
