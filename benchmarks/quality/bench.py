"""Int8 quality side by side with the peers: `make bench-quality`.

    python benchmarks/quality/bench.py [--models NAME ...] [--tools NAME ...] [--kept] [--again]

Every tool calibrates on the same samples; what its file answers on others is held against ONNX Runtime's float answers,
through the source model's own outputs. Results are kept under .cache/bench/quality by the content of what made them,
so that a run that was stopped goes on. Afterwards docs/benchmarks.md is written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "benchmarks" / "quality"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "zoo")]

import files  # noqa: E402
from models import CALIBRATION, HELD_OUT, Subject, subjects  # noqa: E402
from quality_page import write_page  # noqa: E402
from tools import OURS, PEERS, REQUIREMENTS, TOOLS, Outcome, Task  # noqa: E402

RESULTS = ROOT / ".cache" / "bench" / "quality"
REVISION = 1
"""To be raised when tools are run in another way: kept results of another revision are measured again."""
DIVERSE = ("mobilenet_v2", "mobilenet_v3_small", "efficientnet_lite0", "resnet18", "resnet50", "regnet_y_400mf",
           "shufflenet_v2", "densenet121", "repvgg_a0", "squeezenet", "convnext_atto", "efficientnet_b0", "yolov8n",
           "yolo11n", "yolov5n", "nanodet_plus_m", "ssdlite", "unet", "lraspp", "espcn", "vit_tiny", "mobilevit_xxs",
           "minilm", "ds_cnn", "gru", "lstm", "tcn", "nudenet_yolov8n", "efficientnet_lite0_trained", "ppocr_det")
"""A third of the models, of every family: what `--diverse` measures."""


@cache
def source_stamp() -> str:
    """A stamp of our own program."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def kept(tool: str, subject: Subject) -> Path:
    """Where a result is kept: by the model's content and what is asked of the tool."""
    peers = tomllib.loads((ROOT / "benchmarks" / "peers.toml").read_text())
    asked = [REVISION, CALIBRATION, HELD_OUT, subject.fixed, subject.mean, subject.std,
             [peers[p] for p in REQUIREMENTS.get(tool, ())]]
    stamp = hashlib.sha256(json.dumps(asked).encode() + subject.onnx.read_bytes()).hexdigest()[:16]
    return RESULTS / f"{_stem(tool, subject)}-{stamp}.json"


def _stem(tool: str, subject: Subject) -> str:
    return f"{tool.replace(', ', '-').replace(' ', '_')}-{subject.name}"


def known(tool: str, subject: Subject, any_source: bool) -> Outcome | None:
    """The kept result; one of ours only when our program is the same, unless ``any_source``."""
    if not any(RESULTS.glob(f"{_stem(tool, subject)}-*.json")):
        return None                     # nothing to look for: the model need not be read
    path = kept(tool, subject)
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    if tool in OURS and not any_source and stored["source"] != source_stamp():
        return None
    return Outcome(**stored["outcome"])


def keep(outcome: Outcome, subject: Subject) -> None:
    """Keep a result."""
    path = kept(outcome.tool, subject)
    path.with_suffix(".part").write_text(json.dumps({"source": source_stamp(), "outcome": asdict(outcome)}))
    os.replace(path.with_suffix(".part"), path)


def measured(subject: Subject, tools: Sequence[str]) -> Iterable[Outcome]:
    """Run tools on a model."""
    calibration, held_out = subject.samples()
    expected = files.reference(subject.onnx, held_out, dict(subject.fixed))
    for tool in tools:
        with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
            outcome = TOOLS[tool](Task(subject, calibration, held_out, expected, Path(folder)))
        keep(outcome, subject)
        yield outcome


def show(outcome: Outcome) -> None:
    """Print one result on a line."""
    found = " ".join(f"{v:.1f}" for v in list(outcome.decibels.values())[:6]) or f"- {outcome.reason[:150]}"
    print(f"{outcome.model:24} {outcome.tool:34} {outcome.cpu_seconds:7.1f} s  {found}", flush=True)


def main() -> int:
    """Measure what is asked for and not known, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--diverse", action="store_true", help="a third of the models, of every family")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--kept", action="store_true", help="measure nothing: show the results there are")
    parser.add_argument("--again", action="store_true", help="measure anew what is kept")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    chosen = subjects(arguments.models)
    if arguments.diverse:
        chosen = [s for s in chosen if s.name in DIVERSE]
    for subject in chosen:
        missing = [t for t in arguments.tools if arguments.again or known(t, subject, arguments.kept) is None]
        for outcome in measured(subject, missing) if missing and not arguments.kept else ():
            show(outcome)
    write_page({s.name: {t: o for t in TOOLS if (o := known(t, s, True))} for s in subjects()}, list(OURS), list(PEERS))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
