"""The stand-in's programs. Usage: python programs.py PROGRAM SETTINGS.json WORDS...

``neutron-converter`` puts runs of nodes into NeutronGraph operators that hold these nodes as a TFLite model, in the
place of microcode; ``neutron-runner`` runs such a file in LiteRT. SETTINGS names the version and how it misbehaves.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from neutron_stand_in import logs

if TYPE_CHECKING:
    from vitrify.ir import Graph, Model, Node, Tensor

CPU = ("GATHER", "SOFTMAX", "QUANTIZE", "DEQUANTIZE")
PARTS = ("microcode", "weights", "kernels")


def converter(settings: dict[str, Any], words: list[str]) -> int:
    version, mode = settings.get("version", "3.1.3"), settings.get("mode", "normal")
    print(logs.MARK)
    print("options:", json.dumps(words))
    print("LD_LIBRARY_PATH:", os.environ.get("LD_LIBRARY_PATH", ""))
    source, output, target = (words[words.index(name) + 1] for name in ("--input", "--output", "--target"))
    if mode in FAILING:
        sys.stdout.flush()
        return FAILING[mode](Path(output))
    if mode == "library" and not os.environ.get("LD_LIBRARY_PATH"):
        print("error while loading shared libraries: libortools.so.9: cannot open shared object file", file=sys.stderr)
        return 127
    from vitrify import tflite

    model = tflite.read(source)
    nodes = len(model.main)
    made, converted, graphs = convert(model, settings)
    if mode == "other-model":
        made.main.set_outputs([*made.main.outputs, made.main.nodes[0].outputs[0]])
    tflite.write(made, output)
    told: dict[str, Any] = {"imported": nodes, "optimized": nodes, "converted": converted, "graphs": graphs}
    if mode == "lying":
        told = {"imported": 293, "optimized": 338, "converted": 303, "graphs": 1}
    print("WARNING: this line is made up" if mode == "warning" else "")
    if mode == "silent":
        return 0
    print(logs.log(version if mode != "mixed" else "3.3.0", input=source, output=output,
                   target="imx943" if mode == "wrong-target" else target, **told))
    return 0


def convert(model: Model, settings: dict[str, Any]) -> tuple[Model, int, int]:
    """Put what is not in ``CPU`` into Neutron graphs; one of them is damaged where the settings say so."""
    import numpy as np

    from vitrify import ops
    from vitrify.ir import DType, Graph, Model, Tensor
    from vitrify.ir.cutting import cut_out
    from vitrify.targets.partition import partition

    graph = model.main
    kept = settings.get("cpu", CPU)
    places = {node: "cpu" if node.op.kind in kept else "npu" for node in graph}
    by_name = {node.name: node for node in graph}
    parts = partition(graph, places)                                                # type: ignore[arg-type]
    made = Graph("main")
    known: dict[str, Tensor] = {}

    def copied(tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        if tensor.name not in known or tensor.is_constant:
            known[tensor.name] = clone(tensor)
        return known[tensor.name]

    made.inputs.extend(copied(tensor) for tensor in graph.inputs)                  # type: ignore[misc]
    number = converted = 0
    for part in parts:
        nodes = Graph.in_order(by_name[name] for name in part.nodes)
        if part.placement == "cpu":
            for node in nodes:
                made.add(node.op, [copied(t) for t in node.inputs],
                         [copied(t) for t in node.outputs], name=node.name)         # type: ignore[misc]
            continue
        inner = cut_out(nodes)
        outer = [(copied(t), t) for t in inner.inputs], [(copied(t), t) for t in inner.outputs]
        damage = settings.get("damage")
        if damage and damage["graph"] == number:
            damaged(inner, damage["how"])
        embedded = np.frombuffer(as_bytes(inner), np.uint8)
        blobs = [embedded, np.zeros(16, np.uint8), np.zeros(16, np.uint8)]
        constants = [Tensor(f"{name}_{number}", DType.UINT8, blob.shape, data=blob)
                     for name, blob in zip(PARTS, blobs, strict=True)]
        scratch = Tensor(f"scratch_{number}", DType.UINT8, (64,))
        made.add(ops.Custom(custom_code="NeutronGraph"), [*(t for t, _ in outer[0]), *constants],
                 [*(t for t, _ in outer[1]), scratch], name=f"NeutronGraph_{number}")   # type: ignore[list-item]
        number, converted = number + 1, converted + len(nodes)
    made.set_outputs([copied(t) for t in graph.outputs])                            # type: ignore[misc]
    return Model(graphs=[made]), converted, number


def clone(tensor: Tensor) -> Tensor:
    from vitrify.ir import Tensor

    return Tensor(tensor.name, tensor.dtype, tensor.shape, data=tensor.data, quantization=tensor.quantization)


def as_bytes(graph: Graph) -> bytes:
    from vitrify import tflite
    from vitrify.ir import Model

    path = Path(f"embedded-{os.getpid()}.tflite").absolute()
    try:
        tflite.write(Model(graphs=[graph]), path)
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)


def damaged(graph: Graph, how: str) -> None:
    """Make a graph compute something else: as a wrong compiler would, without a word."""
    import numpy as np

    from vitrify.ir import Quantization

    node = next(node for node in reversed(graph.nodes) if node.op.kind == "CONV_2D")
    if how == "swap-channels":
        for place in (1, 2):
            tensor = node.inputs[place]
            assert tensor is not None
            data = np.array(tensor.data)
            data[[0, 1]] = data[[1, 0]]
            tensor.data = data
    else:
        output = node.output
        assert output.quantization is not None
        scale, zero = float(output.quantization.scale[0]), int(output.quantization.zero_point[0])
        output.quantization = Quantization.per_tensor(*((scale, -zero - 9) if how == "zero-point" else
                                                        (scale * 2, zero)))


def hang(output: Path) -> int:
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)
    return 0


def crash(output: Path) -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def full(output: Path) -> int:
    try:
        with open("/dev/full", "wb", buffering=0) as stream:
            stream.write(b"x")
    except OSError as error:
        print(f"cannot write {output}: {error.strerror}")
    return 1


def too_large(output: Path) -> int:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    output.write_bytes(bytes(4096))
    return 0


def garbage(output: Path) -> int:
    output.write_bytes(bytes(range(256)) * 9)
    return 0


def greedy(output: Path) -> int:
    held = [bytearray(1 << 26) for _ in range(1 << 10)]
    return len(held)


FAILING = {"hanging": hang, "crashing": crash, "full": full, "too-large": too_large, "garbage": garbage,
           "no-output": lambda output: 0, "failing": lambda output: 3, "greedy": greedy}


def runner(settings: dict[str, Any], words: list[str]) -> int:
    print(logs.MARK.replace("converter", "runner"))
    if settings.get("mode") == "runner-fails":
        print("Illegal instruction in a kernel")
        return 4
    import numpy as np

    from vitrify import tflite

    source, data, results = (words[words.index(name) + 1] for name in ("--input", "--dataset", "--output-results"))
    model = tflite.read(source)
    for number, path in enumerate(sorted(Path(data).iterdir())):
        raw, values, start = path.read_bytes(), {}, 0
        for tensor in model.main.inputs:
            values[tensor.name] = np.frombuffer(raw[start:start + tensor.nbytes],
                                                tensor.dtype.numpy).reshape(tensor.shape)
            start += tensor.nbytes
        for node in model.main:
            run_node(node, values)
        stem = Path(results)
        for place, tensor in enumerate(model.main.outputs):
            stem.with_name(f"{stem.stem}_{number}_{place}.bin").write_bytes(values[tensor.name].tobytes())
    return 0


_OPEN: dict[int, Any] = {}


def run_node(node: Node, values: dict[str, Any]) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    from vitrify.ir.cutting import cut_out

    if id(node) not in _OPEN:
        is_neutron = node.op.kind == "NeutronGraph"
        blob = next(t for t in node.inputs if t is not None and t.name.startswith(PARTS[0])) if is_neutron else None
        content = bytes(blob.data) if blob is not None else as_bytes(cut_out([node], outputs=node.outputs))
        _OPEN[id(node)] = Interpreter(model_content=content,
                                      experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        _OPEN[id(node)].allocate_tensors()
    interpreter = _OPEN[id(node)]
    for details in interpreter.get_input_details():
        interpreter.set_tensor(details["index"], values[details["name"]])
    interpreter.invoke()
    for details in interpreter.get_output_details():
        values[details["name"]] = interpreter.get_tensor(details["index"])


if __name__ == "__main__":
    chosen = json.loads(Path(sys.argv[2]).read_text())
    sys.exit({"neutron-converter": converter, "neutron-runner": runner}[sys.argv[1]](chosen, sys.argv[3:]))
