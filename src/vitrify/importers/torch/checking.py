"""What an exported program or TorchScript file may hold to be loaded without the caller's trust.

PyTorch evaluates expressions, looks up functions by name, makes Python code out of names and unpickles whatever is not
plain. All of that is read here beforehand, as text; what is not a computation on tensors is refused. Nothing here
imports PyTorch.

Source: torch/_export/serde/serialize.py (GraphModuleDeserializer), torch/export/pt2_archive/_package.py.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from vitrify.core.errors import ModelError, UsageError
from vitrify.importers.torch.archive import Archive, opened

PLAIN_PICKLES = {
    "builtins": {"bytearray", "complex", "set"},
    "_codecs": {"encode"},
    "collections": {"OrderedDict"},
    "torch": {
        "Size",
        "device",
        "dtype",
        "Tensor",
        "FloatStorage",
        "DoubleStorage",
        "HalfStorage",
        "BFloat16Storage",
        "LongStorage",
        "IntStorage",
        "ShortStorage",
        "CharStorage",
        "ByteStorage",
        "BoolStorage",
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
        "strided",
        "per_tensor_affine",
        "per_channel_affine",
        "QInt8Storage",
        "QUInt8Storage",
        "QInt32Storage",
    },
    "torch.storage": {"UntypedStorage", "TypedStorage"},
    "torch.serialization": {"_get_layout"},
    "torch.nn.parameter": {"Parameter", "Buffer"},
    "torch._utils": {
        "_rebuild_tensor",
        "_rebuild_tensor_v2",
        "_rebuild_tensor_v3",
        "_rebuild_parameter",
        "_rebuild_parameter_with_state",
        "_rebuild_qtensor",
    },
    "torch._tensor": {"_rebuild_from_type_v2"},
    "torch.jit._pickle": {
        "build_intlist",
        "build_doublelist",
        "build_boollist",
        "build_tensorlist",
        "build_tensor_from_id",
        "restore_type_tag",
    },
}
"""What a pickle of tensors names, by module, as ``torch.load`` takes it with ``weights_only``. ``_load_from_bytes`` of
older files is left out: it unpickles what it is given."""

_NAMESPACES = (
    "aten",
    "prims",
    "prim",
    "higher_order",
    "quantized",
    "quantized_decomposed",
    "torchvision",
    "onnx",
    "profiler",
)
_OPERATOR = re.compile(rf"torch\.ops\.(?:{'|'.join(_NAMESPACES)})\.\w+(?:\.\w+)?")
_SYMBOLIC = re.compile(r"torch\._?sym_\w+|math\.\w+|_operator\.(?!(?:attr|item)getter|methodcaller|call)\w+")
_FILES = re.compile(r"(?:^|\.)(?:save|load|from_file|_?load_library|import_module|print)(?:\.|$)")
_EXPRESSION = re.compile(r"[\w\s+\-*/%(),<>=.&|~]*")
_ACCESS = re.compile(r"\.\s*[A-Za-z_]|\*\*(?!\s*\d{1,2}(?!\d|\s*\*\*))")
_EXPRESSION_WORD = re.compile(r"[A-Za-z_]\w*")
_SYMBOL = re.compile(r"(?:s|u|z|zf|zuf|f|i)\d+")
_FUNCTIONS = {
    "FloorDiv",
    "ModularIndexing",
    "Where",
    "PythonMod",
    "Mod",
    "CleanDiv",
    "CeilToInt",
    "FloorToInt",
    "CeilDiv",
    "LShift",
    "RShift",
    "PowByNatural",
    "FloatPow",
    "FloatTrueDiv",
    "IntTrueDiv",
    "IsNonOverlappingAndDenseIndicator",
    "TruncToFloat",
    "TruncToInt",
    "RoundToInt",
    "RoundDecimal",
    "ToFloat",
    "Identity",
    "Max",
    "Min",
    "floor",
    "ceiling",
    "Eq",
    "Ne",
    "And",
    "Or",
    "Not",
    "Abs",
    "Piecewise",
    "True",
    "False",
    "true",
    "false",
    "oo",
    "int_oo",
    "sqrt",
    "Add",
    "Mul",
    "Pow",
    "Integer",
    "Rational",
    "Float",
    "Equality",
    "Unequality",
    "StrictLessThan",
    "LessThan",
    "GreaterThan",
    "StrictGreaterThan",
}
SYMBOL_WRITTEN_OUT = re.compile(r"Symbol\('(\w+)'(?:, \w+=(?:True|False))*\)")
_LONGEST_EXPRESSION = 2000
_NAME = re.compile(r"[\w.]*")
_QUALIFIED = re.compile(r"[^\"'\\\n\r;(){}]*")
_NAMES = {
    "name": _NAME,
    "forward_arg_names": _NAME,
    "parameter_name": _QUALIFIED,
    "buffer_name": _QUALIFIED,
    "tensor_constant_name": _QUALIFIED,
    "fqn": _QUALIFIED,
    "custom_obj_name": _QUALIFIED,
}
_CLASSES = ("__enum__", "default_factory_module")
_SCRIPT_FILES = re.compile(r"\b(?:torch|ops\.\w+|prim|aten)\.(save|load|from_file|load_library)\s*\(")
_TOUCHES_FILES = "it can read and write files"


def refuse_unsafe(path: Path, kind: str) -> None:
    """Look through a file that is to be loaded without trust.

    Raises:
        UsageError: it holds code, or names a function that is no computation on tensors.
        ModelError: it is no archive as PyTorch writes them.
    """
    with opened(path) as archive:
        archive.check()
        for name in archive.names:
            if name.startswith("data/aotinductor/") or name.endswith((".so", ".dll", ".dylib")):
                raise _unsafe(path, f"machine code, '{name}'")
            if name.endswith(".json"):
                _check_json(archive, name)
            elif name.startswith("code/") and name.endswith(".py"):
                _check_script(archive, name)
        if kind == "script":
            for name in ("data.pkl", "constants.pkl"):
                if name in archive.names:
                    _check_pickle(archive, name)


def _unsafe(path: Path, what: str) -> UsageError:
    return UsageError.of(
        "torch.unsafe",
        f"'{path}' holds {what}: to load it may be to run code",
        where=str(path),
        why="nothing was loaded",
        help="add --trust if you know where the file comes from",
    )


def _check_json(archive: Archive, name: str) -> None:
    try:
        content = json.loads(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise ModelError.of(
            "torch.archive",
            f"'{archive.path}' is no sound PyTorch archive: its entry '{name}' is no JSON",
            where=str(archive.path),
            why=str(error)[:200],
            help="save the model again",
        ) from error
    problem = next(_problems(content), None)
    if problem is not None:
        raise _unsafe(archive.path, problem)


def _problems(content: Any) -> Iterator[str]:
    """What in a program's description is no computation on tensors."""
    waiting = [("", content)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            yield from (f"a class of Python, by '{word}'" for word in _CLASSES if word in value)
            waiting += value.items()
            if key == "range_constraints":
                yield from (f"the expression {_short(text)}" for text in value if not _is_expression(text))
        elif isinstance(value, list):
            waiting += [(key, part) for part in value]
        elif isinstance(value, str):
            yield from _problem_of(key, value)


def _problem_of(key: str, text: str) -> Iterator[str]:
    if key == "target" and not _is_target(text):
        yield f"a call of {_short(text)}"
    elif key == "expr_str" and not _is_expression(text):
        yield f"the expression {_short(text)}"
    elif key in _NAMES and not _NAMES[key].fullmatch(text):
        yield f"the name {_short(text)}"
    elif any(word in text for word in _CLASSES):
        yield f"a class of Python, {_short(text)}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")


