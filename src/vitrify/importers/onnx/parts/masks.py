"""Which keys a query may attend to: what is known now as one constant, the rest as few operators."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.source import Array
from vitrify.ir import DType, Tensor

HIDDEN = -1e4
"""Added to the score of a key that is hidden: exp gives exactly 0, and unlike -inf a row of it gives no NaN, and it
has a place in a quantized range."""


@dataclass
class Mask:
    """The mask over scores [batch, heads, queries, keys]; each part broadcasts to them.

    ``known`` and ``flags`` allow where they are true; ``known_bias`` and ``biases`` are added to the scores.
    """

    queries: int
    keys: int
    known: Array | None = None
    flags: list[Tensor] = field(default_factory=list)
    known_bias: Array | None = None
    biases: list[Tensor] = field(default_factory=list)

    def allow(self, allowed: Array) -> None:
        """Hide where a constant is false."""
        self.known = allowed if self.known is None else self.known & allowed

    def apply(self, ctx: Context, value: Value) -> None:
        """Take a mask as ONNX gives it: bool allows, numbers are added; a short one hides the keys beyond it."""
        if isinstance(value, np.ndarray):
            value = value.astype(np.float32) if value.dtype.kind == "f" else value
            self._apply_known(value)
        elif value.dtype is DType.BOOL:
            self.flags.append(self._to_full_length(ctx, value, np.bool_(False)))
        else:
            self.biases.append(self._to_full_length(ctx, value, np.float32(HIDDEN)))

    def _apply_known(self, value: Array) -> None:
        missing = [(0, 0)] * (value.ndim - 1) + [(0, self.keys - value.shape[-1])]
        if value.dtype == np.bool_:
            self.allow(np.pad(value, missing))
            return
        value = np.pad(value, missing, constant_values=-np.inf)
        if np.isneginf(value).any():
            self.allow(~np.isneginf(value))
            value = np.where(np.isneginf(value), np.float32(0), value)
        self.known_bias = value if self.known_bias is None else self.known_bias + value

    def _to_full_length(self, ctx: Context, value: Tensor, fill: np.generic) -> Tensor:
        missing = self.keys - value.shape[-1]
        if missing <= 0 or value.shape[-1] == 1:
            return value
        rest = np.full((*value.shape[:-1], missing), fill)
        return ctx.emit(ops.Concatenation(axis=len(value.shape) - 1), [value, rest], aside=True)

    def _flags(self, ctx: Context) -> Tensor | None:
        """Every flag computed at run time, as one."""
        if not self.flags:
            return None
        total, *others = self.flags
        for other in others:
            total = ctx.emit(ops.LogicalAnd(), [total, other], aside=True)
        if self._hides:
            total = ctx.emit(ops.LogicalAnd(), [total, self.known], aside=True)
        return total

    def added(self, ctx: Context, scores: Tensor) -> Tensor:
        """``scores`` with everything added."""
        flags = self._flags(ctx)
        bias = self.known_bias
        if flags is None and self.known is not None and self._hides:
            hidden = np.where(self.known, np.float32(0), np.float32(HIDDEN))
            bias = hidden if bias is None else bias + hidden
        scores = self._biased(ctx, scores, bias)
        if flags is None:
            return scores
        low = ctx.emit(ops.SelectV2(), [flags, np.zeros(1, np.float32), np.full(1, HIDDEN, np.float32)], aside=True)
        return ctx.emit(ops.Add(), [scores, low], aside=True)

    def infinite(self, ctx: Context, scores: Tensor) -> Tensor:
        """Like ``added``, with -inf where a key is hidden: by selection, as ADD does not go below the lowest number.

        Source: TFLite kernels/add.cc, which clamps to the range of an absent activation.
        """
        flags = self._flags(ctx)
        allowed = self.known if flags is None and self._hides else flags
        scores = self._biased(ctx, scores, self.known_bias)
        if allowed is None:
            return scores
        return ctx.emit(ops.SelectV2(), [allowed, scores, np.full(1, -np.inf, np.float32)], aside=True)

    @property
    def _hides(self) -> bool:
        return self.known is not None and not self.known.all()

    def _biased(self, ctx: Context, scores: Tensor, known: Array | None) -> Tensor:
        if known is not None and known.any():
            scores = ctx.emit(ops.Add(), [scores, known.astype(np.float32)], aside=True)
        for tensor in self.biases:
            scores = ctx.emit(ops.Add(), [scores, tensor], aside=True)
        return scores

    def seeing(self, ctx: Context) -> Value | None:
        """1 for a query that sees a key and 0 for one that sees none; None when each is known to see one.

        A mask of numbers computed at run time is taken to leave a key to each query.
        """
        flags = self._flags(ctx)
        if flags is None:
            if self.known is None or self.known.any(axis=-1).all():
                return None
            return np.asarray(self.known.any(axis=-1, keepdims=True), np.float32)
        numbers = ctx.emit(ops.Cast(in_data_type=DType.BOOL.value, out_data_type=DType.FLOAT32.value), [flags],
                           aside=True)
        return ctx.emit(ops.ReduceMax(keep_dims=True), [numbers, np.array([len(flags.shape) - 1], np.int32)],
                        aside=True)


@dataclass(frozen=True)
class Band:
    """The keys around a query's own place: up to ``left`` before it and ``right`` after it; None is without bound."""

    left: int | None = None
    right: int | None = None

    def known(self, queries: int, keys: int, offset: int) -> Array:
        """The constant mask when query i has the place i + ``offset`` among the keys."""
        ahead = np.arange(keys)[None, :] - (np.arange(queries)[:, None] + offset)
        allowed = np.ones((queries, keys), np.bool_)
        if self.left is not None:
            allowed &= ahead >= -self.left
        if self.right is not None:
            allowed &= ahead <= self.right
        return allowed

    def flags(self, ctx: Context, queries: int, keys: int, filled: Tensor) -> list[Tensor]:
        """The masks when ``filled`` (int32 [batch, 1, 1, 1], at run time) keys are there, the queries' own the last."""
        reach = (np.arange(keys)[None, :] - np.arange(queries)[:, None] + queries).astype(np.int32)[None, None]
        found = []
        if self.right is not None:
            found.append(ctx.emit(ops.LessEqual(), [reach - np.int32(self.right), filled], aside=True))
        if self.left is not None:
            found.append(ctx.emit(ops.GreaterEqual(), [reach + np.int32(self.left), filled], aside=True))
        if self.right != 0:  # else no query sees beyond the last key that is there
            places = np.arange(keys, dtype=np.int32)[None, None, None]
            found.append(ctx.emit(ops.Less(), [places, filled], aside=True))
        return found
