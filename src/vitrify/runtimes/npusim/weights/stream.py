"""The compressed weight stream of an Ethos-U: slices of Golomb-Rice codes with palettes and runs of zeros.

Weights and runs of zeros alternate in chunks of up to twelve; the quotients of a chunk come first, the remainders of
the one before behind them. Source: the format of Vela's ``mlw_codec``, which the chip shares.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from vitrify.core.errors import ModelError

Weights = np.ndarray[Any, np.dtype[np.int16]]
_END, _NO_ZERO_RUNS, _PLAIN = 7, 6, 7
_SYMBOLS = 12
_FEW_SYMBOLS = 8
"""In a chunk: of plain weights with more than five bits, and of zero runs of the largest divisor."""
_AHEAD = 8
"""By how many weights the zero runs may lag."""
_LARGEST = 512
_REACH = 3
"""Bytes that hold the bits of any remainder, wherever it begins."""


def decode_weights(stream: bytes, expected: int) -> Weights:
    """Return the weights in ``stream``, zero points taken off, in the order of the stream.

    Raises:
        ModelError: it is damaged, or holds more than ``expected``.
    """
    return np.concatenate([np.zeros(0, np.int16), *slices(stream, expected)])


def slices(stream: bytes, expected: int) -> Iterator[Weights]:
    """Yield the weights of each slice of ``stream``.

    Raises:
        ModelError: it is damaged, or holds more than ``expected``.
    """
    reader = _Reader(stream, expected)
    while reader.at_slice():
        yield reader.slice()


class _Header(NamedTuple):
    values: int
    zero_divisor: int
    divisor: int
    truncated: bool
    plain: bool
    fresh: bool

    @property
    def zero_runs(self) -> bool:
        return self.zero_divisor != _NO_ZERO_RUNS


class _Palette(NamedTuple):
    entries: Weights
    bits: int
    offset: int


class _Codes:
    """Quotients as they come, and where in the stream the remainder of each lies."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.quotients = array("I")
        self.places = array("I")
        self.pending = 0
        self.carry = 0

    @property
    def seen(self) -> int:
        return len(self.quotients)

    def values(self, reader: _Reader, divisor: int) -> Any:
        quotients = np.array(self.quotients[:self.count], np.int64)
        return (quotients << divisor) + reader.gather(np.array(self.places[:self.count], np.int64), divisor)


