"""What a PyTorch file holds, told from its archive's entries: PyTorch is not needed, nothing is unpickled or run."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from vitrify.core.errors import ModelError
from vitrify.core.findings import Finding
from vitrify.core.words import counted
from vitrify.importers.torch.archive import Archive, opened
from vitrify.importers.torch.checking import PLAIN_PICKLES, SYMBOL_WRITTEN_OUT, Pickled, looked_through, pickled_names
from vitrify.importers.torch.kinds import MAGIC, WORDS, kind_of
from vitrify.results import InspectResult, TensorRow

_LARGEST_PICKLE = 8 << 20  # bytes of a pickle that are looked through
_SHOWN_CLASSES = 3
_PICKLES_BEFORE = 3  # a number, a version and the machine's word sizes. Source: torch/serialization.py, _legacy_save
_TRUSTED = "it is loaded only with --trust"
_DATA = {"numpy", "argparse", "pathlib", "datetime", "_codecs"}
_PLAIN = {"OrderedDict", "defaultdict", "Counter", "bool", "bytearray", "bytes", "complex", "dict", "float",
          "frozenset", "int", "list", "range", "set", "slice", "str", "tuple"}
_DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
}
"""Source: torch/_export/serde/schema.py, ScalarType."""
_TYPE_WORDS = {
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "DoubleStorage": "float64",
}
_NUMBER, _PRODUCT = re.compile(r"Integer\((-?\d+)\)"), re.compile(r"\bMul\(([\w*-]+), ([\w*-]+)\)")
_FORWARD = re.compile(r"def forward\(self: (?P<owner>[\w.]+)(?P<arguments>[^)]*)\) -> (?P<result>[^:]+):")


def inspect(path: Path) -> InspectResult:
    """Describe a PyTorch file (see ``importers.exchange``)."""
    kind = kind_of(path) or "damaged"
    result = InspectResult(file=str(path), format="pytorch", kind=WORDS.get(kind, kind), bytes=path.stat().st_size)
    if kind == "old pickle":
        result.summary = _pickle_summary(path, pickle_contents(path))
        return result
    with opened(path) as archive:
        archive.check()
        if kind == "damaged":
            raise ModelError.of("torch.archive", f"'{path}' holds nothing of PyTorch's", where=str(path))
        _READERS[kind](archive, result)
    return result


def pickle_contents(path: Path) -> str:
    """What a pickle holds, in a few words: the classes that it names, or only weights."""
    if kind_of(path) == "old pickle":
        return _contents(_old(path).names)
    with opened(path) as archive:
        return _of_archive(archive)


def weights_without_network(path: Path) -> str:
    """Words for what a pickle holds when no module can be in it; empty when one may be."""
    if kind_of(path) == "old pickle":
        seen = _old(path)
    else:
        with opened(path) as archive:
            if archive.size("data.pkl") > _LARGEST_PICKLE:
                return ""
            seen = looked_through(archive.read("data.pkl"))
    if not seen.whole or not all(_is_data(module, name) for module, name in seen.names):
        return ""
    return f"{counted(seen.tensors, 'tensor')} of weights" if seen.tensors else "numbers and words"


def _pickle_summary(path: Path, held: str) -> str:
    lone = weights_without_network(path)
    return f"PyTorch pickle: {held}; {'export the module that they belong to' if lone else _TRUSTED}"


def _is_data(module: str, name: str) -> bool:
    """True for what stands in checkpoints beside the weights, and holds no network."""
    if module in ("builtins", "__builtin__", "collections"):
        return name in _PLAIN
    return name in PLAIN_PICKLES.get(module, ()) or module == "torch._utils" or module.partition(".")[0] in _DATA


def _old(path: Path) -> Pickled:
    """The pickles of the format before 1.6. One by name only, without PyTorch's marks, is the first and last."""
    with path.open("rb") as stream:
        data = stream.read(_LARGEST_PICKLE)
    return looked_through(data, _PICKLES_BEFORE + 1 if data[2:].startswith(MAGIC) else 1)


def _of_archive(archive: Archive) -> str:
    if archive.size("data.pkl") > _LARGEST_PICKLE:
        return "a large tree of Python objects"
    names = pickled_names(archive.read("data.pkl"))
    stored = sum(archive.size(name) for name in archive.names if name.startswith("data/"))
    types = [word for storage, word in _TYPE_WORDS.items() if ("torch", storage) in names]
    return f"{_contents(names)}, {' and '.join([*types, f'{stored / 1e6:.2f} MB'])} of tensors"


