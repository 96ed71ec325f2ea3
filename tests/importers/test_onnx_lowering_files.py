"""Files of lowerings are imported when a model needs them, and the list of what is in which is current."""

from __future__ import annotations

import json
import subprocess
import sys

from vitrify.importers.onnx.lowerings import FILES, LOWERINGS, declared


def test_the_list_is_current() -> None:
    assert json.loads(FILES.read_text()) == declared(), "say: python -m vitrify.importers.onnx.lowerings"
    assert set(LOWERINGS) == set(LOWERINGS.loaded)


def test_only_what_is_needed_is_imported() -> None:
    script = """
import sys
from vitrify.importers.onnx.driver import LOWERINGS
before = sorted(set(LOWERINGS.files.values()) & set(sys.modules))
assert "Softmax" in LOWERINGS and "NoSuch" not in LOWERINGS and "Einsum" in set(LOWERINGS)
function = LOWERINGS["Softmax"]
print(before, function.__module__, "vitrify.importers.onnx.lowerings.einsum" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[] vitrify.importers.onnx.lowerings.softmax False\n"
