"""What a board says of itself: the probe that asks, and its answer, read out of whatever a terminal made of it.

A fact that was not told is not known; a part that is absent is told as absent.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from itertools import islice
from typing import NamedTuple

LARGEST = 1 << 20
"""Characters of an answer that are looked at: a board says some 10,000."""
MOST_FACTS = 2000

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|\x1b[@-_]|"
                      r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_KERNEL_LINE = re.compile(r"\[ *\d+\.\d{6}\][^\n]*\n?")
_FACT = re.compile(r"<vt\s([A-Za-z0-9._:/+@,-]{1,300})\|([^<>]{0,1000}?)\svt>")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_BROKEN_START = re.compile(r"<\nvt |<v\nt |<vt(?:\n| \n)")
_BROKEN_END = re.compile(r" ?\nvt>| v\nt>| vt\n>")
_LINE_END = "\n"
_ABSENT = "-"


class Facts(NamedTuple):
    """The facts of a board by name. ``missing``: how many were told of that cannot be found, None without an end."""

    told: dict[str, str]
    missing: int | None = 0

    def text(self, name: str) -> str:
        """Return a fact; empty when it is not known."""
        return self.told.get(name, "")

    def is_absent(self, path: str) -> bool | None:
        """True for a file or device that the board has not, None when that is not known."""
        found = self.told.get(f"file:{path}", self.told.get(f"path:{path}"))
        return None if found is None else found == _ABSENT

    def bytes_of(self, path: str) -> int | None:
        """Return the size of a file; None when it is absent or not known."""
        size = self.text(f"file:{path}").partition(" ")[0]
        return int(size) if size.isdecimal() else None

    def named(self, kind: str) -> dict[str, str]:
        """Return the facts of a kind, such as ``package``, by what stands after the colon."""
        return {name.partition(":")[2]: value for name, value in self.told.items() if name.startswith(f"{kind}:")}

    def kilobytes(self, name: str) -> int | None:
        """Return an amount that is told in kB as bytes."""
        amount = self.text(name)
        return int(amount) * 1024 if amount.isdecimal() else None

    @property
    def kernel(self) -> str:
        """The kernel's version without what stands behind it: 6.6.36."""
        return version_in(self.text("kernel"))

    @property
    def python(self) -> dict[str, str]:
        """The Python packages of the board with their versions."""
        found = {}
        for entry in self.named("python"):
            name, _, rest = entry.rpartition(".")[0].partition("-")
            found[name.replace("_", "-").lower()] = version_in(rest)
        return found

    @property
    def whole(self) -> bool:
        """True when all that the board told is there."""
        return self.missing == 0


def version_in(text: str) -> str:
    """Return the first version that stands in a text; empty when there is none."""
    found = _VERSION.search(text)
    return found[0] if found else ""


def order(version: str) -> tuple[int, ...]:
    """Return a version as numbers that compare."""
    return tuple(int(part[:9]) for part in re.findall(r"\d+", version))


@cache
def probe_script() -> str:
    """Return the script that runs on the board."""
    return resources.files("vitrify.boards").joinpath("probe.sh").read_text(encoding="utf-8")


def read_probe(text: str) -> Facts:
    """Read what the probe printed; prompts, colours, carriage returns, messages of the kernel and breaks do no harm."""
    text = _ESCAPES.sub("", text[:LARGEST]).replace("\r\n", "\n").replace("\r", "")
    text = _KERNEL_LINE.sub("", text)
    told: dict[str, str] = {}
    matches = list(islice(_FACT.finditer(_unbroken(text)), MOST_FACTS))
    for match in matches:
        name, value = match[1], match[2].strip()
        if value or name not in told:
            told[name] = value
    told = {name: value for name, value in told.items() if value}
    count = told.pop("end", "")
    missing = max(0, int(count) - len(matches)) if count.isdecimal() and len(count) < 6 else None
    return Facts(told, missing)


def _unbroken(text: str) -> str:
    """Join what a terminal broke into lines inside a fact, or inside its marks."""
    text = _BROKEN_END.sub(" vt>", _BROKEN_START.sub("<vt ", text))
    first, *facts = text.split("<vt ")
    joined = [first]
    for fact in facts:
        inside, mark, rest = fact.partition(" vt>")
        joined.append(f"{inside.replace(_LINE_END, '') if mark else inside}{mark}{rest}")
    return "<vt ".join(joined)