def _is_target(text: str) -> bool:
    """True for an operator, and for the words of a graph's own nodes."""
    if _OPERATOR.fullmatch(text):
        return "__" not in text.replace(".__", "").replace("__.", "") and not _FILES.search(text)
    return bool(_SYMBOLIC.fullmatch(text) or ("." not in text and text.isidentifier()) or _is_qualified(text))


def _is_qualified(text: str) -> bool:
    """True for the dotted name of a weight, which the description calls a target too."""
    return not text.startswith(("torch", "_operator", "math", "#")) and bool(_QUALIFIED.fullmatch(text))


def _is_expression(text: str) -> bool:
    """True for arithmetic on symbols and known functions: PyTorch lets ``sympify`` evaluate the text."""
    text = SYMBOL_WRITTEN_OUT.sub(r"\1", text)
    if len(text) > _LONGEST_EXPRESSION or not _EXPRESSION.fullmatch(text) or _ACCESS.search(text):
        return False
    return all(_SYMBOL.fullmatch(word) or word in _FUNCTIONS for word in _EXPRESSION_WORD.findall(text))


def _check_script(archive: Archive, name: str) -> None:
    found = _SCRIPT_FILES.search(archive.read(name).decode("utf-8", "replace"))
    if found is not None:
        raise _unsafe(archive.path, f"a call of torch.{found[1]} in '{name}', with which {_TOUCHES_FILES}")


def _check_pickle(archive: Archive, name: str) -> None:
    for module, attribute in pickled_names(archive.read(name)):
        if not module.startswith("__torch__") and attribute not in PLAIN_PICKLES.get(module, ()):
            raise _unsafe(archive.path, f"a pickle that calls {module}.{attribute}, '{name}'")


class Pickled(NamedTuple):
    """What a pickle says without being unpickled: the modules and names that it looks up, and how many tensors it has.

    ``whole`` is False when it is cut off or damaged, so that more may follow.
    """

    names: list[tuple[str, str]]
    tensors: int
    whole: bool


def pickled_names(data: bytes) -> list[tuple[str, str]]:
    """Return the modules and names that a pickle looks up, without unpickling it. What is cut off is left out."""
    return looked_through(data).names


def looked_through(data: bytes, pickles: int = 1) -> Pickled:
    """Read the opcodes of ``pickles`` pickles that stand one after the other, without unpickling them.

    A tensor is a persistent id: its bytes stand elsewhere in the file.
    """
    found: dict[tuple[str, str], None] = {}
    tensors = 0
    stream = io.BytesIO(data)
    try:
        for _ in range(pickles):
            tensors += _look_through(stream, found)
    except ValueError:
        return Pickled(list(found), tensors, whole=False)      # cut off or no pickle: whoever loads it says so
    return Pickled(list(found), tensors, whole=True)


def _look_through(stream: io.BytesIO, found: dict[tuple[str, str], None]) -> int:
    memo: dict[int, str] = {}
    last: list[str] = []
    tensors = 0
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            found[module, name] = None
        elif opcode.name == "STACK_GLOBAL":
            found[(last[-2], last[-1]) if len(last) > 1 else ("?", "?")] = None
        elif opcode.name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            memo[len(memo) if argument is None else argument] = last[-1] if last else ""
        elif opcode.name in ("GET", "BINGET", "LONG_BINGET"):
            last = [*last[-1:], memo.get(int(argument or 0), "?")]
        elif opcode.name in ("PERSID", "BINPERSID"):
            tensors += 1
        elif isinstance(argument, str):
            last = [*last[-1:], argument]
    return tensors
