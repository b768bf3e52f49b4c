"""The first screen of eight samples: one screen, whose tables support the verdict."""

import re

import pytest

from tests.support.reports import report_of
from traceviz import api
from traceviz.render.options import RenderOptions

SCREENS = {
    "synthetic/torch_input_bound_workers.pt.trace.json.gz": ["Input pipeline", "Input pipeline · Inside"],
    "synthetic/torch_four_ranks_straggler": ["Ranks · Own time", "Communication"],
    "synthetic/launch_bound.sqlite": ["Launch path", "Kernels"],
}
MORE = {
    "synthetic/healthy.sqlite": ["Kernels"],
    "synthetic/allocation_churn.sqlite": ["CUDA API time share", "What the host did"],
    "synthetic/nvprof_tensorflow_pageable.nvvp": ["Input pipeline", "Copies"],
    "xplane/slow_map.xplane.pb.gz": ["Input pipeline", "What the steps did"],
    "kineto/repaired.pt.trace.json.gz": ["What the CPU computes", "Operators"],
}
"""Title of each table by sample."""
NO_TABLES = {"Where the steps' time went", "Where the time went", "Findings"}


@pytest.mark.parametrize(
    ("sample", "tables"), [*SCREENS.items(), *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE.items())]
)
def test_a_screen_holds_verdict_bar_findings_and_the_tables_behind_them(samples, sample, tables):
    report = report_of(samples / sample)
    for width, most in ((80, 60), (100, 45)):
        piped, coloured = (
            api.to_text(report, "terminal", RenderOptions(width, color=color, first_screen=True))
            for color in (False, True)
        )
        lines = piped.splitlines()
        assert 20 < len(lines) <= most
        assert max(map(len, lines)) <= width
        verdict = [place for place, line in enumerate(lines) if line.startswith("▌ ")]
        assert verdict == list(range(3, 3 + len(verdict)))
        headings = [line.partition(" ─")[0] for line in lines if " ──" in line and not line.startswith(" ")]
        assert headings[0] == "Where the steps' time went"
        assert len(shown := [heading for heading in headings if heading not in NO_TABLES]) == len(tables)
        assert [heading for heading, title in zip(shown, tables, strict=True) if not heading.startswith(title)] == []
        assert lines[-1].startswith("  all ") or lines[-2].startswith("  all ")
        fills = re.compile(r"[█░▓╱▒═▚·╳─▀┊]")  # parts of a bar have a colour or a pattern
        bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        assert fills.sub("", bare) == fills.sub("", piped)
