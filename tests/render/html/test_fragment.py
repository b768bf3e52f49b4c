"""A report within a page of somebody else."""

import re

from tests.render.html.pages import parsed
from tests.render.report_strategies import HOSTILE, hostile_report
from tests.render.sample_report import sample_report
from traceviz.render.html.fragment import fragment


def test_a_fragment_is_one_element_without_script_that_says_the_verdict():
    root = parsed(fragment(sample_report()))
    (only,) = root.children
    assert (only.tag, root.find("script"), len(root.find("style"))) == ("div", [], 1)
    assert root.one("p", class_="tv-verdict").text().replace("\xa0", " ") == sample_report().verdict.sentence


def test_every_rule_of_its_style_begins_with_a_class_of_traceviz():
    style = re.sub(r"/\*.*?\*/", "", parsed(fragment(sample_report())).one("style").text(), flags=re.DOTALL)
    selectors = [part.strip() for text in re.findall(r"([^{}]+)\{", style) for part in text.split(",")]
    assert len(selectors) > 50
    assert [name for name in selectors if not name.startswith((".tv-", "@media"))] == []


def test_tables_of_a_fragment_hold_what_they_show_and_the_sum_of_the_rest():
    root = parsed(fragment(sample_report()))
    assert root.find("tr", class_="tv-more") == []
    assert [element.tag for element in root.all() if element.tag in {"button", "input"}] == []


def test_hostile_names_open_no_element_of_20():
    for name in HOSTILE:
        root = parsed(fragment(hostile_report(name)))
        assert root.find("script") == []
