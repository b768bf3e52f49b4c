"""Names that are HTML, scripts, styles, addresses or invisible do nothing in a page: they are shown as text."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Page

from tests.browser import hostile
from tests.browser.conftest import MakePage, Open
from tests.browser.pages import SAMPLES, UNFOLD, overflow, without_policy
from tests.parsers.run.folders import resources, run_folder
from tests.support.command import run
from traceviz import api
from traceviz.core.sanitize import visible
from traceviz.render.figures.registry import figures
from traceviz.render.html.fragment import fragment
from traceviz.render.options import RenderOptions

pytestmark = pytest.mark.browser

STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Characters that reorder, hide or control the text around them, except line ends."""
MOST_BYTES = 1_000_000
LOOK = """() => {
  const all = [...document.querySelectorAll("*")];
  const attributes = all.flatMap((element) => [...element.attributes]);
  const links = attributes.filter((one) => ["href", "src", "action", "srcdoc", "xlink:href"].includes(one.name));
  return {
    injected: document.querySelectorAll("[data-evil]").length,
    foreign: document.querySelectorAll("iframe, object, embed, base, link, form, img, animate, x").length,
    handlers: attributes.filter((one) => one.name.startsWith("on")).map((one) => one.name),
    addresses: links.map((one) => one.value).filter((value) => !/^#|^https:\\/\\/[a-z]/.test(value)),
    styles: document.querySelectorAll("style").length,
    shown: getComputedStyle(document.body).display,
  };
}"""
CLEAN = {"injected": 0, "foreign": 0, "handlers": [], "addresses": [], "styles": 1, "shown": "block"}
SEARCH = """(text) => {
  for (const field of document.querySelectorAll("input")) {
    field.value = text;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  }
}"""


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Hostile traces by format, in folders and files with hostile names."""
    folder = tmp_path_factory.mktemp("hostile") / "in <" / f"script>{hostile.FILE_NAME}"
    folder.mkdir(parents=True)
    synthetic = SAMPLES / "synthetic"
    name = hostile.FILE_NAME
    made = {
        "kineto": hostile.kineto(synthetic / "torch_item_in_steps.pt.trace.json.gz", folder / f"{name}.pt.trace.json"),
        "stacks": hostile.kineto(SAMPLES / "kineto/stacks_memory.pt.trace.json.gz", folder / f"{name}s.pt.trace.json"),
        "nsys": hostile.nsys(synthetic / "two_ranks.sqlite", folder / f"{name}.sqlite"),
        "nvtx": hostile.nsys(SAMPLES / "nsys/nvtx_loop.sqlite", folder / f"{name}n.sqlite"),
        "xplane": hostile.xplane(folder / f"{name}.xplane.pb"),
        "long": hostile.many_names(folder / f"{name}l.pt.trace.json", names=5, characters=1_000_000),
    }
    text = hostile.ATTACKS
    problem = {"code": text["image"], "message": text["script"], "fix": text["style"]}
    stated = {
        "name": text["base"],
        "tags": {text["image"]: text["attribute"], text["member"]: text["bidi"]},
        "command": text["quoted attribute"],
        "problems": [problem],
        "host": text["svg"],
        "machine": {"cores": 8, "sockets": 1, "gpus": [{"name": text["refresh"]}], "container": text["xml"]},
        "versions": {text["image"]: text["script"]},
    }
    made["run"] = run_folder(folder / "run", {"torch": made["kineto"], "resources": resources(0, 20)}, stated)
    return made


def check_harmless(open_page: Open, made: Path, folder: Path, styles: int = 1) -> Page:
    """Check that a page does nothing, touched or not; also without its policy, by its escaping alone."""
    text = made.read_text(encoding="utf-8")
    assert STEERS.findall(text) == []
    bare = folder / "bare.html"
    bare.write_text(without_policy(text) if "Content-Security-Policy" in text else text, encoding="utf-8")
    for path in (made, bare):
        opened = open_page(path)
        page = opened.page
        page.evaluate(UNFOLD)
        poke(page)
        assert page.evaluate(LOOK) == {**CLEAN, "styles": styles}
        opened.check_quiet()
    assert overflow(page) == 0
    return page


def poke(page: Page) -> None:
    """Search, press every button, and go over what is drawn."""
    for text in (hostile.IMAGE, "__proto__", "", ".*[", "\\"):
        page.evaluate(SEARCH, text)
    page.evaluate("""() => {
      for (const button of document.querySelectorAll("button")) if (button.offsetParent) button.click();
    }""")
    for canvas in page.locator("canvas").all():
        box = canvas.bounding_box()
        if box is None or not canvas.is_visible():
            continue
        canvas.scroll_into_view_if_needed()
        for part in range(1, 8):
            canvas.hover(position={"x": box["width"] * part / 8, "y": min(box["height"] * part / 8, 500)}, force=True)
            page.mouse.down()
            page.mouse.up()
    page.wait_for_timeout(50)


@pytest.mark.parametrize("name", ["kineto", "stacks", "nsys", "nvtx", "xplane", "run", "long"])
def test_names_that_attack_are_shown_as_text(
    traces: dict[str, Path], make_page: MakePage, open_page: Open, tmp_path: Path, name: str
) -> None:
    made = make_page("report", traces[name])
    page = check_harmless(open_page, made, tmp_path)
    shown = page.evaluate("document.body.textContent")
    assert visible(hostile.IMAGE) in shown
    assert "1343434337" not in shown
    assert made.stat().st_size < MOST_BYTES


def test_names_of_a_megabyte_are_cut(traces: dict[str, Path], make_page: MakePage) -> None:
    text = make_page("report", traces["long"]).read_text(encoding="utf-8")
    assert "o0000003" in text
    assert max(map(len, re.findall("z+|x+|y+", text))) <= 2_000


def test_many_names_of_many_characters_make_no_large_page(
    make_page: MakePage, open_page: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("many")
    trace = hostile.many_names(folder / "many.pt.trace.json", names=1_000, characters=3_000)
    assert trace.stat().st_size > 6_000_000
    made = make_page("report", trace)
    assert made.stat().st_size < 1_500_000
    check_harmless(open_page, made, folder)


@pytest.mark.slow
def test_twenty_thousand_names_make_no_large_page(make_page: MakePage, open_page: Open, tmp_path: Path) -> None:
    trace = hostile.many_names(tmp_path / "many.pt.trace.json", names=20_000, characters=60)
    made = make_page("report", trace)
    assert made.stat().st_size < 4_000_000
    check_harmless(open_page, made, tmp_path)


# Several traces


def test_labels_and_tags_of_a_comparison_are_shown_as_text(
    traces: dict[str, Path], make_page: MakePage, open_page: Open, tmp_path: Path
) -> None:
    labels = hostile.IMAGE.replace("=", ":"), hostile.ATTACKS["base"].replace("=", ":")
    groups = [
        word
        for label, name in zip(labels, ("kineto", "run"), strict=True)
        for word in ("--group", f"{label}={traces[name]}")
    ]
    made = make_page("compare", *groups)
    page = check_harmless(open_page, made, tmp_path)
    assert labels[0] in page.evaluate("document.body.textContent")


def test_an_archive_of_hostile_traces_is_harmless_as_a_page(
    traces: dict[str, Path], make_page: MakePage, open_page: Open, tmp_path: Path
) -> None:
    place = tmp_path / f"archive {hostile.FILE_NAME}"
    named = "--tag", f"t={hostile.IMAGE}", "--job", hostile.ATTACKS["script"]
    sources = traces["kineto"], traces["nsys"], traces["run"]
    done = run("archive", "add", place, *sources, *named, "--keep-private", "--workers", "1")
    assert done.returncode == 0, done.stderr
    for words in (("archive", "report", place), ("archive", "trend", place, "step_median", "--per", "t")):
        check_harmless(open_page, make_page(*words), tmp_path)


# Pieces of pages that others made


def in_a_page(body: str, place: Path) -> Path:
    """Return a page of others, without any policy, that holds a piece of ours."""
    place.write_text(f'<!doctype html><html lang="en"><title>x</title><body>{body}</body></html>', encoding="utf-8")
    return place


def test_a_fragment_does_nothing_in_a_page_of_others(traces: dict[str, Path], open_page: Open, tmp_path: Path) -> None:
    for name in ("kineto", "nsys", "xplane", "run"):
        body = fragment(api.report_on(traces[name]))
        check_harmless(open_page, in_a_page(body, tmp_path / f"{name}.html"), tmp_path)


def test_what_a_notebook_shows_does_nothing(traces: dict[str, Path], open_page: Open, tmp_path: Path) -> None:
    tables = api.open_trace(traces["nsys"])
    shown = tables, api.report_on(traces["run"]), api.compare(traces["kineto"], traces["run"])
    for number, value in enumerate(shown):
        body = value._repr_html_()
        assert len(body) < MOST_BYTES
        check_harmless(open_page, in_a_page(body, tmp_path / f"{number}.html"), tmp_path, styles=body.count("<style"))


@pytest.mark.parametrize("attack", ["image", "script", "remote image", "style", "svg", "base", "bidi", "control"])
def test_the_check_itself_notices_what_is_not_escaped(open_page: Open, tmp_path: Path, attack: str) -> None:
    place = in_a_page(f"<style></style><p>{hostile.ATTACKS[attack]}</p>", tmp_path / "spoilt.html")
    with pytest.raises(AssertionError):
        check_harmless(open_page, place, tmp_path)


# Figures


SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "title", "desc", "g", "path", "rect", "line", "text", "tspan", "circle", "polyline", "polygon", "style"}


@pytest.mark.parametrize("name", ["kineto", "nsys", "run", "long"])
def test_figures_of_hostile_names_are_svg_and_nothing_else(
    traces: dict[str, Path], open_page: Open, tmp_path: Path, name: str
) -> None:
    report = api.report_on(traces[name])
    for figure, _ in figures(report):
        place = tmp_path / f"{figure}.svg"
        place.write_text(api.to_text(report, "svg", RenderOptions(figure=figure)), encoding="utf-8")
        text = place.read_text(encoding="utf-8")
        assert len(text) < MOST_BYTES
        assert STEERS.findall(text) == []
        elements = [*ET.fromstring(text).iter()]
        assert {element.tag.removeprefix(SVG) for element in elements} <= DRAWN
        names = {name for element in elements for name in element.attrib}
        assert {name for name in names if name.startswith("on") or name in {"href", "data-evil", "style"}} == set()
        for path in (place, in_a_page(text, tmp_path / f"{figure}.html")):
            opened = open_page(path)
            opened.page.wait_for_timeout(20)
            opened.check_quiet()
