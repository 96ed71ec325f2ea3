"""What crosses between ONNX Runtime's two sides; imports nothing of it, so that the parent stays free of it."""

from __future__ import annotations

from typing import NamedTuple


class Spec(NamedTuple):
    """Which model: ``stamp`` tells versions of a file apart."""

    path: str
    stamp: tuple[int, int]
    threads: int


class Value(NamedTuple):
    """An input or output; a dimension is a number, a symbol, or None where nothing is said. ``dtype`` is numpy's."""

    name: str
    dtype: str
    dims: list[int | str | None]


class Details(NamedTuple):
    """What ONNX Runtime says of a file.

    ``tensors`` are all the values that the main graph computes, in
    order, ``kinds`` the operators it uses, ``metadata`` what its exporter wrote beside the graph.
    """

    inputs: list[Value]
    outputs: list[Value]
    tensors: list[str]
    kinds: list[str]
    version: str
    metadata: dict[str, str]
