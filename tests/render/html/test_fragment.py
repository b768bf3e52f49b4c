"""A report within another program's page."""

import re

from tests.render.html.pages import parsed
from tests.render.sample_report import sample_report
from traceviz.render.html.fragment import fragment
from traceviz.testing import HOSTILE_NAMES, hostile_report


def test_a_fragment_is_one_element_without_script_that_says_the_verdict():
    root = parsed(fragment(sample_report()))
    (only,) = root.children
    assert (only.tag, root.find("script"), len(root.find("style"))) == ("div", [], 1)
    assert root.one("p", class_="tv-verdict").text().replace("\xa0", " ") == sample_report().verdict.sentence


def outermost(style: str) -> list[str]:
    """Return the texts before the outermost braces."""
    while True:
        style, count = re.subn(r"\{[^{}]*\{[^{}]*\}", "{", style)
        if not count:
            return [text.strip() for text in re.findall(r"([^{}]+)\{[^{}]*\}", style)]


def test_each_of_more_than_4_rules_of_its_style_is_about_a_class_of_traceviz():
    style = parsed(fragment(sample_report())).one("style").text()
    found = outermost(re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL))
    assert len(found) > 4
    assert [name for text in found for name in text.split(",\n") if not re.search(r"\.tv-|^@media", name)] == []


def test_tables_of_a_fragment_hold_what_they_show_and_the_sum_of_the_rest():
    root = parsed(fragment(sample_report()))
    assert root.find("tr", class_="tv-more") == []
    assert [element.tag for element in root.all() if element.tag in {"button", "input"}] == []


def test_hostile_names_open_no_element_of_20():
    for name in HOSTILE_NAMES:
        root = parsed(fragment(hostile_report(name)))
        assert root.find("script") == []
