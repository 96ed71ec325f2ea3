"""What the converter prints: ``label = value`` lines, of which each release has its own, and warnings.

Source: a published log of 2.0.2 (doc.edgefirst.ai, models/ultralytics/neutron) and lines of 3.0 to 3.3 that public
repositories quote. A label that is not known is kept by its own words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"^\s*(?P<label>[A-Za-z][A-Za-z0-9 ()/_-]*?)\s*(?:=|:(?!//))\s*(?P<value>\S.*?)\s*$")
_WHOLE = re.compile(r"\d[\d,]{0,18}(?![\d.e])")
_RATIO = re.compile(r"(\d+)\s*/\s*(\d+)")
_TIME = re.compile(r"(\d[\d,]{0,12}(?:\.\d+)?)\s*\(?(us|µs|ms|s|seconds)\b")
_PER = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "seconds": 1e3}
_SPOKEN = re.compile(r"^\s*\[?(warning|error)(?:\]|:)", re.IGNORECASE)
_INFORMATION = ("INFO:", "[=")
_LABELS = {
    "number of operators after import": "imported", "number of operators after optimize": "optimized",
    "number of operators converted": "converted", "number of operators not converted": "left",
    "number of operators after extract": "extracted", "number of neutron graphs": "graphs",
    "number of neutron operators": "neutron_operators",
}


@dataclass
class Log:
    """The figures of a conversion; None where they are not printed. ``left`` counts operators that stay for the CPU.

    ``version`` is the converter's, ``target`` what it says that it converts for, ``latency_ms`` its own estimate of the
    NPU's time. ``sizes`` are bytes and ``times_s`` seconds, by the log's words. ``spoken`` are warnings and errors.
    """

    version: str = ""
    target: str = ""
    imported: int | None = None
    optimized: int | None = None
    converted: int | None = None
    left: int | None = None
    extracted: int | None = None
    graphs: int | None = None
    neutron_operators: int | None = None
    ratio: tuple[int, int] | None = None
    indices: tuple[int, ...] = ()
    latency_ms: float | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    times_s: dict[str, float] = field(default_factory=dict)
    spoken: list[str] = field(default_factory=list)

    @property
    def has_statistics(self) -> bool:
        """True when the log says how much was converted."""
        return self.converted is not None or self.ratio is not None

    def contradictions(self) -> list[str]:
        """Say where figures of the log do not fit each other."""
        found = []
        total = self.optimized
        if None not in (total, self.converted, self.left) and (self.converted or 0) + (self.left or 0) != total:
            found.append(f"{self.converted} operators converted and {self.left} not are not the {total} there were")
        if self.ratio is not None and self.converted is not None and self.ratio[0] != self.converted:
            found.append(f"{self.converted} operators converted, {self.ratio[0]} in the ratio")
        if None not in (self.extracted, self.graphs, self.left) and (self.graphs or 0) + (self.left or 0) != \
                self.extracted:
            found.append(f"{self.graphs} Neutron graphs and {self.left} operators left are not the {self.extracted} "
                         "after extract")
        if self.indices and self.converted is not None and len(self.indices) != self.converted:
            found.append(f"{self.converted} operators converted, {len(self.indices)} listed")
        return found

    def figures(self) -> dict[str, int | float | str]:
        """Return what was printed, flat."""
        found: dict[str, int | float | str] = {}
        for name in ("imported", "optimized", "converted", "left", "extracted", "graphs", "neutron_operators",
                     "latency_ms"):
            value = getattr(self, name)
            if value is not None:
                found[name] = value
        return {**found, **{f"{name} (bytes)": size for name, size in self.sizes.items()},
                **{f"{name} (s)": seconds for name, seconds in self.times_s.items()}}


def read_log(text: str) -> Log:
    """Read all that a conversion printed; what is no such log gives an empty one."""
    log = Log()
    for line in text.splitlines():
        if _SPOKEN.match(line):
            log.spoken.append(line.strip())
            continue
        match = None if line.lstrip().startswith(_INFORMATION) else _LINE.match(line)
        if match is not None:
            _enter(log, match["label"].strip(), match["value"])
    return log


def _enter(log: Log, label: str, value: str) -> None:
    low = " ".join(label.lower().split())
    number = _WHOLE.match(value)
    name = _LABELS.get(low)
    if name is not None and number is not None:
        setattr(log, name, int(number[0].replace(",", "")))
    elif low == "target":
        log.target = value
    elif low == "neutron converter version":
        log.version = value.split("+")[0].split()[0].lstrip("v")
    elif low == "operator conversion ratio" and (found := _RATIO.match(value)) is not None:
        log.ratio = int(found[1]), int(found[2])
    elif low == "operators converted":
        log.indices = tuple(int(one) for one in value.split(",") if one.strip().isdecimal())
    elif ("latency" in low or "inference time" in low) and (time := _TIME.search(value)) is not None:
        log.latency_ms = float(time[1].replace(",", "")) * _PER[time[2]]
    elif low.startswith("time for") and (time := _TIME.search(value)) is not None:
        log.times_s[low.removeprefix("time for").strip()] = float(time[1].replace(",", "")) * _PER[time[2]] / 1e3
    elif "byte" in value and number is not None:
        log.sizes[low] = int(number[0].replace(",", ""))
