"""report.html: one file with everything in it that is known of a run; it needs no network and no other file.

Rendered from the run's record alone. All text passes through ``markup``, which escapes it: names in a model are
untrusted. The page's own policy forbids it to load anything.
"""

from __future__ import annotations

from pathlib import Path

from vitrify.core.files import write_atomically
from vitrify.report.page.markup import Html, render, tag
from vitrify.report.page.sections import analysis, placement, quality, run, summary
from vitrify.results import RunRecord

FOLDER = Path(__file__).parent / "assets"


def write_report(record: RunRecord, folder: Path, output: Path) -> None:
    """Write the page of a run; ``folder`` holds the pictures that the record names."""
    write_atomically(output, render_report(record, folder).encode(errors="backslashreplace"))


def render_report(record: RunRecord, folder: Path) -> str:
    """Return the page of a run."""
    sections = [section for section in (
        summary.pictures(record, folder), summary.findings(record), quality.quality(record),
        analysis.analysis(record),
        placement.placement(record), placement.hot_spots(record), run.models(record),
        run.interface(record), run.ledger(record), run.calibration(record),
        placement.memory(record), run.stages(record), run.reproduce(record)) if section is not None]
    links = tag("nav", [tag("a", section.title, href=f"#{section.id}") for section in sections], aria_label="Sections")
    body = tag("main", summary.head(record), links, [section.html for section in sections],
               tag("footer", f"Vitrify {record.versions.get('vitrify', '')}, run of {record.started}"))
    return fill((FOLDER / "page.html").read_text(encoding="utf-8"), {
        "title": render(f"{record.name} on {record.target}"),
        "style": (FOLDER / "page.css").read_text(encoding="utf-8"),
        "script": (FOLDER / "page.js").read_text(encoding="utf-8"), "body": Html(body)})


def fill(template: str, values: dict[str, str]) -> str:
    """Put values in the place of ``{{name}}``; what a value holds is not looked at again."""
    pieces = template.split("{{")
    return pieces[0] + "".join(values[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))
