"""The page that tells how far LiteRT's kernels agree, operator by operator."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import integer_runs as runs
from integer_draw import DRAWS

COMMAND = "VITRIFY_WRITE_PAGES=1 pytest tests/ops/test_integer_arithmetic.py"
CASES = 25
KERNELS = ("reference", "optimized", "xnnpack")
HEAD = """# Integer arithmetic

A quantized file computes with integers, and which integers is a matter of rounding. This page says, for each operator
and element type, how far three sets of LiteRT kernels and Vitrify's own numpy references
(`vitrify.ops.reference.integer`) agree on random models of one operator: random shapes, scales, zero points, ends of
the range, fused activations, strides, padding, dilation, broadcasting; functions by table are tried on every value of
their type. Whole files are compared in the same way, every tensor of them, by other tests.

*Exact with* names the kernels that give the same integers as numpy in every case. The other columns give the largest
difference from numpy, in steps of the output (or as real numbers, where the output is one), of LiteRT's optimized
kernels and of its default, which is XNNPACK where XNNPACK has the operator. Measured with LiteRT {version} on
{machine}; on another machine the optimized kernels and XNNPACK may round in other ways.

The page is generated, and a test compares its rows. To write it anew:

    {command}

To see every tensor of a file as the reference kernels compute it, without LiteRT:

```python
from vitrify import runtimes
with runtimes.open("model.tflite", kernels="numpy") as runtime:
    values = runtime.trace(inputs)          # name -> Traced(raw=integers, quantization=...)
```

## Where LiteRT's reference kernels are not the measure

- **SUM** of int8 and int16: the reference kernel reads the steps as unsigned bytes and gives wrong values. Numpy
  computes as the optimized kernel does, and is compared with it.
- **REDUCE_PROD** of a single element is wrong in the optimized kernel.
- **DEPTHWISE_CONV_2D** of int8 without a bias kills the process in the optimized kernel; **CONV_2D** without one is
  refused by the reference kernel. A bias of zeros costs nothing.
- **DEPTHWISE_CONV_2D** with 4-bit weights, **TILE** and **DEPTH_TO_SPACE** of int8 are written with a version that the
  reference kernels know. Files by LiteRT's own tools have a higher one, and run in optimized kernels even where
  reference kernels are asked for.
- **LESS**, **GREATER** and their kin of int16 compare the steps and pass over the scales, so that both inputs need the
  same one; **EQUAL** does not. Numpy does as they do.
- **PRELU** of int16 gives wrong values below zero in all kernels; numpy gives the right ones.
- **LOGISTIC** and **TANH** of int16 round worse in the optimized kernels when the scale is one that needs no factor.
- **DIV** is wrong in all kernels where a quotient is small: where the steps have to be shifted right by more than 31
  bits, the shift is undefined in C++ and any step may come out. The cases here keep away from it; numpy gives the right
  quotient. A divisor of zero stops the run.
- **SQRT** cuts steps off where every other function rounds, so that it lies half a step too low on average.
- **SOFTMAX** of int8 kills the process in the reference kernel where a row's powers add up to 512 or more, as
  those of a long and even row do.
- **ADD** of int16 with scales that are powers of two (`pot_scale_int16`) kills the process when it broadcasts.
- **FULLY_CONNECTED** rescales its sums in float64, rounded once; the convolutions in fixed point, rounded twice.
- **ELU** is not registered among the reference kernels. A file that holds it cannot be opened with reference kernels at
  all, and LiteRT's optimized ones run all of it.
- XNNPACK rounds once where the others round twice, so that its products and convolutions differ by a step now and then;
  its bilinear resizing differs by up to two.
- Functions by table take the values of the C library's float functions (`expf`, `tanhf`, ...). Numpy calls the same
  library; another one may differ by the last bit, and so a table by a step.

## By operator
"""


def table(differences: dict[str, dict[str, float | str]]) -> Iterator[str]:
    """The rows: a label's largest difference in each set of kernels."""
    yield "| operator | type | cases | exact with | optimized differs by | default (XNNPACK) differs by |"
    yield "|---|---|---:|---|---:|---:|"
    for label in sorted(differences):
        name, kind = label.rsplit(" ", 1)
        found = differences[label]
        exact = found[runs.kernels_of(label)] == 0
        holds = measure_of(label) if exact else "**none**"
        yield f"| {name} | {kind} | {CASES} | {holds} | {_shown(found['optimized'])} | {_shown(found['xnnpack'])} |"


def measure_of(label: str) -> str:
    """What a row says of the kernels that numpy equals."""
    return f"{runs.kernels_of(label)} kernel"


def _shown(difference: float | str) -> str:
    return difference if isinstance(difference, str) else f"{difference:g}"


def rows_of(text: str) -> list[tuple[str, ...]]:
    """What a page says of each operator, without what depends on the machine."""
    return [tuple(cell.strip() for cell in line.split("|")[1:5]) for line in text.splitlines()
            if re.match(r"\| [A-Z]", line)]


def measured() -> dict[str, dict[str, float | str]]:
    """Run every case in all kernels, and numpy."""
    made = {label: runs.cases(label, CASES) for label in DRAWS}
    ours = {label: runs.in_numpy(cases) for label, cases in made.items()}
    found: dict[str, dict[str, float | str]] = defaultdict(dict)
    for kernels in KERNELS:
        outcomes = iter(runs.in_litert([case for cases in made.values() for case in cases], kernels))
        for label in made:
            found[label][kernels] = _largest(ours[label], [next(outcomes) for _ in range(CASES)])
    return found


def _largest(ours: list[list[runs.Array]], theirs: list[runs.Outcome]) -> float | str:
    compared = [runs.distance(a, b) for a, b in zip(ours, theirs, strict=True) if not isinstance(b, str)]
    if len(compared) == len(theirs):
        return max(compared)
    return f"{max(compared, default=0):g}, {len(theirs) - len(compared)} did not run"


def page(version: str, machine: str, differences: dict[str, dict[str, float | str]]) -> str:
    """The page as Markdown."""
    head = HEAD.format(version=version, machine=machine, command=COMMAND)
    return head + "\n" + "\n".join(table(differences)) + "\n"
