"""The whole output for one representative report, byte for byte.

After a deliberate change of the output: ``TRACEVIZ_UPDATE_GOLDENS=1 pytest tests/render/test_goldens.py``,
and read the difference before committing it.
"""

import os
from pathlib import Path

import pytest

from tests.render.sample_report import sample_report
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer

GOLDENS = Path(__file__).parent.parent / "goldens"


@pytest.mark.parametrize(
    ("golden", "name", "options"),
    [
        ("report_80.txt", "terminal", RenderOptions(width=80)),
        ("report_100.txt", "terminal", RenderOptions(width=100)),
        (
            "report_top3_120.txt",
            "terminal",
            RenderOptions(width=120, top=3, sections=("cuda_api", "kernels", "idle_gaps")),
        ),
        ("report.md", "markdown", RenderOptions()),
        ("first_screen_80.txt", "terminal", RenderOptions(width=80, first_screen=True)),
        ("first_screen_100.txt", "terminal", RenderOptions(width=100, first_screen=True)),
        ("first_screen.md", "markdown", RenderOptions(first_screen=True)),
        ("report.json", "json", RenderOptions()),
    ],
)
def test_the_output_equals_the_golden_file(golden, name, options):
    text = renderer(name).render(sample_report(), options)
    path = GOLDENS / golden
    if os.environ.get("TRACEVIZ_UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
