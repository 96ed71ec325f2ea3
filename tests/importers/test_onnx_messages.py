"""Reading an ONNX file needs the generated messages alone, and gets along with the package loaded before or after."""

from __future__ import annotations

import subprocess
import sys

import pytest

READS = "from vitrify.importers.onnx.reading.messages import model_proto; P = model_proto()"


@pytest.mark.parametrize(
    "code",
    [
        f"import sys; {READS}; assert 'onnx' not in sys.modules",
        f"import onnx; {READS}; assert P is onnx.ModelProto",
        f"{READS}; import onnx, onnx.helper; assert P is onnx.ModelProto",
        f"{READS}; from onnx import onnx_ml_pb2; assert P is onnx_ml_pb2.ModelProto",
    ],
    ids=["alone", "after-onnx", "before-onnx", "before-its-module"],
)
def test_messages(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
