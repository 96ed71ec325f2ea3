"""A part of the page with a heading that the page's top links to."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.report.page.markup import Child, Html, tag


@dataclass(frozen=True)
class Section:
    """One section, or several beside each other: where links lead and what they say, and the markup."""

    anchors: tuple[tuple[str, str], ...]
    html: Html

    @classmethod
    def of(cls, id: str, title: str, *content: Child, short: str = "") -> Section:
        """Return a section with a heading; ``short`` is what the link to it says."""
        return cls(((id, short or title),), tag("section", tag("h2", title, id=id), list(content), aria_labelledby=id))

    @classmethod
    def beside(cls, *sections: Section | None) -> Section | None:
        """Return sections side by side, as far as the page is wide; None when there is none."""
        shown = [section for section in sections if section is not None]
        if len(shown) < 2:
            return shown[0] if shown else None
        return cls(tuple(anchor for section in shown for anchor in section.anchors),
                   tag("div", [section.html for section in shown], class_="pair"))


def tools(table: str) -> Html:
    """Return the field that narrows the table with this id."""
    return tag("div", tag("input", type="search", placeholder="filter", aria_label="filter"),
               tag("output"), class_="tools", data_table=table)