class _Reader:
    """Reads one stream, least significant bit first."""

    def __init__(self, stream: bytes, expected: int) -> None:
        self.size = 8 * len(stream)
        self._data = bytes(stream) + bytes(16)
        self._bytes = np.frombuffer(self._data, np.uint8)
        self.at = 0
        self.left = expected
        self.palette: _Palette | None = None
        self._first, self._had_runs = True, False
        self._known: dict[tuple[int, int, bool], tuple[tuple[int, ...], int]] = {}

    def take(self, bits: int) -> int:
        """Read up to 32 bits."""
        at = self.at
        self.at += bits
        if self.at > self.size:
            raise self._error("it ends within a slice")
        return int.from_bytes(self._data[at >> 3:(at >> 3) + 8], "little") >> (at & 7) & (1 << bits) - 1

    def gather(self, places: Any, bits: int) -> Any:
        """Read ``bits`` bits at each place."""
        if not bits:
            return np.zeros(places.shape, np.int64)
        at = places >> 3
        words = sum(self._bytes[at + byte].astype(np.int64) << 8 * byte for byte in range(_REACH))
        return words >> (places & 7) & (1 << bits) - 1

    def at_slice(self) -> bool:
        """Go on to the next slice; False at the end."""
        while self.size - self.at >= 3:
            if self._peek() != _END:
                return True
            self.at = -(-(self.at + 3) // 8) * 8
            self._first = True
        return False

    def _peek(self) -> int:
        at = self.at
        found = self.take(3)
        self.at = at
        return found

    def slice(self) -> Weights:
        """Decode one slice."""
        header = self._header()
        weights, zeros = self._codes(header)
        palette = self.palette
        assert palette is not None
        index = weights.values(self, header.divisor)
        if index.max(initial=0) >= _LARGEST:
            raise self._error(f"a weight of index {int(index.max())}; there are {_LARGEST}")
        coded = index - len(palette.entries) + palette.offset
        if len(palette.entries):
            inside = index < len(palette.entries)
            coded = np.where(inside, palette.entries[np.where(inside, index, 0)], coded)
        found = np.where(coded & 1, -(coded >> 1), coded >> 1).astype(np.int16)
        return self._spread(found, zeros.values(self, header.zero_divisor), header) if header.zero_runs \
            else self._counted(found)

    def _spread(self, found: Weights, runs: Any, header: _Header) -> Weights:
        """Put the runs of zeros between the weights; a slice with a palette of its own may begin with one."""
        before = int(runs[0]) if header.fresh else 0
        after = runs[1:] if header.fresh else runs
        total = before + len(found) + int(after.sum())
        if total > self.left:
            raise self._error(f"more weights than {self.left} that are left")
        whole = np.zeros(total, np.int16)
        gaps = np.concatenate([[0], np.cumsum(after)[:-1]])
        whole[before + np.arange(len(found)) + gaps] = found
        return self._counted(whole)

    def _counted(self, found: Weights) -> Weights:
        self.left -= len(found)
        if self.left < 0:
            raise self._error(f"{-self.left} weights too many")
        return found

    def _header(self) -> _Header:
        zero_divisor = self.take(3)
        if zero_divisor > 3 and zero_divisor != _NO_ZERO_RUNS:
            raise self._error(f"a slice with the divisor {zero_divisor} of zero runs")
        count, divisor = self.take(15) + 1, self.take(3)
        truncated, fresh = bool(self.take(1)), bool(self.take(1))
        runs = zero_divisor != _NO_ZERO_RUNS
        if not fresh and (self._first or runs != self._had_runs):
            raise self._error("a slice without the palette that it needs")
        self._first, self._had_runs = False, runs
        if fresh:
            self.palette = self._new_palette()
        if count > self.left + 1:
            raise self._error(f"a slice of {count} weights; {self.left} are left")
        plain = divisor == _PLAIN
        if not plain and divisor > 5:
            raise self._error(f"a slice with the divisor {divisor}")
        return _Header(count, zero_divisor, self._plain_bits() if plain else divisor, truncated, plain, fresh)

    def _plain_bits(self) -> int:
        palette = self.palette
        assert palette is not None
        return (len(palette.entries) - 1).bit_length() if len(palette.entries) else palette.bits

    def _new_palette(self) -> _Palette:
        offset, size = self.take(5), self.take(5)
        bits = self.take(3) + 2
        entries = [self.take(bits) for _ in range(size + 1 if size else 0)]
        return _Palette(np.array(entries, np.int16), bits, offset)

    def _codes(self, header: _Header) -> tuple[_Codes, _Codes]:
        """Walk through the chunks: quotients are decoded, places of remainders are noted."""
        weights = _Codes(header.values)
        zeros = _Codes(header.values + header.fresh if header.zero_runs else 0)
        run_bits = _SYMBOLS if header.zero_divisor < 3 else _FEW_SYMBOLS
        while True:
            ahead = weights.seen - zeros.seen if header.zero_runs else 0
            more = ahead < _AHEAD and weights.seen < header.values
            more_zeros = header.zero_runs and ahead >= 0 and zeros.seen < zeros.count
            first = self.take(_SYMBOLS) if more and not header.plain else 0
            zero_bits = self.take(run_bits) if more_zeros else 0
            quotients = self._quotients(weights, header, first) if more else ()
            runs = _runs(zeros, zero_bits, run_bits) if more_zeros else []
            self._note(weights, header.divisor)
            self._note(zeros, header.zero_divisor)
            weights.quotients.extend(quotients)
            zeros.quotients.extend(runs)
            weights.pending, zeros.pending = len(quotients), len(runs)
            if not more and not more_zeros:
                return weights, zeros

    def _quotients(self, codes: _Codes, header: _Header, first: int) -> tuple[int, ...]:
        if header.plain:
            return (0,) * (_FEW_SYMBOLS if header.divisor > 5 else _SYMBOLS)
        second = self.take(first.bit_count())
        key = (first, second, header.truncated)
        if key not in self._known:
            self._known[key] = _symbols(first, second, header.truncated)
        symbols, carry = self._known[key]
        if codes.carry:
            if not symbols:
                codes.carry += carry
                return ()
            symbols = (symbols[0] + codes.carry, *symbols[1:])
        codes.carry = carry
        return symbols

    def _note(self, codes: _Codes, divisor: int) -> None:
        """Note where the remainders of the chunk before lie: of as many as there are values left."""
        count = min(codes.pending, codes.count - len(codes.places))
        if count > 0:
            codes.places.extend(range(self.at, self.at + count * divisor, divisor) if divisor else [self.at] * count)
            self.at += count * divisor
            if self.at > self.size:
                raise self._error("it ends within a slice")

    @staticmethod
    def _error(headline: str) -> ModelError:
        return ModelError.of("npusim.weight-stream", f"a weight stream is damaged: {headline}",
                             why="the stream is damaged, or made for another accelerator")


def _symbols(first: int, second: int, truncated: bool) -> tuple[tuple[int, ...], int]:
    """The quotients of a chunk, and what is left for the next one: two bits a step, the second only after a one."""
    symbols, total = [], 0
    for bit in range(_SYMBOLS):
        code = 0
        if first >> bit & 1:
            code = 1 + (second & 1)
            second >>= 1
        total += code
        if code < 2 or truncated:
            symbols.append(total)
            total = 0
    return tuple(symbols), total


def _runs(codes: _Codes, bits: int, count: int) -> list[int]:
    """The quotients of zero runs: plain unary numbers, the last of which may go on in the next chunk."""
    found, total = [], codes.carry
    for bit in range(count):
        if bits >> bit & 1:
            total += 1
        else:
            found.append(total)
            total = 0
    codes.carry = total
    return found