def _classes(names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of what a pickle looks up, what is more than a tensor or a plain value."""
    return [
        (module, name)
        for module, name in names
        if name not in PLAIN_PICKLES.get(module, ()) and module not in ("torch._utils", "builtins", "__builtin__")
    ]


def _contents(names: list[tuple[str, str]]) -> str:
    classes = [f"{module}.{name}" for module, name in _classes(names)]
    if not classes:
        return "only weights, no network"
    shown = sorted(classes, key=lambda word: word.startswith(("torch.", "collections.")))[:_SHOWN_CLASSES]
    more = f" and {len(classes) - len(shown)} more" if len(classes) > len(shown) else ""
    return f"objects of {', '.join(shown)}{more}"


def _pickle(archive: Archive, result: InspectResult) -> None:
    result.summary = _pickle_summary(archive.path, _of_archive(archive))


def _exported(archive: Archive, result: InspectResult) -> None:
    program = _program(archive)
    graph = program["graph_module"]["graph"]
    signature = program["graph_module"]["signature"]
    values = graph["tensor_values"]
    given = [spec["user_input"]["arg"] for spec in signature["input_specs"] if "user_input" in spec]
    taken = [spec["user_output"]["arg"] for spec in signature["output_specs"] if "user_output" in spec]
    result.inputs, result.outputs = _rows(given, values), _rows(taken, values)
    result.operators = dict(Counter(_operator(node["target"]) for node in graph["nodes"]).most_common())
    named = {spec["parameter"]["arg"]["name"] for spec in signature["input_specs"] if "parameter" in spec}
    result.parameters = sum(_elements(values[name]["sizes"]) for name in named if name in values)
    result.producer = f"PyTorch {program['torch_version']}" if program.get("torch_version") else ""
    result.summary = (
        f"PyTorch exported program, {counted(len(graph['nodes']), 'node')} of {len(result.operators)} kinds, "
        f"{result.parameters} parameters"
    )


def _program(archive: Archive) -> Any:
    names = [n for n in archive.names if n.startswith("models/") and n.endswith(".json")] or [
        n for n in archive.names if n == "serialized_exported_program.json"
    ]
    if not names:
        raise ModelError.of(
            "torch.archive",
            f"'{archive.path}' holds no program",
            where=str(archive.path),
            help="save it again with torch.export.save",
        )
    return json.loads(archive.read(names[0]))


def _operator(target: str) -> str:
    return target.removeprefix("torch.ops.").removesuffix(".default")


def _rows(arguments: list[Any], values: Any) -> list[TensorRow]:
    rows = []
    for argument in arguments:
        name = argument.get("as_tensor", {}).get("name")
        if name is None:
            rows.append(TensorRow(name="", shape=[], dtype=next(iter(argument), "")))
            continue
        meta = values[name]
        rows.append(
            TensorRow(
                name=name,
                shape=[_extent(size) for size in meta["sizes"]],
                dtype=_DTYPES.get(meta["dtype"], str(meta["dtype"])),
            )
        )
    return rows


def _extent(size: Any) -> int | str:
    if "as_int" in size:
        return int(size["as_int"])
    text = SYMBOL_WRITTEN_OUT.sub(r"\1", size["as_expr"]["expr_str"])
    return _PRODUCT.sub(r"\1*\2", _NUMBER.sub(r"\1", text))


def _elements(sizes: list[Any]) -> int:
    count = 1
    for size in sizes:
        count *= max(0, int(size.get("as_int", 0)))
    return count


def _script(archive: Archive, result: InspectResult) -> None:
    stored = sum(archive.size(name) for name in archive.names if name.startswith(("data/", "constants/")))
    names = pickled_names(archive.read("data.pkl", _LARGEST_PICKLE)) if "data.pkl" in archive.names else []
    root = next((f"{module}.{name}" for module, name in names if module.startswith("__torch__")), "")
    result.inputs = [TensorRow(name=name, shape=["?"], dtype="") for name in _arguments(archive, root)]
    modules = sum(module.startswith("__torch__") for module, _ in names)
    shapes = " ".join(f"--shape {row.name}=1,..." for row in result.inputs)
    result.summary = (
        f"TorchScript, {counted(modules, 'module')}, {stored / 1e6:.2f} MB of tensors; the shapes of "
        f"its inputs are not in it: give {shapes or '--shape'}"
    )


def _arguments(archive: Archive, root: str) -> list[str]:
    """The arguments of the root module's ``forward``, read from its code as text."""
    for name in archive.names:
        if name.startswith("code/") and name.endswith(".py"):
            for found in _FORWARD.finditer(archive.read(name).decode("utf-8", "replace")):
                if found["owner"] == root:
                    parts = [part.partition(":")[0].strip() for part in found["arguments"].split(",")]
                    return [part for part in parts if part.isidentifier()]
    return []


def _sound(reader: Any) -> Any:
    """A reader of JSON that takes a description with other parts than expected for a damaged one."""

    def read(archive: Archive, result: InspectResult) -> None:
        try:
            reader(archive, result)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelError(
                Finding(
                    code="torch.archive",
                    where=str(archive.path),
                    why=f"{type(error).__name__}: {error}"[:200],
                    headline=f"'{archive.path}' is no sound PyTorch archive: its description is incomplete",
                    help="save it again",
                )
            ) from error

    return read


_READERS = {"exported": _sound(_exported), "script": _sound(_script), "pickle": _sound(_pickle)}
