"""Peak memory of calibration from few samples to many: it must not grow.

Each figure is the largest resident size of a process that does nothing but calibrate: the float model, one sample at a
time from a file of 8-bit pixels, all that the quantizer asks for observed. `python benchmarks/quality/memory.py` writes
the section of docs/benchmarks.md; `--only MODEL CALIBRATOR...` measures some rows of it and keeps the others;
`--one MODEL CALIBRATOR N DATA` is what each process runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
COUNTS = (16, 64, 250, 1000)
MODELS = {"MobileNetV2, 96 pixels": ("zoo/mobilenet_v2.onnx", 96),
          "YOLOv8n, 320 pixels": ("models/nudenet_yolov8n/320n.onnx", 320)}
"""Small pictures: less stands beside what might grow."""
LIMIT = 1.1


def calibrators() -> list[str]:
    """All that there are."""
    from typing import get_args

    from vitrify.quant.recipe import Calibrator

    return list(get_args(Calibrator))


def prepare(name: str, size: int, folder: Path) -> tuple[Path, Path]:
    """Write the float model and its pixels, smooth noise with edges as pictures have them."""
    import vitrify as vt
    from vitrify import tflite
    from vitrify.passes import to_integer_forms

    model = vt.load(resized(ROOT / ".cache" / name, size, folder))
    to_integer_forms(model)
    path, data = folder / f"{size}.tflite", folder / f"{size}.npy"
    tflite.write(model, path)
    pixels = np.lib.format.open_memmap(data, "w+", np.uint8, (max(COUNTS), size, size, 3))
    random = np.random.default_rng(0)
    for picture in pixels:
        coarse = random.integers(0, 256, (size // 16 + 1, size // 16 + 1, 3)).repeat(16, 0).repeat(16, 1)
        picture[:] = np.clip(coarse[:size, :size] + random.integers(-20, 20, (size, size, 3)), 0, 255)
    pixels.flush()
    return path, data


def resized(source: Path, size: int, folder: Path) -> Path:
    """Write the model for another size of pictures than it was exported for."""
    import onnx

    model = onnx.load(source)
    for dim, extent in zip(model.graph.input[0].type.tensor_type.shape.dim, (1, 3, size, size), strict=True):
        dim.dim_value = extent
    for shaped in (model.graph.value_info, model.graph.output):
        for value in shaped:
            value.type.tensor_type.ClearField("shape")
    onnx.save(model, folder / source.name)
    return folder / source.name


def one(model: str, calibrator: str, count: int, data: str) -> None:
    """Calibrate in this process and print what it took."""
    from vitrify import tflite
    from vitrify.data import open_samples
    from vitrify.quant import Recipe
    from vitrify.runtimes.litert.calibrate import calibrate_here

    interface = tflite.read(model).interface
    assert interface is not None
    samples = open_samples(data, interface, limit=count)
    started = time.monotonic()
    statistics = calibrate_here(model, samples, Recipe(calibrator=calibrator))  # type: ignore[arg-type]
    assert statistics.samples == count
    status = Path("/proc/self/status").read_text()          # getrusage would count what the parent had when it forked
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    print(json.dumps({"mb": peak / 1024, "seconds": time.monotonic() - started}))


def measure(model: Path, calibrator: str, count: int, data: Path) -> dict[str, float]:
    """Run ``one`` in a process of its own."""
    ran = subprocess.run([sys.executable, __file__, "--one", str(model), calibrator, str(count), str(data)],
                         capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def kept_rows() -> dict[str, str]:
    """The rows of the page as it is, by their first two columns."""
    text = PAGE.read_text() if PAGE.exists() else ""
    rows = [line for line in text.splitlines() if any(line.startswith(f"| {title} |") for title in MODELS)]
    return {row_key(*[cell.strip() for cell in row.split("|")[1:3]]): row for row in rows}


def row_key(title: str, calibrator: str) -> str:
    """How a row begins."""
    return f"| {title} | {calibrator} |"


def main(title: str = "", chosen: Sequence[str] = ()) -> int:
    """Measure everything, or some calibrators for one model, and write the section."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from sections import put_section

    from vitrify.core.files import temporary_folder

    head = ["## Memory of calibration", "",
            "Largest resident size of the process that calibrates, in MB, by the number of samples. Moments for "
            "rounding and means for biases are taken as by default. The last column is that of most samples by that "
            "of fewest.",
            "", "| model | calibrator | " + " | ".join(map(str, COUNTS)) + " | ratio |",
            "|---|---|" + "---:|" * (len(COUNTS) + 1)]
    rows = kept_rows() if title else {}
    worst = 0.0
    with temporary_folder() as folder:
        for name, (file, size) in MODELS.items():
            if title not in ("", name):
                continue
            model, data = prepare(file, size, Path(folder))
            for calibrator in chosen or calibrators():
                found = [measure(model, calibrator, count, data)["mb"] for count in COUNTS]
                worst = max(worst, found[-1] / found[0])
                rows[row_key(name, calibrator)] = (row_key(name, calibrator) + " " + " | ".join(
                    f"{mb:.0f}" for mb in found) + f" | {found[-1] / found[0]:.2f} |")
                print(rows[row_key(name, calibrator)], flush=True)
                put_section(PAGE, "calibration-memory", [*head, *rows.values()])
    print(f"largest ratio {worst:.3f}, allowed {LIMIT}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    elif sys.argv[1:2] in ([], ["--only"]):
        sys.exit(main(*sys.argv[2:3], chosen=sys.argv[3:]))
    else:
        sys.exit(__doc__)
