"""Convert and quantize exported models to int8 on one sample of random pixels: .cache/latency/NAME.tflite.

    python quantize.py NAME ...
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "zoo"))
CACHE = HERE.parent.parent / ".cache" / "latency"


def quantize(name: str) -> Path:
    """Write the int8 file of one exported model."""
    import int8
    import table

    from vitrify import tflite
    from vitrify.pipeline.steps import quantize_model
    from vitrify.quant import Recipe

    table.CACHE, int8.CALIBRATED = CACHE, 1
    rows = tomllib.loads((HERE / "models.toml").read_text())["export"]
    entry = table.entry(name, {"title": name, "family": "", **rows[name]})
    with tempfile.TemporaryDirectory() as folder:
        model, path = int8.float_file(entry, Path(folder))
        original, int8.is_heavy = int8.is_heavy, lambda _: False
        statistics = int8.calibrated(entry, model, path, Path(folder))
        int8.is_heavy = original
    file = CACHE / f"{name}.tflite"
    tflite.write(quantize_model(model, statistics, Recipe()).model, file)
    return file


if __name__ == "__main__":
    for given in sys.argv[1:]:
        print(quantize(given), flush=True)
