"""How conversion grows: whole processes on graphs of 10 to 10,000 nodes, and on 1 MB to 1 GB of weights.

    python benchmarks/growth.py [--nodes N ...] [--megabytes N ...] [--runs N]

The graphs are made here, from a seed, and removed afterwards. The table goes to docs/benchmarks.md, as its own section.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from measure import Measurement, machine, measure
from onnx import TensorProto, helper, numpy_helper
from run import ROOT, VITRIFY
from sections import put_section

import vitrify

PAGE = ROOT / "docs" / "benchmarks.md"
NODES = (10, 100, 1_000, 10_000)
MEGABYTES = (1, 10, 100, 1_000)
OPSET, IR_VERSION = 17, 8
WIDTH = 2048
"""Rows and columns of a weight of the second table, 16 MB, and the input channels of a smaller one."""
Nodes = list[onnx.NodeProto]
Weights = list[TensorProto]


def model(nodes: Nodes, weights: Weights, shape: tuple[int, ...], output: str) -> onnx.ModelProto:
    """Put a graph with the input ``x`` around nodes."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "growth", inputs, [helper.make_empty_tensor_value_info(output)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def convolutions(count: int) -> onnx.ModelProto:
    """Convolutions with SiLU and a residual: four nodes a block."""
    random, nodes, weights, x = np.random.default_rng(0), Nodes(), Weights(), "x"
    for block in range(-(-count // 4)):
        weights.append(array(f"w{block}", random.standard_normal((8, 8, 3, 3)) * 0.1))
        nodes += [helper.make_node("Conv", [x, f"w{block}"], [f"c{block}"], pads=[1, 1, 1, 1]),
                  helper.make_node("Sigmoid", [f"c{block}"], [f"s{block}"]),
                  helper.make_node("Mul", [f"c{block}", f"s{block}"], [f"m{block}"]),
                  helper.make_node("Add", [f"m{block}", x], [f"a{block}"])]
        x = f"a{block}"
    return model(nodes, weights, (1, 8, 16, 16), x)


def attention(count: int) -> onnx.ModelProto:
    """Attention of four heads behind a LayerNormalization, with a residual: 18 nodes a block."""
    random, nodes, x = np.random.default_rng(0), Nodes(), "x"
    weights = [numpy_helper.from_array(np.array([1, 16, 4, 8]), "heads"),
               numpy_helper.from_array(np.array([1, 16, 32]), "joined"), array("scale", np.array(0.35)),
               array("gamma", np.ones(32)), array("beta", np.zeros(32))]

    def add(kind: str, inputs: list[str], **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"t{len(nodes)}"], **attributes))
        return f"t{len(nodes) - 1}"

    def product(value: str) -> str:
        weights.append(array(f"w{len(nodes)}", random.standard_normal((32, 32)) * 0.1))
        return add("MatMul", [value, f"w{len(nodes)}"])

    for _ in range(-(-count // 18)):
        normal = add("LayerNormalization", [x, "gamma", "beta"], axis=-1)
        q, k, v = (add("Transpose", [add("Reshape", [product(normal), "heads"])], perm=perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = add("Softmax", [add("Mul", [add("MatMul", [q, k]), "scale"])], axis=-1)
        mixed = add("Transpose", [add("MatMul", [scores, v])], perm=[0, 2, 1, 3])
        x = add("Add", [product(add("Reshape", [mixed, "joined"])), x])
    return model(nodes, weights, (1, 16, 32), x)


def products(megabytes: int) -> onnx.ModelProto:
    """Matrix products in a chain, whose weights have ``megabytes`` in all."""
    random, nodes, weights, x = np.random.default_rng(0), Nodes(), Weights(), "x"
    rest = megabytes * 1_000_000 // (4 * WIDTH)
    while rest > 0:
        columns = min(rest, WIDTH)
        weights.append(array(f"w{len(nodes)}", random.standard_normal((WIDTH, columns), dtype=np.float32) * 0.01))
        nodes.append(helper.make_node("MatMul", [x, f"w{len(nodes)}"], [f"y{len(nodes)}"]))
        x, rest = nodes[-1].output[0], rest - columns
    return model(nodes, weights, (1, WIDTH), x)


def wide_convolutions(megabytes: int) -> onnx.ModelProto:
    """Convolutions with biases in a chain: all weights are brought to another order."""
    random, nodes, weights, x, channels = np.random.default_rng(0), Nodes(), Weights(), "x", 512
    rest = max(1, megabytes * 1_000_000 // (4 * 9 * channels))
    while rest > 0:
        outputs = min(rest, channels)
        kernel = random.standard_normal((outputs, channels, 3, 3), dtype=np.float32) * 0.01
        weights += [array(f"w{len(nodes)}", kernel), array(f"b{len(nodes)}", random.standard_normal(outputs))]
        names = [x, f"w{len(nodes)}", f"b{len(nodes)}"]
        nodes.append(helper.make_node("Conv", names, [f"y{len(nodes)}"], pads=[1, 1, 1, 1]))
        x, rest = nodes[-1].output[0], rest - outputs
    return model(nodes, weights, (1, channels, 4, 4), x)


def array(name: str, values: Any) -> TensorProto:
    """Return a weight of float32."""
    return numpy_helper.from_array(np.asarray(values, np.float32), name)


@dataclass(frozen=True)
class Grown:
    """One size of one graph: the least CPU seconds and the highest peak of its runs."""

    size: int
    cpu_seconds: float
    peak_bytes: int
    file_bytes: int


def converted(file: Path) -> Measurement:
    """Convert a file.

    Raises:
        SystemExit: the conversion failed.
    """
    done = measure([VITRIFY, "convert", str(file), "-o", str(file.with_suffix(".tflite")), "-q"], file.parent)
    if done.status:
        raise SystemExit(f"the conversion failed:\n{done.output}")
    return done


def grown(make: Callable[[int], onnx.ModelProto], sizes: Sequence[int], runs: int) -> list[Grown]:
    """Measure one kind of graph in all sizes, which take turns."""
    found = []
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as folder:
        files = {size: Path(folder) / f"{size}.onnx" for size in sorted(sizes)}
        for size, file in files.items():
            file.write_bytes(make(size).SerializeToString())
        turns = [[converted(file) for file in files.values()] for _ in range(runs)]
        for (size, file), done in zip(files.items(), zip(*turns, strict=True), strict=True):
            found.append(Grown(size, min(m.cpu_seconds for m in done), max(m.peak_bytes for m in done),
                               file.stat().st_size))
            print(make.__name__, found[-1], flush=True)
    return found


def table(kinds: dict[str, list[Grown]], unit: str, with_file: bool) -> list[str]:
    """Return the rows of all kinds; a file's own size says something beside the peak only where it is weights."""
    lines = [f"| graph | {unit} | CPU seconds | times the row above | peak MB |{' peak : file |' * with_file}",
             f"|---|---:|---:|---:|---:|{'---:|' * with_file}"]
    for name, rows in kinds.items():
        for before, row in zip([None, *rows], rows, strict=False):
            times = f"{row.cpu_seconds / before.cpu_seconds:.1f}" if before else ""
            share = f" {row.peak_bytes / row.file_bytes:.2f} |" if with_file else ""
            lines.append(f"| {name} | {row.size:,} | {row.cpu_seconds:.2f} | {times} | {row.peak_bytes / 1e6:,.0f} "
                         f"|{share}")
    return lines


def main() -> None:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=NODES)
    parser.add_argument("--megabytes", type=int, nargs="*", default=MEGABYTES)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    nodes = {name: grown(make, chosen.nodes, chosen.runs)
             for name, make in (("convolutions", convolutions), ("attention", attention))}
    weights = {name: grown(make, chosen.megabytes, chosen.runs)
               for name, make in (("products", products), ("wide convolutions", wide_convolutions))}
    steps = [after.cpu_seconds / before.cpu_seconds for rows in nodes.values() for before, after in pairwise(rows)
             if after.size == 10 * before.size]
    lines = ["## Growth", "",
             "Whole processes of `vitrify convert` on graphs that `benchmarks/growth.py` makes: CPU seconds are the "
             f"least of {chosen.runs} runs, as whatever else a machine does only adds to them; the peak is the "
             "highest. It is that of resident memory, with the child in which LiteRT tries the file. Measured on "
             f"{machine()}, Vitrify {vitrify.__version__}.", ""]
    if steps:
        lines += [f"Ten times the nodes cost at most {max(steps):.1f} times the CPU seconds.", ""]
    lines += [*table(nodes, "nodes", False), ""]
    if chosen.megabytes:
        largest = [rows[-1] for rows in weights.values()]
        worst = max(row.peak_bytes / row.file_bytes for row in largest)
        lines += [f"At {largest[0].size:,} MB of weights, which are mapped and not copied, the peak is at most "
                  f"{worst:.2f} times the file.", "", *table(weights, "MB of weights", True)]
    put_section(PAGE, "growth", lines)
    print(f"written to {PAGE.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
