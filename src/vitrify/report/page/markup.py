"""HTML that is escaped by construction: text becomes markup only through ``tag`` and ``Html``."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

Child = object
"""A piece of content: ``Html`` as it is, None as nothing, a list piece by piece, anything else as escaped text."""

LONG_NAME = 200
"""Names are cut to this length where a picture says them: hostile files have names of megabytes."""

LONG_TABLE = 24
"""Rows beyond this scroll in a box of their own."""

VOID = ("br", "img", "input", "meta", "line", "rect", "circle", "path")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def render(child: Child) -> str:
    """Return the markup of a child."""
    if isinstance(child, Html):
        return child
    if child is None:
        return ""
    if isinstance(child, (list, tuple)):
        return "".join(map(render, child))
    return escape(str(child))


def tag(name: str, *children: Child, **attributes: object) -> Html:
    """Return an element. ``class_`` stands for class, other underscores for dashes; None leaves an attribute out."""
    shown = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
                    for key, value in attributes.items() if value is not None)
    if name in VOID and not children:
        return Html(f"<{name}{shown}/>" if name in VOID[4:] else f"<{name}{shown}>")
    return Html(f"<{name}{shown}>{render(list(children))}</{name}>")


def brief(name: str) -> str:
    """Return a name, or its ends where it is endless."""
    return name if len(name) <= LONG_NAME else f"{name[:LONG_NAME // 2]} … {name[-LONG_NAME // 2:]}"


def table(columns: Iterable[str], rows: Iterable[Iterable[Child]], **attributes: object) -> Html:
    """Return a table; a column whose name begins with ``#`` holds figures."""
    listed = list(columns)
    numeric = [column.startswith("#") for column in listed]
    head = tag("tr", [tag("th", column.lstrip("#"), class_="n" if figure else None, scope="col")
                      for column, figure in zip(listed, numeric, strict=True)])
    body = [tag("tr", [tag("td", cell, class_="n" if figure else None)
                       for cell, figure in zip(row, numeric, strict=True)]) for row in rows]
    style = "scroll long" if len(body) > LONG_TABLE else "scroll"
    return tag("div", tag("table", tag("thead", head), tag("tbody", body), **attributes), class_=style)
