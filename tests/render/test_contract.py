"""Properties of every renderer, for any report."""

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.render.report_strategies import REPORTS
from tests.render.sample_report import sample_report
from traceviz.core.errors import UsageError
from traceviz.render.options import RenderOptions
from traceviz.render.registry import RENDERERS, renderer
from traceviz.report import Report, Verdict
from traceviz.report.verdicts import VerdictCode
from traceviz.testing import RendererContract

TEXTS = tuple(name for name in RENDERERS.names() if name != "svg")
"""Formats of any report. An SVG is a figure, and not all reports have one: tests/render/svg has its tests."""
WHOLE = [renderer(name) for name in ("html", "json", "markdown", "terminal")]
"""Renderers that show all sections; the others are for one reader each."""
EMPTY = Report((), Verdict(VerdictCode.NONE, ""))


class TestEveryRenderer(RendererContract):
    @pytest.fixture(params=TEXTS, autouse=True)
    def _renderer(self, request):
        self.renderer = renderer(request.param)


@given(report=REPORTS, width=st.integers(40, 200))
@settings(max_examples=30)
def test_any_report_renders_the_same_twice(report, width):
    """All renderers take each report: making one up takes longer than rendering it."""
    options = RenderOptions(width)
    for any_renderer in map(renderer, TEXTS):
        text = any_renderer.render(report, options)
        assert text == any_renderer.render(report, options), any_renderer.name
        assert [line for line in text.split("\n") if line != line.rstrip()] == [], any_renderer.name


@pytest.mark.parametrize("any_renderer", [renderer(name) for name in TEXTS], ids=TEXTS)
def test_the_empty_report_renders(any_renderer):
    text = any_renderer.render(EMPTY, RenderOptions())
    assert re.sub(r"(?s)<(style|script).*?</\1>", "", text).count("\n") <= 16


def test_there_are_eight_renderers_sorted_by_name():
    names = ["csv", "github", "html", "json", "junit", "markdown", "svg", "terminal"]
    assert [renderer(name).name for name in RENDERERS.names()] == names


def test_an_unknown_renderer_names_those_known():
    with pytest.raises(UsageError, match=r"'yaml'.*csv, github, html, json, junit, markdown, svg, terminal"):
        renderer("yaml")


def test_importing_the_registry_loads_none_of_the_four_slow_libraries():
    code = (
        "import sys, traceviz.render.registry; print(sorted({'rich', 'polars', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("any_renderer", WHOLE, ids=lambda any_renderer: any_renderer.name)
def test_one_section_leaves_out_the_eight_others(any_renderer):
    text = any_renderer.render(sample_report(), RenderOptions(sections=("kernels",)))
    assert "91,884" in text or "91884" in text
    assert "Input-bound: steps wait" in text
    assert "cudaMalloc" not in text
    assert "TV302" not in text


def test_a_section_that_does_not_exist_is_a_usage_error():
    with pytest.raises(UsageError, match=r"'kernel'.*communication.*findings.*kernels"):
        renderer("terminal").render(sample_report(), RenderOptions(sections=("kernel",)))


def test_a_table_of_0_rows_is_a_usage_error():
    with pytest.raises(UsageError, match="0 rows"):
        RenderOptions(top=0)
