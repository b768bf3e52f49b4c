"""Markdown shows data as it is: no tag, no broken table, no mention of a person."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.render.sample_report import sample_report
from traceviz.render.markdown import data, prose
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import COMPARISON, Column, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode
from traceviz.testing import HOSTILE_NAMES, hostile_report

CODE = re.compile(r"`[^`]*`|<code>[^<]*</code>")
PIPE = re.compile(r"(?<!\\)\|")


def render(report, **options):
    return renderer("markdown").render(report, RenderOptions(**options))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cudaMemcpyAsync", "cudaMemcpyAsync"),
        ("12.3 %", "12.3 %"),
        ("data_loading", "data_loading"),
        ("__half", "`__half`"),
        ("void k[/x]", "`void k[/x]`"),
        ("<script>", "`<script>`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("tick ` tock", "<code>tick &#96; tock</code>"),
        ("a\\|b", "<code>a&#92;&#124;b</code>"),
        ("@team", "`@team`"),
        ("two\nlines", "`two␊lines`"),
        ("\x1b[31m", "`␛[31m`"),
        ("nul\0", "`nul␀`"),
        ("", ""),
    ],
)
def test_names_are_plain_where_that_is_safe_and_code_where_not(name, shown):
    assert data(name) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A plain sentence, 12.3 % (1.2 s).", "A plain sentence, 12.3 % (1.2 s)."),
        ("num_workers", "num_workers"),
        ("*a* _b_ `c` [d](e) <f>", "\\*a\\* \\_b\\_ \\`c\\` \\[d\\](e) &lt;f&gt;"),
        ("ping @team, see #12", "ping @&#8203;team, see #&#8203;12"),
        ("- no list", "\\- no list"),
        ("1. no list", "1\\. no list"),
        ("# no heading", "\\# no heading"),
        ("a\n\nb", "a b"),
        ("a | b", "a \\| b"),
    ],
)
def test_sentences_are_escaped(text, shown):
    assert prose(text) == shown


@given(st.text() | st.sampled_from(HOSTILE_NAMES))
def test_no_name_ends_its_cell_or_opens_a_tag(name):
    shown = CODE.sub("", data(name))
    assert "\n" not in data(name)
    assert not set(shown) & set("|<>`*@#[]\\&~$")


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_tables_keep_their_4_columns_under_hostile_names_and_2_where_names_say_nothing(name):
    table = [line for line in render(hostile_report(name)).splitlines() if line.startswith("| ")]
    assert {len(PIPE.findall(line)) for line in table[:13]} == ({5} if name else {3, 5})
    assert max(map(len, table)) < 40_100


def test_ten_thousand_characters_become_160():
    assert len(data("x" * 10_000)) == 160


def test_top_limits_the_rows_and_names_what_is_left():
    text = render(sample_report(), top=2, sections=("cuda_api", "idle_gaps"))
    assert "| other (11) |" in text
    assert "… and 12 more" in text
    assert text.count("\n| ") == (1 + 1 + 2 + 1) + (2 + 4) + (2 + 2)


def test_findings_come_with_their_advice_before_the_sections():
    text = render(sample_report())
    assert text.index("### High: TV101 input-bound") < text.index("## Capture")
    assert text.count("\n- ") == 3 + 2 + 2 + 3


def test_a_comparison_has_its_shares_as_bars_in_a_fence_before_the_table():
    names = ("side", "name", "share_of_api")
    rows = (("base", "cudaFree", 0.75), ("base", "cuInit", 0.25), ("new", "cudaFree", 1.0))
    shares = Grid(tuple(Column(name, name) for name in names), rows, "shares")
    section = Section("cuda_api", "CUDA API", (shares,))
    text = render(Report((), Verdict(VerdictCode.NONE, ""), (section,), schema=COMPARISON))
    head, fence, table = text.partition("```text\n")[0], *text.partition("```text\n")[2].split("\n```\n", 1)
    assert head.endswith("## CUDA API\n\n")
    assert fence.splitlines()[1:3] == ["  base " + "█" * 67 + "░" * 22, "  new  " + "█" * 89]
    assert "| base | cudaFree | 0.75 |" in table
