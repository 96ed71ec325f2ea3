"""One file with everything in it that is known of a build or a profile; it needs no network and no other file.

Rendered from results alone. All text passes through ``markup``, which escapes it: names in a model are untrusted. The
page's own policy forbids it to load anything, and to run any script but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from vitrify.core.files import write_atomically
from vitrify.core.findings import Severity
from vitrify.core.text import json_bytes
from vitrify.report.page import drawing
from vitrify.report.page.markup import Child, Html, render, tag
from vitrify.report.page.section import Section
from vitrify.report.page.sections import (
    advice,
    analysis,
    comparison,
    head,
    mapping,
    memory,
    method,
    operators,
    pictures,
    placement,
    quality,
    roofline,
    run,
    times,
)
from vitrify.results import ProfileResult, RunRecord
from vitrify.results.rows import PlacementRow

FOLDER = Path(__file__).parent / "assets"
SCRIPTS = ("base.js", "table.js", "graph.js", "details.js", "page.js")


def write_report(record: RunRecord, folder: Path, output: Path) -> None:
    """Write the page of a build; ``folder`` holds the pictures that the record names."""
    write_atomically(output, render_report(record, folder).encode(errors="backslashreplace"))


def render_report(record: RunRecord, folder: Path) -> str:
    """Return the page of a build."""
    profile = record.profile
    sections = [
        pictures.pictures(record, folder), head.findings(record.findings),
        *(_profile_sections(profile) if profile is not None else ()),
        quality.quality(record), analysis.analysis(record),
        placement.placement(record.placement, record.estimate, profile), run.models(record), run.interface(record),
        run.ledger(record), run.calibration(record), run.stages(record), run.reproduce(record)]
    data: dict[str, Any] = {"run": record}
    if profile is not None:
        data |= {"graph": drawing.graph(profile), "source": drawing.source(profile)}
    return page(f"{record.name} on {record.target}", head.of_run(record), sections,
                f"Vitrify {record.versions.get('vitrify', '')}, run of {record.started}", data)


def profile_page(result: ProfileResult) -> bytes:
    """Return the file of a profile's page."""
    return render_profile(result).encode(errors="backslashreplace")


def render_profile(result: ProfileResult) -> str:
    """Return the page of a profile."""
    from vitrify import __version__

    placed = PlacementRow(verdicts=result.verdicts, partitions=result.partitions)
    found = head.findings(result.findings)
    first = any(finding.severity is Severity.ERROR for finding in result.findings)
    sections = [found if first else None, comparison.comparison(result), *_profile_sections(result),
                placement.placement(placed, None, result), None if first else found, method.method(result)]
    return page(head.title_of(result), head.of_profile(result), sections, f"Vitrify {__version__}",
                {"profile": result, "graph": drawing.graph(result), "source": drawing.source(result)})


def _profile_sections(profile: ProfileResult) -> Sequence[Section | None]:
    return (Section.beside(advice.advice(profile), times.times(profile)), operators.operators(profile),
            Section.beside(roofline.roofline(profile), memory.alive(profile)), memory.plan(profile),
            mapping.mapping(profile))


def page(title: str, top: Html, sections: Sequence[Section | None], footer: str, data: Any = None) -> str:
    """Return a whole page: ``top`` and sections under a bar that leads to them, and ``data`` for its script."""
    shown = [section for section in sections if section is not None]
    links = [tag("a", name, href=f"#{anchor}") for section in shown for anchor, name in section.anchors]
    bar = tag("div", tag("span", title, class_="name", title=title), tag("nav", links, aria_label="Sections"),
              tag("button", "Theme", id="theme", type="button"), class_="topbar")
    main = tag("main", top, [section.html for section in shown], tag("footer", footer), id="main")
    body = [tag("a", "to the content", href="#main", class_="skip"), bar, main]
    return whole(title, body, data)


def whole(title: str, body: Child, data: Any = None) -> str:
    """Return a document around ``body``, with style, script and data in it."""
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill((FOLDER / "page.html").read_text(encoding="utf-8"), {
        "title": render(title), "style": (FOLDER / "page.css").read_text(encoding="utf-8"), "script": script,
        "script-hash": f"sha256-{digest}", "body": Html(render(body)), "data": embedded(data or {})})


@cache
def _script() -> str:
    """All scripts as one; nothing of them is seen from outside."""
    parts = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();'


def embedded(data: Any) -> str:
    """Return data as JSON that no text in it can end: what markup or a script could take for its own is spelt out."""
    text = json_bytes(data).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def fill(template: str, values: dict[str, str]) -> str:
    """Put values in the place of ``{{name}}``; what a value holds is not looked at again."""
    pieces = template.split("{{")
    return pieces[0] + "".join(values[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))
