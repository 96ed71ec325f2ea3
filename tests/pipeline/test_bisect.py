"""`vitrify bisect`: planted errors of a pass and of an operator's quantization are named."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from reduce_models import with_extreme_constant

from vitrify import ops, passes
from vitrify.core.errors import UsageError
from vitrify.ir import Graph, Tensor
from vitrify.pipeline.bisecting.bisect import bisect_file
from vitrify.pipeline.bisecting.halving import first_bad, shortest_start, without_needless
from vitrify.pipeline.options import DataOptions

RANDOM = DataOptions(random=True, samples=4)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A row of Conv and Relu."""
    draw, nodes, weights, name = np.random.default_rng(0), [], [], "x"
    for number in range(4):
        shape = (8, 3 if number == 0 else 8, 3, 3)
        weights.append(numpy_helper.from_array(draw.normal(size=shape).astype(np.float32) / 6, f"w{number}"))
        nodes.append(helper.make_node("Conv", [name, f"w{number}"], [f"c{number}"], f"conv{number}", pads=[1] * 4))
        name = "y" if number == 3 else f"r{number}"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [name], f"relu{number}"))
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 16, 16])], weights)
    path = tmp_path / "chain.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


class Spoils(passes.Pass):
    """Make one weight wrong."""

    name: ClassVar[str] = "spoils"

    def run(self, graph: Graph) -> int:
        """Rewrite ``graph`` once."""
        node = graph.nodes_of(ops.Conv2D)[1]
        weight = node.input(1)
        if weight.name == "spoilt" or weight.data is None:
            return 0
        graph.set_input(node, 1, Tensor("spoilt", weight.dtype, weight.shape, data=np.asarray(weight.data) * 1.1))
        self.touch(str(node.origin))
        return 1


def test_nothing_is_wrong(chain: Path) -> None:
    result = bisect_file(chain, RANDOM)
    assert result.ok
    assert not result.culprits
    assert [finding.code for finding in result.findings] == ["bisect.nothing"]


def test_an_operator_in_8_bits(chain: Path, tmp_path: Path) -> None:
    with_extreme_constant(chain, tmp_path / "planted.onnx")
    result = bisect_file(tmp_path / "planted.onnx", RANDOM)
    (row,) = (row for row in result.culprits if row.kind == "operator")
    assert "planted_add" in row.name
    assert row.before_db is not None
    assert row.before_db < 5
    assert row.after_db is None or row.after_db > 20


def test_a_wrong_pass(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "PATTERNS", (*passes.PATTERNS, Spoils))
    result = bisect_file(chain, RANDOM)
    (row,) = result.culprits
    assert (row.kind, row.name) == ("pass", "spoils")
    assert row.before_db is None or row.before_db > 90
    assert row.after_db is not None
    assert row.after_db < 40


@pytest.mark.parametrize("least_db", [0.0, -1.0, 90.0])
def test_refused(least_db: float, chain: Path) -> None:
    with pytest.raises(UsageError, match="are asked for"):
        bisect_file(chain, RANDOM, least_db=least_db)


def test_without_data(chain: Path) -> None:
    with pytest.raises(UsageError, match="data"):
        bisect_file(chain, DataOptions())


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_halving(count: int) -> None:
    for wanted in range(1, count + 1):
        assert first_bad(count, lambda number, wanted=wanted: number >= wanted) == wanted
        assert shortest_start(count, lambda number, wanted=wanted: number >= wanted) == wanted
    assert shortest_start(count, lambda number: False) is None


@pytest.mark.parametrize("needed", [{3}, {0, 9}, {2, 5, 6}, set(range(10))], ids=str)
def test_what_is_not_needed_goes(needed: set[int]) -> None:
    assert set(without_needless(range(10), lambda chosen: needed <= set(chosen))) == needed
