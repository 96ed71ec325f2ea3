"""A part of the page with a heading that the page's top links to."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.report.page.markup import Child, Html, tag


@dataclass(frozen=True, init=False)
class Section:
    """One section: where links lead, its heading, and its markup."""

    id: str
    title: str
    html: Html

    def __init__(self, id: str, title: str, *content: Child) -> None:
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "html", tag("section", tag("h2", title, id=id), list(content)))


def tools(table: str, *, places: bool = False) -> Html:
    """Return the field that narrows the table with this id, with a choice of placement when asked for."""
    choices = [tag("option", label, value=value) for value, label in
               (("", "all places"), ("cpu", "CPU"), ("npu", "NPU"), ("folded", "folded"))]
    return tag("div", tag("input", type="search", placeholder="filter", aria_label="filter"),
               tag("select", choices, aria_label="placement") if places else None, tag("output"),
               class_="tools", data_table=table)
