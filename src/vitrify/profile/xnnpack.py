"""Which node of a file an operator of XNNPACK belongs to.

The delegate takes the nodes of a stretch together and reports its own operators in running order, by a name and no
more. Both lists have the same order, so the best alignment of the two is looked for: an operator may be of a kind of
node or help beside it, and a node may have vanished in its neighbour.

Source: XNNPACK's operator names (operator-type-defs.inc), and LiteRT's partitioning (graph_info.cc).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vitrify.ir import Graph, Node

_OWN: dict[str, str] = {
    "CONV_2D": r"convolution|fully connected|conv2d",
    "DEPTHWISE_CONV_2D": r"convolution|dwconv",
    "TRANSPOSE_CONV": r"deconvolution",
    "FULLY_CONNECTED": r"fully connected",
    "BATCH_MATMUL": r"batch matrix|matmul|fully connected",
    "ADD": r"^add", "SUB": r"^subtract", "MUL": r"^multiply|^square", "DIV": r"^divide",
    "MAXIMUM": r"^maximum", "MINIMUM": r"^minimum", "SQUARED_DIFFERENCE": r"squared difference",
    "PRELU": r"prelu", "LEAKY_RELU": r"leaky", "ELU": r"^elu", "GELU": r"gelu", "HARD_SWISH": r"hardswish",
    "LOGISTIC": r"sigmoid", "TANH": r"tanh", "SOFTMAX": r"softmax", "RSQRT": r"reciprocal square root|rsqrt",
    "SQRT": r"square root", "SQUARE": r"^square|^multiply", "ABS": r"^abs", "NEG": r"negate", "EXP": r"^exp",
    "LOG": r"^log", "COS": r"cosine", "SIN": r"^sine", "FLOOR": r"^floor", "CEIL": r"^ceil", "ROUND": r"bankers",
    "RELU": r"clamp", "RELU6": r"clamp", "RELU_N1_TO_1": r"clamp",
    "AVERAGE_POOL_2D": r"average pool|mean", "MAX_POOL_2D": r"max pool",
    "MEAN": r"mean|average pool", "SUM": r"^sum|reduce", "REDUCE_MAX": r"reduce|max", "REDUCE_MIN": r"reduce|min",
    "RESIZE_BILINEAR": r"resize bilinear", "RESHAPE": r"reshape|copy", "TRANSPOSE": r"transpose",
    "EXPAND_DIMS": r"reshape|copy|expand", "SQUEEZE": r"reshape|copy",
    "PAD": r"constant pad", "CONCATENATION": r"concat|copy", "SPLIT": r"even split|split|slice|copy",
    "SLICE": r"slice", "STRIDED_SLICE": r"slice", "QUANTIZE": r"convert", "DEQUANTIZE": r"convert", "CAST": r"convert",
    "DEPTH_TO_SPACE": r"depth to space|transpose", "SPACE_TO_DEPTH": r"space to depth|transpose",
}
"""What the operators of each kind of node are called, as XNNPACK names them in lower case."""

_TABLES = frozenset({"LOGISTIC", "TANH", "GELU", "ELU", "HARD_SWISH", "LEAKY_RELU", "EXP", "LOG", "RSQRT", "SQRT",
                     "ABS", "NEG", "SQUARE", "SIN", "COS"})
_TABLE = "invalid unary op"
"""What LiteRT 2.3's XNNPACK calls a look-up in a table, by which it computes these on 8 bits, x * sigmoid(x) as one."""

_HELPER = re.compile(r"reshape|copy|convert|transpose|pad|reduce|subtract|multiply|clamp|slice", re.IGNORECASE)
"""What is run beside a node's own operator."""

_VANISHES = frozenset({"PAD", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "RELU", "RELU6", "RELU_N1_TO_1", "DEQUANTIZE",
                       "QUANTIZE", "TRANSPOSE", "CONCATENATION", "SPLIT", "MUL", "ADD", "TANH", "LOGISTIC"})
"""Nodes that XNNPACK fuses into a neighbour, or does by giving a value another shape."""

_MATCH, _HELP, _WRONG, _GONE, _LOST = 10.0, 1.0, -8.0, -1.0, -6.0


class Aligned(NamedTuple):
    """The node of each operator (an index into the nodes), and the share that a name confirms."""

    owners: list[int]
    sure: float


def align(nodes: Sequence[Node], names: Sequence[str]) -> Aligned:
    """Give each operator to one of the nodes, both in running order."""
    if not nodes:
        return Aligned([], 0.0)
    count, total = len(nodes), len(names)
    score = np.array([[_score(node, name) for node in nodes] for name in names]).reshape(total, count)
    skip = np.cumsum([0.0] + [_GONE if node.op.kind in _VANISHES else _LOST for node in nodes])
    # best[i, j]: operators up to i are placed, the last on node j; a node passed over costs by what it is.
    best = np.full((total, count), -np.inf)
    came = np.zeros((total, count), np.int64)
    for i in range(total):
        if i == 0:
            best[0] = score[0] + skip[:-1]
            continue
        again = best[i - 1] + np.where(score[i] > _HELP, _HELP, score[i])      # one operator is a node's own
        reach = best[i - 1] - skip[1:]
        top = np.maximum.accumulate(reach)
        at = np.maximum.accumulate(np.where(reach == top, np.arange(count), 0))
        moved = np.full(count, -np.inf)
        moved[1:] = top[:-1] + skip[1:-1] + score[i, 1:]
        stays = again >= moved
        best[i] = np.where(stays, again, moved)
        came[i] = np.where(stays, np.arange(count), np.concatenate([[0], at[:-1]]))
    return _walk(best, came, score, skip, names)


def _walk(best: np.ndarray, came: np.ndarray, score: np.ndarray, skip: np.ndarray,
          names: Sequence[str]) -> Aligned:
    total = len(best)
    if not total:
        return Aligned([], 1.0)
    owners = [0] * total
    j = int(np.argmax(best[-1] + skip[-1] - skip[1:]))
    for i in range(total - 1, -1, -1):
        owners[i] = j
        j = int(came[i, j])
    sure = sum(bool(score[i, owner] > _WRONG) for i, owner in enumerate(owners)) / total
    return Aligned(owners, sure)


def _score(node: Node, name: str) -> float:
    own = _OWN.get(node.op.kind)
    if name.lower() == _TABLE:
        return _MATCH if node.op.kind in _TABLES else _WRONG
    if own is not None and re.search(own, name.lower()):
        return _MATCH
    return _HELP if _HELPER.search(name) else _WRONG


def stretches(graph: Graph, delegated: Sequence[bool]) -> list[list[int]]:
    """Return the nodes of each stretch that a delegate takes, in running order of the stretches.

    LiteRT goes through the nodes again and again; each time it takes those that are ready and of one side.
    """
    nodes = list(graph)
    epoch: dict[int, int] = {}
    made = {id(tensor): index for index, node in enumerate(nodes) for tensor in node.outputs}
    feeds = [[made[id(t)] for t in node.inputs if t is not None and id(t) in made] for node in nodes]
    found: list[list[int]] = []
    left = list(range(len(nodes)))
    while left:
        side: bool | None = None
        taken: list[int] = []
        rest: list[int] = []
        for index in left:
            ready = all(feed in epoch for feed in feeds[index])
            if ready and side in (None, delegated[index]):
                side = delegated[index]
                epoch[index] = len(found)
                taken.append(index)
            else:
                rest.append(index)
        if not taken:
            break
        if side:
            found.append(taken)
        left = rest
    return found
