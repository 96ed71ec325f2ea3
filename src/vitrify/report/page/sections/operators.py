"""The operators for the engineer: graph, what is known of the selected one, and table; the script fills them."""

from __future__ import annotations

from vitrify.core.words import counted
from vitrify.report.page.drawing import MOST_NODES
from vitrify.report.page.markup import Child, Html, tag
from vitrify.report.page.section import Section
from vitrify.results import ProfileResult


def operators(profile: ProfileResult) -> Section | None:
    """Return the places that the script fills from the data."""
    if not profile.operators:
        return None
    text = "Select an operator in the graph, in the table or in a chart: all show it."
    tabs = tag("div", _tab("operators", "Operators", first=True), _tab("sources", "Source nodes", first=False),
               class_="tabs", role="tablist", aria_label="result or source") if profile.mapping.nodes else None
    details = tag("aside", tag("h3", "Nothing selected"), tag("p", "The hottest operator stands in the middle of the "
                  "graph. Select one to see what it costs and why.", class_="sub"), id="details", class_="details",
                  tabindex="0", aria_label="Selected operator")
    boards = [_board("graph", len(profile.operators), "operator", first=True),
              _board("source", len(profile.mapping.nodes), "source node", first=False)]
    parts: list[Child] = [tag("div", tabs, _colours(), class_="tools"), tag("div", boards, details, class_="explore"),
                          tag("div", id="said", class_="quiet", aria_live="polite"), _table(profile)]
    return Section.of("operators", "Operators", tag("p", text), parts)


def _colours() -> list[Html]:
    heats = [("time", "time"), ("bytes", "bytes"), ("macs", "MACs"), ("error", "error (SQNR)"), ("place", "place"),
             ("bound", "what it waits for")]
    choice = tag("select", [tag("option", word, value=value) for value, word in heats], id="heat")
    return [tag("label", "Colour by", choice), tag("span", id="heat-scale", class_="scale")]


def _board(name: str, count: int, noun: str, *, first: bool) -> Html | None:
    """Return the canvas of a graph with what belongs to it."""
    hidden = None if first else ""
    if not count:
        return None
    if count > MOST_NODES:
        return tag("div", tag("p", f"The graph of {counted(count, noun)} is not drawn; the table has all."),
                   id=f"{name}-board", hidden=hidden)
    keys = "Arrow keys follow the edges, + and - zoom, 0 shows the whole graph, Escape selects nothing."
    canvas = tag("canvas", id=f"{name}-canvas", tabindex="0", role="application",
                 aria_label=f"Graph of {counted(count, noun)}. {keys}", aria_describedby="said")
    zoom = tag("div", [tag("button", sign, data_zoom=what, type="button", aria_label=word, title=word)
                       for sign, what, word in (("+", "in", "zoom in"), ("-", "out", "zoom out"),
                                                ("⤢", "whole", "show the whole graph"))], class_="zoom")
    hint = tag("p", "Drag to move · click, then scroll · Ctrl + scroll to zoom · arrow keys follow the edges",
               class_="hint")
    overview = tag("canvas", id=f"{name}-overview", class_="overview", aria_hidden="true")
    return tag("div", canvas, overview, zoom, hint, class_="board", id=f"{name}-board", hidden=hidden)


def _table(profile: ProfileResult) -> Html:
    fields = [tag("input", type="search", id="search", placeholder="search operators, nodes, types, source nodes",
                  aria_label="search"),
              *(tag("select", id=name, aria_label=label) for name, label in (
                  ("by-place", "place"), ("by-part", "partition"), ("by-kind", "operator"))),
              tag("output", id="shown")]
    grids = [tag("div", id="operators-grid", class_="grid"),
             tag("div", id="sources-grid", class_="grid", hidden="") if profile.mapping.nodes else None]
    note = tag("noscript", tag("p", "The graph and the table need scripts; the data is in this file as JSON."))
    return Html(tag("div", fields, class_="tools") + tag("div", grids) + note)


def _tab(name: str, label: str, *, first: bool) -> Html:
    return tag("button", label, type="button", role="tab", id=f"tab-{name}", aria_controls=f"{name}-grid",
               aria_selected="true" if first else "false", tabindex="0" if first else "-1")
