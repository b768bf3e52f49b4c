"""Columns state what they are; renderers know no names of columns."""

import itertools

import pytest

import traceviz
from traceviz.render.csv import CsvRenderer
from traceviz.render.options import RenderOptions
from traceviz.render.rows import shown_rows
from traceviz.report import Column, Grid, Report, Section, Verdict


def grid(**declared):
    columns = (Column("what", "What"), Column("part", "Part", "ratio", bar=True), Column("free", "F", "ns", **declared))
    return Grid(columns, tuple((f"row {n}", 0.05, n) for n in range(20)))


@pytest.mark.parametrize(("declared", "total"), [({"additive": True}, 145), ({"additive": False}, None), ({}, None)])
def test_rows_that_are_left_out_have_a_sum_in_additive_columns_alone(declared, total):
    rest = shown_rows(grid(**declared), top=10).rest
    assert rest is not None
    assert rest[1] == pytest.approx(0.5)
    assert rest[2] == total


@pytest.mark.parametrize(
    "trace",
    [
        "kineto/stacks_memory.pt.trace.json.gz",
        "kineto/two_ranks",
        "synthetic/torch_four_ranks_straggler",
        "synthetic/two_ranks.sqlite",
        "synthetic/gpu_keras_input_bound.xplane.pb",
        "xplane/slow_map.xplane.pb.gz",
    ],
)
def test_shares_that_are_summed_are_parts_of_one_whole(samples, trace):
    blocks = itertools.chain.from_iterable(section.blocks for section in traceviz.analyze(samples / trace).sections)
    for block in blocks:
        rest = shown_rows(block, top=0).rest if isinstance(block, Grid) and len(block.rows) > 1 else None
        for column, total in zip(block.columns if rest else (), rest or (), strict=True):
            assert column.unit != "ratio" or total is None or total <= 1.0005, (block.title, column)


def test_csv_omits_columns_that_restate_others():
    def heading(**declared):
        report = Report((), Verdict("", "It runs."), (Section("s", "S", (grid(**declared),)),))
        return CsvRenderer().render(report, RenderOptions()).splitlines()[0]

    assert heading(restates=True) == "what,part [ratio]"
    assert heading() == "what,part [ratio],free [ns]"
