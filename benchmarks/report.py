"""How long the page of a profile takes to be written and to open, and how evenly its graph moves, in Chromium.

    python benchmarks/report.py [--model FILE]... [--target NAME] [--nodes N ...]

Real models are profiled first; graphs of N operators are made up, with branches and skips. A frame is what lies between
two callbacks of the browser's animation while the graph is moved, or zoomed, in each of them. The table goes to
docs/report.md.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import machine
from run import ROOT
from sections import put_section

from vitrify.pipeline.options import ConvertOptions, DataOptions
from vitrify.pipeline.profiling.profile import ProfileOptions, profile_model
from vitrify.report.page.html import profile_page
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow, LifeRow, MemoryPlan

PAGE = ROOT / "docs" / "report.md"
MODELS = (ROOT / ".cache/zoo/yolov8n.onnx", ROOT / ".cache/zoo/int8/yolov8n.int8.tflite")
NODES = (3_000, 10_000)
FRAMES = 160
MOVE = """(work) => new Promise((done) => {
  const canvas = document.getElementById("graph-canvas"), times = [];
  let count = 0, last = 0;
  const step = (now) => {
    if (last) times.push(now - last);
    last = now;
    const way = count % 80 < 40 ? 1 : -1;
    canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: way * (work === "pan" ? 90 : 40), ctrlKey: work === "zoom",
                                                  bubbles: true, cancelable: true}));
    if (++count < FRAMES) requestAnimationFrame(step); else done(times);
  };
  requestAnimationFrame(step);
})""".replace("FRAMES", str(FRAMES))
PAINT = "performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint').startTime"
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def made_up(count: int) -> ProfileResult:
    """Return a profile of a graph with branches and skips."""
    source = random.Random(0)
    rows = []
    for n in range(count):
        near = n - 1 if source.random() < 0.8 else max(0, n - source.randint(2, 8))
        far = {max(0, n - source.randint(1, 40))} if source.random() < 0.3 else set()
        rows.append(EstimatedRow(
            index=n, node=f"/encoder/layers.{n // 12}/block.{n % 12}/op_{n}", placement="npu", dtype="int8",
            operator=source.choice(("CONV_2D", "ADD", "MUL", "LOGISTIC", "RESHAPE")), time_ms=source.expovariate(3),
            bytes=source.randint(1000, 4_000_000), macs=source.randint(0, 10 ** 8), shape=[1, 64, 64, 32],
            share=1 / count, after=sorted({near, *far} - {n}) if n else [],
            bound=source.choice(("compute", "memory", "elements"))))
    lives = [LifeRow(tensor=f"t{n}", bytes=rows[n].bytes, first=n, last=min(n + 5, count - 1), maker=rows[n].node,
                     offset=source.randint(0, 10 ** 7)) for n in range(count)]
    return ProfileResult(model=f"graph of {count}", target="imx93", basis="estimated", operators=rows, nodes=count,
                         memory=MemoryPlan(live_bytes=1, peak_index=0, lives=lives))


def measure(result: ProfileResult, name: str, browser: Any, folder: Path) -> str:
    """Return a line of the table."""
    started = time.process_time()
    content = profile_page(result)
    seconds = time.process_time() - started
    file = folder / "report.html"
    file.write_bytes(content)
    context = browser.new_context(viewport={"width": 1440, "height": 950})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_timeout(1500)
    paint, loaded = page.evaluate(PAINT), page.evaluate(LOADED)
    page.locator("#graph-canvas").scroll_into_view_if_needed()
    page.focus("#graph-canvas")
    frames = []
    for work in ("pan", "zoom"):
        times = sorted(page.evaluate(MOVE, work))
        frames.append(f"{statistics.median(times):.1f} / {times[int(len(times) * 0.95)]:.1f} / {times[-1]:.1f}")
    context.close()
    return (f"| {name} | {len(result.operators):,} | {seconds:.2f} | {len(content) / 1e6:.2f} | {paint:.0f} "
            f"| {loaded:.0f} | {frames[0]} | {frames[1]} | {len(asked) - 1} |")


def main() -> None:
    """Measure, and put the table into the docs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, action="append")
    parser.add_argument("--target", default="imx93")
    parser.add_argument("--nodes", type=int, nargs="*", default=NODES)
    asked = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium is installed")
    from playwright.sync_api import sync_playwright

    lines = ["| page | operators | written, CPU s | MB | first paint, ms | loaded, ms | frames moving, ms "
             "| frames zooming, ms | requests |", "|---|---|---|---|---|---|---|---|---|"]
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for model in asked.model or MODELS:
            found = profile_model(model, ProfileOptions(target=asked.target), DataOptions(), ConvertOptions()).result
            lines.append(measure(found, f"{model.name}, {asked.target}", browser, Path(folder)))
        lines += [measure(made_up(count), "made up", browser, Path(folder)) for count in asked.nodes]
        version = browser.version
        browser.close()
    lines += ["", f"Frames: median / 95 % / longest of {FRAMES - 1}. Headless Chromium {version}, no graphics card, "
                  f"{machine()}."]
    put_section(PAGE, "figures", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
