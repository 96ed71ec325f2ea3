"""Task results of pretrained models before and after int8: docs/tasks_int8.md, from real runs.

What is measured, and what is asked, stands in tests/road/int8_*.py, which tests run too. `tasks.py NAME...` measures
some rows and keeps the others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tasks_int8.md"
KEPT = ROOT / ".cache" / "bench" / "tasks.json"
CACHE = ROOT / ".cache" / "models"
HEAD = """# Tasks in int8

What quantization does to what a model is for. Each row is a run: the published weights, quantized with the defaults, in
LiteRT beside the float model, on real pictures and sounds where there are some. The sets are small, as no larger ones
come with any package: one photo of 20 is 5 points. *Other int8* is the file that the model's authors quantized
themselves, where they publish one. To measure anew: `make bench-tasks`.

| model | measured | float | int8 | other int8 | asked | holds |
|---|---|---:|---:|---:|---|---|
"""


def find(name: str) -> Path:
    """A file of a model, fetched on first use."""
    path = CACHE / name
    if not path.exists():
        subprocess.run([sys.executable, str(ROOT / "scripts" / "fetch_models.py"), str(CACHE), name.split("/")[0]],
                       check=True)
    return path


def main(names: list[str]) -> int:
    """Measure and write the page; the status is 1 when a row does not hold that is told to."""
    sys.path[:0] = [str(ROOT / "tests" / "road")]
    import int8_listening
    import int8_seeing
    import int8_small
    from int8_tasks import TASKS

    from vitrify.core.files import temporary_folder

    assert int8_seeing
    assert int8_listening
    assert int8_small
    rows: dict[str, list[str]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    failed = False
    for name, entry in TASKS.items():
        if names and name not in names:
            continue
        try:
            with temporary_folder() as folder:
                found = entry.measure(find, folder)
        except Exception:   # one model must not keep the others from being measured; what happened is printed
            traceback.print_exc()
            failed = True
            continue
        rows[name] = [entry.title, entry.measured, found.before or "-", found.after, found.other or "-", entry.asked,
                      "yes" if found.holds else "**no**"]
        failed |= entry.met and not found.holds
        print("| " + " | ".join(rows[name]) + " |", flush=True)
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps(rows, indent=1))
        lines = ["| " + " | ".join(rows[one]) + " |" for one in TASKS if one in rows]
        PAGE.write_text(HEAD + "\n".join(lines) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
