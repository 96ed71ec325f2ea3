"""Export larger sizes of a network that the zoo describes; runs in the zoo's own environment.

    python export.py NAME ...

The names are those of ``[export]`` in models.toml. Files go to .cache/latency/NAME.onnx with their samples beside them.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "zoo"))


def main() -> None:
    """Build and export the models named on the command line."""
    import export
    import table
    import torch

    table.CACHE = HERE.parent.parent / ".cache" / "latency"
    table.CACHE.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    export.import_torchvision()
    export.BATCHES = export.BATCH = 1
    rows = tomllib.loads((HERE / "models.toml").read_text())["export"]
    for name in sys.argv[1:]:
        entry = table.entry(name, {"title": name, "family": "", **rows[name]})
        export.export(entry, export.prepared(entry, export.built(entry)))


if __name__ == "__main__":
    main()
