"""The contents of a file's buffers, inside the flatbuffer or behind it."""

from __future__ import annotations

from functools import partial

from vitrify.core.errors import ModelError
from vitrify.tflite.problems import Problems
from vitrify.tflite.schema import Record
from vitrify.tflite.tensors import Array

PLACE_HOLDER = 1      # an offset of 0 is absent, of 1 not filled in yet
MOST_COPIES = 16      # of the file's size: parts that are listed many times must not fill the memory


class BufferContents:
    """Finds bytes by buffer number; all are views of the file."""

    def __init__(self, buffers: list[Record], file: Array, problems: Problems) -> None:
        self._file = file
        self._problems = problems
        self._left = MOST_COPIES * file.size + 4096
        self._found = [problems.attempt(partial(self._content, b, f"buffer {i}")) for i, b in enumerate(buffers)]

    def _content(self, record: Record, what: str) -> Array | None:
        if record.data is not None:
            data: Array = record.data
            return data
        return self.behind(record.offset, record.size, what) if record.offset > PLACE_HOLDER else None

    def behind(self, offset: int, size: int, what: str) -> Array:
        """The bytes that stand behind the flatbuffer; ``what`` names them in messages.

        Raises:
            ModelError: the file ends before they do.
        """
        if offset + size > self._file.size:
            raise ModelError.of("tflite.truncated", f"{what} ends at byte {offset + size}, the file at "
                                f"{self._file.size}", where=self._problems.where,
                                help="fetch the file again, it is cut short")
        return self._file[offset:offset + size]

    def copy(self, content: Array | None) -> bytes:
        """A copy of bytes that are not tensor data; none for None.

        Raises:
            ModelError: the copies add up to many times the file.
        """
        if content is None:
            return b""
        self._left -= content.size
        if self._left < 0:
            raise ModelError.of("tflite.corrupt", "the file is damaged: metadata and custom options overlap so often "
                                f"that they add up to more than {MOST_COPIES} times the file",
                                where=self._problems.where)
        return content.tobytes()

    def of_tensor(self, number: int, where: str) -> Array | None:
        """The data of a tensor, None when it is computed; number 0 means that by convention."""
        return self.at(number, where) if number else None

    def at(self, number: int, where: str) -> Array | None:
        """The bytes of buffer ``number``, None when it holds none; a number that does not exist is reported."""
        if not 0 <= number < len(self._found):
            self._problems.report("tflite.index", f"buffer {number} of {len(self._found)}", where)
            return None
        return self._found[number]
