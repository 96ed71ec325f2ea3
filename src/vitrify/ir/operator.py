"""The one registration of operators: an immutable class per kind of computation, found by its TFLite name."""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, dataclass_transform

from vitrify.core.errors import UnsupportedError
from vitrify.ir.dtypes import DType
from vitrify.ir.int8 import Int8Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vitrify.core.findings import Finding
    from vitrify.ir.graph import Array, Node, Tensor, TensorType

REGISTRY: dict[str, type[Operator]] = {}
"""Every typed operator by its TFLite name; filled by ``@operator`` alone."""

T = TypeVar("T", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def attributes(cls: T) -> T:
    """Make the annotations of an operator class its attributes, as ``dataclass(frozen=True)`` would.

    A dataclass generates and compiles six methods, which takes 0.4 ms for each of the 140 classes at every start;
    here they inherit the methods of ``Operator``.
    """
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    made._names = {f.name: None for f in fields(made)}
    made._defaults = {f.name: f.default for f in fields(made) if f.default is not MISSING}
    made._compared = tuple(f.name for f in fields(made) if f.compare)
    return cls


@attributes
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
    plain: ClassVar[frozenset[DType] | None] = None
    """The element types that the kernel takes without quantization; None where all, or nothing but float32, is used."""
    data: ClassVar[int] = 0
    """The input whose element type that is; others of its type go with it."""
    versions: ClassVar[dict[DType, int]] = {}
    """The version that each element type of the first input needs; 1 for all others."""

    _names: ClassVar[dict[str, None]]
    _defaults: ClassVar[dict[str, Any]]
    _compared: ClassVar[tuple[str, ...]]
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, *values: Any, **named: Any) -> None:
        found = {**self._defaults, **named}
        if values or found.keys() != self._names.keys():
            found = self._bound(values, named)
        self.__dict__.update(found)

    def _bound(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Give values that come by position their names, as a call of a function would."""
        names = tuple(self._names)
        found = self._defaults | dict(zip(names, values, strict=False)) | named
        wrong = [*values[len(names):], *(found.keys() - names), *(named.keys() & names[:len(values)])]
        missing = [name for name in names if name not in found]
        if wrong or missing:
            raise TypeError(f"{type(self).__name__} takes {', '.join(names) or 'nothing'}; "
                            + (f"cannot take {wrong}" if wrong else f"misses {missing}"))
        return found

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to '{name}' of {self}; use dataclasses.replace")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete '{name}' of {self}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._compared)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self._compared)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
        return f"{type(self).__qualname__}({shown})"

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


OperatorClass = TypeVar("OperatorClass", bound=type[Operator])


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def operator(cls: OperatorClass) -> OperatorClass:
    """Give an operator class its ``attributes`` and register it under its TFLite name.

    Raises:
        TypeError: the name is registered already; names both modules.
    """
    known = REGISTRY.get(cls.name)
    if known is not None:
        raise TypeError(f"{cls.name} is described twice: in {known.__module__} and in {cls.__module__}")
    REGISTRY[cls.name] = attributes(cls)
    return cls
