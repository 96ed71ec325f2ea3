"""What a start loads: the heavy packages wait until a command needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "onnx", "onnxruntime", "ai_edge_litert", "PIL", "ethosu", "rich", "msgspec", "google.protobuf")
READING = ("onnx", "onnxruntime", "ai_edge_litert", "PIL", "ethosu", "rich")


@pytest.mark.parametrize(("code", "absent"), [
    ("import vitrify", HEAVY),
    ("import vitrify; dir(vitrify); vitrify.__version__", HEAVY),
    ("import vitrify; vitrify.load, vitrify.quantize, vitrify.Preprocess, vitrify.Recipe", READING),
    ("import vitrify.importers.onnx.driver, vitrify.passes, vitrify.tflite, vitrify.pipeline.convert", READING),
    ("import vitrify.core.worker", ("numpy", "onnx", "vitrify.ir", "vitrify.ops")),
], ids=["import", "names", "functions", "conversion", "worker"])
def test_not_loaded(code: str, absent: tuple[str, ...]) -> None:
    check = f"import sys\n{code}\nprint([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
