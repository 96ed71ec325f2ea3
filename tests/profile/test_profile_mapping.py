"""Every node of a source stands in the mapping, and what is left of none says where it went."""

from __future__ import annotations

from pathlib import Path

import profile_models as models
import pytest

from vitrify import tflite
from vitrify.core.progress import Silent
from vitrify.pipeline.convert import float_model
from vitrify.pipeline.diffing.sides import source_entries
from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.profile import ProfileOptions, profile_model
from vitrify.profile.mapping import map_forms
from vitrify.results.profiling import MappingRow

ZOO = Path(__file__).resolve().parents[2] / ".cache" / "zoo"
FILES = sorted(ZOO.glob("*.onnx"))
DEAD = {"rt_detr_r18": 8}
"""Nodes of zoo models whose value nothing uses."""


def is_whole(path: Path, mapping: MappingRow) -> None:
    """Each node once, in the source's order, and each with a place in every form."""
    assert [row.name for row in mapping.nodes] == [entry.name for entry in source_entries(path)]
    for row in mapping.nodes:
        if row.how == "folded":
            assert row.into, row.name
        elif row.how != "unused":
            assert row.float_form is not None, row.name
            assert row.float_form.nodes, row.name
            if "integer" in mapping.forms:
                assert row.integer_form is not None, row.name
                assert row.integer_form.nodes or row.integer_form.placement == "host", row.name


@pytest.mark.parametrize("name", models.SOURCES)
def test_every_node_of_a_small_source_is_there(name: str, tmp_path: Path) -> None:
    path = models.SOURCES[name](tmp_path / "m.onnx")
    got = profile_model(path, ProfileOptions(target="imx93"), DataOptions(), ConvertOptions()).result
    is_whole(path, got.mapping)
    assert got.mapping.forms == ["float", "integer", "compiled"]
    assert all(row.how != "unused" for row in got.mapping.nodes if row.name != "unread")


def test_the_ways_are_told(tmp_path: Path) -> None:
    path = models.classifier(tmp_path / "m.onnx")
    got = profile_model(path, ProfileOptions(target="imx93"), DataOptions(), ConvertOptions()).result.mapping
    how = {row.name: row.how for row in got.nodes}
    assert how["norm"] == how["act"] == "fused"
    assert how["same"] == "folded"
    first = next(row for row in got.nodes if row.name == "first")
    assert first.passes
    assert first.compiled_form is not None
    assert first.compiled_form.nodes == ["NPU operator 0"]


def test_nodes_that_only_compute_a_shape_say_what_uses_it(tmp_path: Path) -> None:
    path = models.shapes(tmp_path / "m.onnx")
    got = profile_model(path, ProfileOptions(runs=2, warmup=1), DataOptions(), ConvertOptions()).result.mapping
    rows = {row.name: row for row in got.nodes}
    assert {rows[name].how for name in ("shape", "batch", "up", "join")} == {"folded"}
    assert rows["shape"].into
    assert rows["unread"].how == "unused"


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.skipif(not FILES, reason="no .cache/zoo; `make zoo` exports it")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_node_of_the_zoo_is_there(path: Path) -> None:
    model, _ = float_model(path, ConvertOptions(), Silent())
    integers = ZOO / "int8" / f"{path.stem}.int8.tflite"
    other = tflite.read(integers) if integers.exists() else None
    host = other is not None and other.interface is not None and other.interface.host is not None
    mapping = map_forms(source_entries(path), model.main, None if other is None else other.main, [], [], on_host=host)
    is_whole(path, mapping)
    assert sum(row.how == "unused" for row in mapping.nodes) == DEAD.get(path.stem, 0)
