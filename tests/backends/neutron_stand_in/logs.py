"""The shapes of the log of releases 2.0 to 3.3, filled in.

2.0 follows a published log line by line (doc.edgefirst.ai, YOLOv8s-seg). Of the later ones only single lines are public
(the number of Neutron operators, sizes in bytes, the converter's version, an estimated latency); they stand here after
the same lines, in an order that is made up.
"""

from __future__ import annotations

MARK = "STAND-IN for neutron-converter: a test double, not NXP's program"

_BAR = "[================================================================================] 100 %\n"
_HEAD = """Converting model with the following options:
  Input  = {input}
  Output = {output}
  Target = {target}
INFO: Created TensorFlow Lite XNNPACK delegate for CPU.
Starting Tile scheduling. This might take a while.
""" + _BAR + "Starting TCM allocation. This might take a while.\n" + _BAR
_STATISTICS = """Conversion statistics:
  Number of operators after import    = {imported}
  Number of operators after optimize  = {optimized}
    Number of operators converted     = {converted}
    Number of operators NOT converted = {left}
  Number of operators after extract   = {extracted}
    Number of Neutron graphs          = {graphs}
    Number of operators NOT converted = {left}
  Operator conversion ratio           = {converted} / {optimized} = {share:.5g}
"""
_INDICES = "  Operators converted                 = {indices}\n"
_TIMES = """  Time for optimization = 0.012 (seconds)
  Time for extraction   = 0.004 s
  Time for generation   = 154.2 s
"""
_SIZES = """  Number of Neutron operators = {neutron_operators}
  Total size = 120,144 (bytes) (All)
  Total data = 8,464 (bytes)
  Total weights = 2,272 (bytes)
"""
_VERSION = "Neutron Converter Version: {version}\n"
_LATENCY = "Estimated NPU latency = 3.17 ms\n"

SHAPES = {
    "2.0": _HEAD + _STATISTICS + _INDICES + _TIMES,
    "3.0": _HEAD + _STATISTICS + _INDICES + _TIMES,
    "3.1": _VERSION + _HEAD + _STATISTICS + _SIZES + _TIMES,
    "3.2": _VERSION + _HEAD + _STATISTICS + _SIZES + _TIMES + _LATENCY,
    "3.3": _VERSION + _HEAD + _STATISTICS + _SIZES + _TIMES + _LATENCY,
}


def log(version: str, *, input: str = "model.tflite", output: str = "converted.tflite", target: str = "imx95",
        imported: int, optimized: int, converted: int, graphs: int, left: int | None = None) -> str:
    """The log of a conversion with these figures."""
    stays = optimized - converted if left is None else left
    shape = SHAPES[".".join(version.split(".")[:2])]
    return shape.format(input=input, output=output, target=target, imported=imported, optimized=optimized,
                        converted=converted, left=stays, extracted=graphs + stays, graphs=graphs,
                        share=converted / max(1, optimized), indices=",".join(map(str, range(converted))),
                        neutron_operators=converted + 2, version=version)
