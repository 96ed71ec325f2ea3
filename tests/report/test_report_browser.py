"""The page in a real browser: clicks and keys do what they say, and nothing that a model's author wrote is run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_example import HOSTILE, example, example_folder, profiled

from vitrify.report.page.html import profile_page, write_report
from vitrify.results import ProfileResult
from vitrify.results.profiling import EstimatedRow, FormRow, LifeRow, MappedRow, MappingRow, MeasuredRow, MemoryPlan

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.browser, pytest.mark.slow,
              pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]
COUNT = 300
SELECTED = "#operators-grid tr[aria-selected=true]"


def chain() -> ProfileResult:
    """Return a profile of a chain with one branch, whose times go up and down; its fifth node is the slowest."""
    rows = [EstimatedRow(index=n, node=f"node_{n}", operator=("CONV_2D", "ADD", "MUL")[n % 3], partition=n // 50,
                         placement="cpu" if n % 50 == 7 else "npu", time_ms=9.0 if n == 5 else 1 + n % 7, share=0.001,
                         bytes=1000 + n, macs=n * 1000, dtype="int8", shape=[1, n], origin=[f"source_{n}"],
                         after=[n - 1] if n else [], bound="memory" if n % 2 else "compute")
            for n in range(COUNT)]
    rows[10].after = [5, 9]
    lives = [LifeRow(tensor=f"t{n}", bytes=100, first=n, last=min(n + 2, COUNT - 1), offset=100 * (n % 3))
             for n in range(COUNT)]
    both = FormRow(nodes=["node_3", "node_4"], operators=["CONV_2D", "ADD"], time_ms=2.0)
    nodes = [MappedRow(name="source_a", operator="Conv", how="split", integer_form=both),
             MappedRow(name="source_b", operator="Relu", how="fused", into=["node_8"], after=[0]),
             MappedRow(name="source_c", operator="Identity", how="unused", after=[1])]
    memory = MemoryPlan(live_bytes=300, peak_index=3, peak_node="node_3", alive=["t3"], lives=lives)
    mapping = MappingRow(source="chain.onnx", forms=["integer"], counts={"split": 1, "fused": 1}, nodes=nodes)
    return ProfileResult(model="chain.tflite", target="imx93", basis="estimated", total_ms=1200.0, operators=rows,
                         nodes=COUNT, memory=memory, mapping=mapping)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """A page that was opened, and all that it asked for or complained of."""

    def __init__(self, browser: Any, file: Path, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append("a dialog"))
        self.page.goto(file.as_uri())
        self.page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")

    def cells(self, column: int, count: int = 3) -> list[str]:
        """Return the first texts of a column of the table of operators."""
        found: list[str] = self.page.evaluate(
            "([column, count]) => [...document.querySelectorAll('#operators-grid tr[data-place]')].slice(0, count)"
            ".map((row) => row.cells[column].textContent)", [column, count])
        return found

    def selected(self) -> list[str]:
        """Return the names of the selected rows that are shown."""
        return [text.strip() for text in self.page.locator(f"{SELECTED} td:nth-child(3)").all_text_contents()]

    def middle(self, name: str = "graph") -> tuple[float, float]:
        """Return the middle of a graph's canvas, brought into sight."""
        canvas = self.page.locator(f"#{name}-canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    file = tmp_path / "chain.html"
    file.write_bytes(profile_page(chain()))
    opened = Opened(browser, file)
    yield opened
    assert opened.complaints == []
    assert opened.requests == [file.as_uri()]
    opened.context.close()


def test_sorting(shown: Opened) -> None:
    page = shown.page
    assert shown.cells(2, 1) == ["node_5"]                 # the slowest is first
    header = page.locator("#operators-grid th button", has_text="Bytes")
    header.click()
    assert shown.cells(0) == ["299", "298", "297"]
    assert page.locator("#operators-grid th[aria-sort=descending]").text_content() == "Bytes"
    header.click()
    assert shown.cells(0) == ["0", "1", "2"]
    page.locator("#operators-grid th button", has_text="Operator").click()
    assert shown.cells(1, 1) == ["ADD"]
    assert page.locator("#operators-grid table").get_attribute("aria-rowcount") == str(COUNT + 1)
    assert 20 < page.locator("#operators-grid tr[data-place]").count() < 100      # only what is near the view


def test_the_end_of_the_table_is_reached(shown: Opened) -> None:
    page = shown.page
    page.locator("#operators-grid").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    page.wait_for_selector(f"#operators-grid tr[data-place='{COUNT - 1}']")


@pytest.mark.parametrize(("words", "wanted"), [
    ("node_7", {"node_7", *(f"node_{n}" for n in range(70, 80))}),
    ("conv_2d source_30", {"node_30"}),
    ("nothing of this", set()),
])
def test_searching(shown: Opened, words: str, wanted: set[str]) -> None:
    shown.page.fill("#search", words)
    assert set(shown.cells(2, 50)) == wanted
    assert shown.page.text_content("#shown") == f"{len(wanted)} of {COUNT}"


def test_choosing_place_partition_and_kind(shown: Opened) -> None:
    page = shown.page
    page.select_option("#by-place", "cpu")
    assert page.text_content("#shown") == f"6 of {COUNT}"
    page.select_option("#by-part", "1")
    assert shown.cells(2, 9) == ["node_57"]
    page.select_option("#by-place", "")
    page.select_option("#by-kind", "ADD")
    assert page.text_content("#shown") == f"{sum(n % 3 == 1 for n in range(50, 100))} of {COUNT}"


def test_graph_selects_in_the_table(shown: Opened) -> None:
    page = shown.page
    page.mouse.click(*shown.middle())                      # the slowest stands in the middle at first
    assert shown.selected() == ["node_5"]
    assert page.text_content("#details .sub") == "node_5"
    assert "source_5" in page.text_content("#details")
    page.mouse.click(shown.middle()[0] - 400, shown.middle()[1])
    assert shown.selected() == []


def test_table_selects_in_the_graph(shown: Opened) -> None:
    page = shown.page
    page.fill("#search", "node_123")
    page.locator("#operators-grid tr[data-place]").first.click()
    assert page.text_content("#details .sub") == "node_123"
    page.fill("#search", "")
    page.keyboard.press("Escape")
    page.mouse.click(*shown.middle())                      # the graph brought it into the middle
    assert shown.selected() == ["node_123"]


def test_keys_walk_the_graph(shown: Opened) -> None:
    page = shown.page
    page.focus("#graph-canvas")
    walked = []
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowUp", "End"):
        page.keyboard.press(key)
        walked.append(page.text_content("#details .sub"))
    assert walked == ["node_0", "node_1", "node_2", "node_1", f"node_{COUNT - 1}"]
    assert f"node_{COUNT - 1}" in page.text_content("#said")
    page.keyboard.press("Escape")
    assert page.text_content("#details h3") == "Nothing selected"


def test_keys_walk_the_table(shown: Opened) -> None:
    page = shown.page
    page.locator("#operators-grid tr[data-place]").first.focus()
    page.keyboard.press("ArrowDown")
    second = shown.cells(2, 2)[1]
    assert shown.selected() == [second]
    page.keyboard.press("End")
    assert page.text_content("#details .sub") == page.evaluate("document.activeElement.cells[2].textContent")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "graph-canvas"


def test_source_nodes_lead_to_all_their_operators(shown: Opened) -> None:
    page = shown.page
    page.click("#tab-sources")
    assert page.text_content("#shown") == "3 of 3"
    page.locator("#sources-grid tr[data-place]", has_text="source_a").click()
    assert page.locator("#details h3").all_text_contents() == ["Conv", "2 operators"]
    page.click("#tab-operators")
    page.locator("#operators-grid th button", has_text="#").click()
    page.locator("#operators-grid th button", has_text="#").click()
    assert set(shown.selected()) == {"node_3", "node_4"}


def test_the_source_has_a_graph_of_its_own(shown: Opened) -> None:
    page = shown.page
    page.click("#tab-sources")
    assert not page.locator("#graph-board").is_visible()
    page.mouse.click(*shown.middle("source"))              # the slowest: source_a
    assert page.text_content("#sources-grid tr[aria-selected=true] td:nth-child(3)") == "source_a"
    page.keyboard.press("ArrowDown")
    assert page.locator("#details h3").first.text_content() == "Relu"
    assert "No operator of its own" not in page.text_content("#details")
    page.keyboard.press("ArrowDown")
    assert page.locator("#details h3").all_text_contents() == ["Identity"]
    assert "No operator of its own" in page.text_content("#details")
    page.locator("#sources-grid tr[data-place]", has_text="source_a").click()
    page.focus("#tab-sources")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#graph-board").is_visible()
    page.mouse.click(*shown.middle())                      # what it became is in the middle there
    assert shown.selected() == ["node_3"]


def test_the_whole_graph_leads_to_each_operator(shown: Opened) -> None:
    page = shown.page
    page.click("#graph-board [data-zoom=whole]")
    x, y = shown.middle()
    page.mouse.click(x, y)
    name = page.text_content("#details .sub")
    assert name
    page.keyboard.press("Escape")
    page.mouse.click(x, y)                                 # it was brought into the middle
    assert page.text_content("#details .sub") == name


def test_charts_lead_to_operators(shown: Opened) -> None:
    shown.page.locator("#times ~ svg rect[data-ops='5']").click()
    assert shown.page.text_content("#details .sub") == "node_5"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme(browser: Any, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "chain.html"
    file.write_bytes(profile_page(chain()))
    opened = Opened(browser, file, scheme)
    page = opened.page

    def is_dark() -> bool:
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        pixel = page.evaluate("[...document.getElementById('graph-canvas').getContext('2d')"
                              ".getImageData(5, 400, 1, 1).data]")
        dark = sum(map(int, ground[4:-1].split(","))) < 384
        assert dark == (sum(pixel[:3]) < 384), "the graph follows the page"
        return dark

    page.wait_for_timeout(100)
    assert is_dark() == (scheme == "dark")
    page.click("#theme")
    page.wait_for_timeout(100)
    assert is_dark() == (scheme == "light")
    opened.context.close()


def test_print_has_all_rows(shown: Opened) -> None:
    page = shown.page
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#operators-grid tr[data-place]").count() == COUNT
    assert not page.locator(".topbar").is_visible()
    assert not page.locator("#search").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf()[:5] == b"%PDF-"
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#operators-grid tr[data-place]").count() < 100


def test_all_that_can_be_used_has_a_name(shown: Opened) -> None:
    nameless = shown.page.evaluate("""() => [...document.querySelectorAll(
        "button, input, select, canvas, [role=grid], svg[role=img]")]
        .filter((one) => !one.closest("[hidden]") && one.getAttribute("aria-hidden") !== "true")
        .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
        .map((one) => one.outerHTML.slice(0, 120))""")
    assert nameless == []


def test_what_was_not_measured_is_shown_without_times(browser: Any, tmp_path: Path) -> None:
    rows = [MeasuredRow(index=n, node=f"node_{n}", operator="CUSTOM", placement="cpu", after=[n - 1] * (n > 0))
            for n in range(3)]
    file = tmp_path / "report.html"
    file.write_bytes(profile_page(ProfileResult(model="x.tflite", basis="measured", operators=rows, nodes=3)))
    opened = Opened(browser, file)
    opened.page.mouse.click(*opened.middle())
    assert opened.selected() == ["node_0"]
    assert "not known" in opened.page.text_content("#details")
    assert opened.complaints == []
    opened.context.close()


@pytest.mark.parametrize("kind", ["build", "profile"])
def test_hostile_names_do_nothing(browser: Any, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "report.html"
    if kind == "build":
        write_report(example(), example_folder(tmp_path), file)
    else:
        file.write_bytes(profile_page(profiled()))
    opened = Opened(browser, file)
    page = opened.page
    pictures = page.locator("img").count()
    for row in page.locator("#operators-grid tr[data-place]").all():
        row.click()
        assert page.locator("#details h3").text_content() in ("CONV_2D", "RESHAPE", HOSTILE)
    page.click("#tab-sources")
    page.locator("#sources-grid tr[data-place]").first.click()
    page.locator("button[data-ops]").first.click()
    assert page.locator("img").count() == pictures
    assert page.locator("script").count() == 2
    assert [one for one in opened.requests if not one.startswith("data:image/png")] == [file.as_uri()]
    assert opened.complaints == []
    opened.context.close()
