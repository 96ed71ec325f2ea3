"""How long `check --rules-only` takes on graphs of 10 to 10,000 nodes, once they are loaded.

    python benchmarks/checking.py [--nodes N ...] [--runs N]

CPU seconds of the judging alone: rules, partitions, diagnoses, and the rows of the answer. The graphs are integer ones,
in a chain and side by side, with an operator that no NPU has now and then. The table goes to docs/checking.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import machine
from run import ROOT
from sections import put_section

from vitrify import ops, tflite
from vitrify.ir import DType, Graph, Model, Quantization, Tensor
from vitrify.pipeline.checking.check import check_file
from vitrify.pipeline.options import ConvertOptions, DataOptions

PAGE = ROOT / "docs" / "checking.md"
NODES = (10, 100, 1_000, 10_000)
STEP = Quantization.per_tensor(0.05)
SHARE = Quantization.per_tensor(1 / 256, -128)
STRANGE = 12
"""One block in so many ends with an operator that the NPU does not have."""


def graph(nodes: int, wide: bool) -> Model:
    """Blocks of a convolution with SiLU and an activation, one behind the other or all on the input."""
    made = Graph()
    x = Tensor("x", DType.INT8, (1, 16, 16, 8), quantization=STEP)
    made.inputs.append(x)
    value, outputs = x, list[Tensor]()
    for block in range(max(nodes // 4, 1)):
        kernel = Tensor(f"w{block}", DType.INT8, (8, 3, 3, 8), data=np.ones((8, 3, 3, 8), np.int8),
                        quantization=Quantization.per_tensor(0.01))
        bias = Tensor(f"b{block}", DType.INT32, (8,), data=np.zeros(8, np.int32),
                      quantization=Quantization.per_tensor(0.0005))
        convolution = ops.Conv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1)
        y = made.add(convolution, [x if wide else value, kernel, bias], name=f"c{block}").output
        gate = made.add(ops.Logistic(), [y], name=f"l{block}").output
        product = made.add(ops.Mul(), [y, gate], name=f"m{block}").output
        last = ops.Round() if block % STRANGE == 0 else ops.Relu()
        value = made.add(last, [product], name=f"r{block}").output
        y.quantization = product.quantization = value.quantization = STEP
        gate.quantization = SHARE
        outputs.append(value)
    made.set_outputs(outputs if wide else [value])
    return Model([made])


def seconds(path: Path, runs: int) -> tuple[float, float]:
    """The CPU seconds of loading, and of all the rest of a check; the least of some runs."""
    loading, whole = [], []
    for _ in range(runs):
        started = time.process_time()
        tflite.read(path)
        loading.append(time.process_time() - started)
        started = time.process_time()
        check_file(path, "imx93", DataOptions(), ConvertOptions(), rules_only=True)
        whole.append(time.process_time() - started)
    return min(loading), max(min(whole) - min(loading), 0.0)


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    lines = ["| nodes | shape | loading, CPU s | the check, CPU s |", "|---:|---|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        for nodes in asked.nodes:
            for wide in (False, True):
                path = Path(folder) / "graph.tflite"
                tflite.write(graph(nodes, wide), path)
                load, rest = seconds(path, asked.runs)
                lines.append(f"| {nodes:,} | {'side by side' if wide else 'a chain'} | {load:.3f} | {rest:.3f} |")
                print(lines[-1], flush=True)
    put_section(PAGE, "checking", [*lines, "", f"Measured on {machine()}."])


if __name__ == "__main__":
    main()
