"""Optional values: a tensor that is wrapped, asked for and taken out is itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import helper
from onnx_makers import by_litert, by_runtime, imported, model, saved


def test_a_wrapped_tensor_is_itself(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Optional", ["x"], ["o"]),
        helper.make_node("OptionalHasElement", ["o"], ["there"]),
        helper.make_node("OptionalGetElement", ["o"], ["t"]),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    feeds = {"x": np.array([-1.0, 2.0], np.float32)}
    proto = model(nodes, feeds, {}, ["y", "there"], 18)
    wanted = by_runtime(saved(proto, tmp_path), feeds)
    got = by_litert(imported(proto, tmp_path), feeds)
    assert (got["y"] == wanted["y"]).all()
    assert bool(got["there"]) is bool(wanted["there"]) is True
