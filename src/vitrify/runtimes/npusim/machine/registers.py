"""The registers that commands set, read by name and field."""

from __future__ import annotations

from vitrify.core.errors import ModelError
from vitrify.runtimes.npusim.stream.commands import BY_NAME
from vitrify.runtimes.npusim.stream.words import Command

_FIELDS = {(name, field.name): field for name, spec in BY_NAME.items() for field in spec.fields}
_FIRST = {name: spec.fields[0] for name, spec in BY_NAME.items()}


class Registers:
    """What was set so far; a register that nothing set is an error when it is asked for."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def set(self, command: Command) -> None:
        """Take over a command's value."""
        self.values[command.spec.name] = command.value

    def raw(self, name: str) -> int:
        """Return a register's whole value.

        Raises:
            ModelError: no command set it.
        """
        try:
            return self.values[name]
        except KeyError:
            raise ModelError.of("npusim.register-not-set", f"a command needs {name}, which nothing set before it",
                                why="the stream is damaged") from None

    def __getitem__(self, name: str) -> int:
        """Return the value of a register that has one field."""
        return _FIRST[name].of(self.raw(name))

    def field(self, name: str, field: str) -> int:
        """Return one field of a register."""
        value = self.raw(name)
        return _FIELDS[name, field].of(value)

    def scaling(self, name: str) -> tuple[int, int]:
        """Return the scale and the shift of OFM_SCALE or OPA_SCALE."""
        return self.field(name, "scale"), self.field(name, "shift")
