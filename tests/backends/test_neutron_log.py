"""What is read from the converter's log, in the shapes of its releases."""

from __future__ import annotations

import pytest
from neutron_stand_in import logs

from vitrify.backends.neutron.log import Log, read_log

PUBLISHED = {"imported": 293, "optimized": 338, "converted": 303, "graphs": 1}
"""Figures of a published conversion of YOLOv8s-seg with release 2.0.2 (doc.edgefirst.ai)."""


@pytest.mark.parametrize("version", ["2.0.2", "3.0.0", "3.1.3", "3.2.0", "3.3.0"])
def test_every_figure_of_a_log_is_read(version: str) -> None:
    log = read_log(logs.log(version, **PUBLISHED))
    assert (log.imported, log.optimized, log.converted, log.left, log.extracted, log.graphs) == (
        293, 338, 303, 35, 36, 1)
    assert log.ratio == (303, 338)
    assert log.target == "imx95"
    assert log.times_s == {"optimization": 0.012, "extraction": 0.004, "generation": 154.2} or version[0] != "2"
    assert log.contradictions() == []
    later = version >= "3.1"
    assert log.version == (version if later else "")
    assert log.neutron_operators == (305 if later else None)
    assert log.sizes == ({"total size": 120144, "total data": 8464, "total weights": 2272} if later else {})
    assert log.indices == (() if later else tuple(range(303)))
    assert log.latency_ms == (3.17 if version >= "3.2" else None)


CASES = {
    "thousands": ("Total size = 1,120,144 (bytes) (All)", "sizes", {"total size": 1120144}),
    "microseconds": ("Estimated NPU latency = 3170 us", "latency_ms", 3.17),
    "inference time": ("Inference time: 4.5 ms", "latency_ms", 4.5),
    "hash": ("Neutron Converter Version: 3.1.3+0X1a2b", "version", "3.1.3"),
    "warning": ("WARNING: operator 7 is odd", "spoken", ["WARNING: operator 7 is odd"]),
    "error": ("  [ERROR] out of TCM", "spoken", ["[ERROR] out of TCM"]),
    "information": ("INFO: Created TensorFlow Lite XNNPACK delegate for CPU.", "spoken", []),
    "not a number": ("Number of Neutron graphs = many", "graphs", None),
    "ratio of nothing": ("Operator conversion ratio = nan", "ratio", None),
    "huge": ("Number of Neutron graphs = 1e999", "graphs", None),
}


@pytest.mark.parametrize(("line", "name", "value"), CASES.values(), ids=CASES)
def test_single_lines(line: str, name: str, value: object) -> None:
    assert getattr(read_log(f"noise\n{line}\n=====\n"), name) == value


WRONG = {
    "sum": (Log(optimized=338, converted=303, left=30), "303 operators converted and 30 not are not the 338"),
    "ratio": (Log(converted=303, ratio=(300, 338)), "303 operators converted, 300 in the ratio"),
    "extract": (Log(extracted=36, graphs=2, left=35), "2 Neutron graphs and 35 operators left are not the 36"),
    "indices": (Log(converted=3, indices=(0, 1)), "3 operators converted, 2 listed"),
}


@pytest.mark.parametrize(("log", "said"), WRONG.values(), ids=WRONG)
def test_contradictions_are_told(log: Log, said: str) -> None:
    assert said in log.contradictions()[0]


def test_no_log_at_all_has_no_statistics() -> None:
    assert not read_log("").has_statistics
    assert not read_log("\x00\xff: = :=\n" * 1000).has_statistics
