"""How long the model of the NPU takes per inference, and how much memory: on the INT8 files given, compiled for imx93.

    python benchmarks/npusim.py .cache/zoo/int8/mobilenet_v2.int8.tflite .cache/zoo/int8/yolov8n.int8.tflite
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

_RUNS = 3


def main() -> None:
    """Print a row for each file; each is run in a process of its own."""
    print("| model | commands | first run, s | later run, s (CPU s) | arena and weights, MB | peak over idle, MB |")
    print("|---|---|---|---|---|---|")
    for file in sys.argv[1:]:
        subprocess.run([sys.executable, __file__, "--one", file], check=True)


def one(source: Path) -> None:
    """Compile and run one file."""
    from vitrify.backends.vela import compile_model
    from vitrify.runtimes.npusim import NpuSim

    with TemporaryDirectory() as folder:
        output = Path(folder) / "m_vela.tflite"
        compile_model(source, "imx93", output)
        with NpuSim(output) as runtime:
            program = runtime.program
            random = np.random.default_rng(0)
            inputs = [random.integers(0, 100, program.shape(i)).astype(program.dtype(i)) for i in program.inputs]
            idle = _status("VmRSS")
            times = []
            for _ in range(1 + _RUNS):
                start, cpu = time.perf_counter(), time.process_time()
                runtime.invoke_raw(inputs)
                times.append((time.perf_counter() - start, time.process_time() - cpu))
            later = min(times[1:])
            sizes = max(step.arena_bytes + step.fast_bytes for step in program.npu), \
                sum(step.constants.size for step in program.npu)
            commands = sum(len(step.commands) for step in program.npu)
            name = source.name.split('.')[0]
            print(f"| {name} | {commands:,} | {times[0][0]:.2f} | {later[0]:.2f} ({later[1]:.2f}) | "
                  f"{sizes[0] / 1e6:.1f} and {sizes[1] / 1e6:.1f} | {_status('VmHWM') - idle:.1f} |", flush=True)


def _status(name: str) -> float:
    """The resident size now (VmRSS) or the largest so far (VmHWM), in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1e3


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(Path(sys.argv[2]))
    else:
        main()
