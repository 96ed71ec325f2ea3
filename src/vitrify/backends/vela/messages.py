"""Reads the compiler's printed reasons, and gives each a stable code, the cause and the help that we know to work.

The reasons exist nowhere but in the text. It also names operators that the compiler coped with in the end, so a reason
counts only for a node that is on the CPU in the result.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from vitrify.ir import Node
from vitrify.targets.placement import Reason

_BLOCK = re.compile(r"^Warning \(supported operators\) operator: (?P<operator>\S*), "
                    r"ofm: '(?P<tensor>(?s:.){0,10000}?)'\n"
                    r"Reason: (?P<reason>.*)\n(?P<rule>(?:(?!Warning \(supported operators\)).+\n)*)",
                    re.MULTILINE)
_RULE_SHOWN = 300
_BEFORE_ACTIVATION = "_act"
"""Behind a tensor's name: the value before a fused activation, which the compiler takes apart and names so."""
_QUANTIZE = "vitrify quantize MODEL --data FOLDER -o MODEL_int8.tflite"


class Message(NamedTuple):
    """One printed warning: the operator, its output tensor, the reason, and the rule it names (which may be long)."""

    operator: str
    tensor: str
    text: str
    rule: str


def read_messages(log: str) -> list[Message]:
    """Return the warnings in ``log``, in order."""
    return [Message(block["operator"], block["tensor"], block["reason"].strip(), " ".join(block["rule"].split()))
            for block in _BLOCK.finditer(f"{log}\n")]


class _Known(NamedTuple):
    pattern: re.Pattern[str]
    code: str
    headline: str       # may use the pattern's groups
    why: str = ""       # empty: the compiler's own words
    help: str = ""


def _known(pattern: str, code: str, headline: str, why: str = "", help: str = "") -> _Known:
    return _Known(re.compile(pattern), code, headline, why, help)


_TYPES = "the NPU takes int8, uint8, int16 and int32 values"
_KNOWN = (
    _known(r"^Unsupported opType", "ethos-u.unsupported-operator", "the NPU has no such operator",
           "the operator is not in Vela's table of supported operators"),
    _known(r"unsupported DataType Float\d+ \((?P<tensor>.*?)\)( |$)", "ethos-u.float-tensor",
           "tensor '{tensor}' is float; " + _TYPES, "the NPU computes with integers only",
           "quantize the whole model: " + _QUANTIZE),
    _known(r"unsupported DataType (?P<type>\S+) \((?P<tensor>.*?)\)( |$)", "ethos-u.tensor-type",
           "tensor '{tensor}' is {type}; " + _TYPES),
    _known(r"Dynamic non-batch dimension at axis (?P<axis>\d+) on tensor (?P<tensor>.*)$", "ethos-u.dynamic-shape",
           "dimension {axis} of tensor '{tensor}' is free; only the batch may be",
           "the file's shape signature holds -1 there, even if the shape itself is static",
           "fix the shape: vitrify convert MODEL --shape INPUT=1,H,W,C -o OUT.tflite"),
    _known(r"shapeless tensor", "ethos-u.unknown-shape", "a tensor has no constant shape"),
    _known(r"Unsupported depth-reduction\.\s+IFM: (?P<shape>[\d, ]+)", "ethos-u.depth-reduction",
           "it reduces over depth of [{shape}]; the NPU does so only when H, W or C is 1",
           "often a reduction over H and W whose axes kept the channels-first order"),
    _known(r"does not support per-axis quantization", "ethos-u.per-axis-quantization",
           "it has one scale per channel; the NPU takes that for convolutions only"),
    _known(r"mismatching quantization parameter", "ethos-u.unequal-scales",
           "its inputs and outputs differ in scale or zero point"),
    _known(r"[Uu]nsupported (kernel stride|stride combination): \(?(?P<stride>[\d, ]+)\)?|stride out of range: "
           r"\((?P<out>[\d, ]+)\)", "ethos-u.stride", "its stride {stride}{out} is outside 1..3"),
    _known(r"Transpose with permutation (?P<perm>[\d, ]+) has shape out of range: (?P<shape>[\d, ]+)",
           "ethos-u.transpose", "the permutation ({perm}) of [{shape}] is beyond the NPU's transposes"),
    _known(r"unsupported scale-factor|scale-factor", "ethos-u.resize-factor",
           "its scale factor is not one of 2, 4, 8 in both directions"),
    _known(r"^Batch > 1: (?P<batch>\d+)|has batch size: (?P<size>\d+)", "ethos-u.batch",
           "its batch is {batch}{size}, the NPU takes 1", "", "make the model for one sample: --shape INPUT=1,..."),
)


def reason(message: Message, known_tensors: Container[str] = ()) -> Reason:
    """Return the coded form of a printed reason; text that is new to us is given as it stands.

    ``known_tensors`` are the names in the user's file: the compiler's own names for parts of a node are turned back.
    """
    for known in _KNOWN:
        match = known.pattern.search(message.text)
        if match:
            values = {name: value or "" for name, value in match.groupdict().items()}
            if "tensor" in values and values["tensor"] not in known_tensors:
                values["tensor"] = values["tensor"].removesuffix(_BEFORE_ACTIVATION)
            return Reason(code=known.code, headline=known.headline.format(**values),
                          why=known.why or _own_words(message), help=known.help)
    return Reason(code="ethos-u.constraint", headline=_lower(message.text) or "no reason was printed",
                  why=_own_words(message))


def _own_words(message: Message) -> str:
    words = message.rule or message.text
    return f"Vela: {words[:_RULE_SHOWN]}{'...' * (len(words) > _RULE_SHOWN)}"


def _lower(text: str) -> str:
    """Continue a sentence with ``text``; an abbreviation keeps its capitals."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def reasons_for(node: Node, messages: Sequence[Message], known_tensors: Container[str]) -> tuple[Reason, ...]:
    """Return the reasons given for ``node``, each code once."""
    names = {name for tensor in node.outputs for name in (tensor.name, tensor.name + _BEFORE_ACTIVATION)}
    # A node without outputs is reported under a made-up tensor, so only its kind is left to go by.
    same_kind = [message for message in messages if message.operator == node.op.kind]
    about = [message for message in messages if message.tensor in names] if names else same_kind
    exact = [message for message in about if message in same_kind]
    found: dict[str, Reason] = {}
    for message in exact or about:
        coded = reason(message, known_tensors)
        found.setdefault(coded.code, coded)
    return tuple(found.values())

