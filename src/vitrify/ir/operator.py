"""The one registration of operators: a frozen dataclass per kind of computation, found by its TFLite name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from vitrify.core.errors import UnsupportedError
from vitrify.ir.dtypes import DType
from vitrify.ir.int8 import Int8Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vitrify.core.findings import Finding
    from vitrify.ir.graph import Array, Node, Tensor, TensorType

REGISTRY: dict[str, type[Operator]] = {}
"""Every typed operator by its TFLite name; filled by ``@operator`` alone."""


@dataclass(frozen=True)
class Operator:
    """A kind of computation with its attributes. Subclasses are described in ``vitrify.ops``.

    Each attribute is a field named as in the TFLite options table, in snake case (``stride_h`` is ``strideH``), so
    that reader and writer need no table of their own.
    """

    name: ClassVar[str] = ""
    """The builtin operator's name in the TFLite schema."""
    options: ClassVar[str | None] = None
    """The name of its options table in the schema, None when it has none."""
    int8: ClassVar[Int8Rule | None] = None
    """How it is quantized to int8; None when the runtime has no int8 kernel for it."""
    int8_problem: ClassVar[str] = ""
    """What the runtime does with int8 tensors when there is no int8 kernel: it "refuses int8", for instance."""
    versions: ClassVar[dict[DType, int]] = {}
    """The version that each element type of the first input needs; 1 for all others."""

    @property
    def kind(self) -> str:
        """The name that messages and counts use."""
        return self.name

    def infer(self, inputs: Sequence[Tensor | None]) -> list[TensorType]:
        """Return the types of the outputs, from the inputs' types and constant data.

        Raises:
            ModelError: the inputs do not fit the operator.
            UnsupportedError: the outputs' types are known at run time only.
        """
        raise UnsupportedError.of("ops.shape", f"the output shape of {self.kind} is not known before it runs")

    def evaluate(self, inputs: Sequence[Array | None]) -> list[Array]:
        """Compute the outputs with numpy, as the runtime's reference kernel does for float, integer and bool data.

        Raises:
            ModelError: the inputs do not fit the operator.
            UnsupportedError: there is no reference for this operator, or not for these inputs.
        """
        raise UnsupportedError.of("ops.reference", f"{self.kind} has no numpy reference")

    def macs(self, node: Node) -> int:
        """Return the multiply-accumulates that ``node`` does."""
        return 0

    def version(self, node: Node) -> int:
        """Return the version of the TFLite operator that the types and attributes of ``node`` need."""
        first = next((tensor for tensor in node.inputs if tensor is not None), None)
        return self.versions.get(first.dtype, 1) if first is not None else 1

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of in ``node``, besides what its int8 rule says already."""
        yield from ()

    def __str__(self) -> str:
        shown = ", ".join(f"{f.name}={_short(getattr(self, f.name))}" for f in fields(self)
                          if getattr(self, f.name) != f.default)
        return f"{self.kind}({shown})" if shown else self.kind


def _short(value: Any) -> str:
    return getattr(value, "name", None) or str(value)


T = TypeVar("T", bound=type[Operator])


def operator(cls: T) -> T:
    """Register an operator class under its TFLite name.

    Raises:
        TypeError: the name is registered already; names both modules.
    """
    known = REGISTRY.get(cls.name)
    if known is not None:
        raise TypeError(f"{cls.name} is described twice: in {known.__module__} and in {cls.__module__}")
    REGISTRY[cls.name] = cls
    return cls
