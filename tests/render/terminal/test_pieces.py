"""Bars, slices of time, foldings and names, each with figures worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from traceviz.core.sanitize import visible
from traceviz.render.rows import by_time_at_stake, not_measured, shown_rows, time_at_stake, times
from traceviz.render.terminal.blocks import bar, cells_of, resample, sparkline
from traceviz.render.terminal.grid import grid_lines, shown_columns_at
from traceviz.render.terminal.lines import shorten, shorten_apart, wrap
from traceviz.render.text import simplify_signature
from traceviz.report import Column, Finding, Grid, Note, Severity, Skipped


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, ""), (0.001, "▏"), (0.25, "██"), (0.3, "██▍"), (1.0, "█" * 8), (7.0, "█" * 8), (-1.0, "")],
)
def test_a_bar_of_8_cells_has_64_steps(share, drawn):
    assert bar(share, 8) == drawn


@pytest.mark.parametrize(
    ("shares", "cells"),
    [
        ((0.5, 0.5), (5, 5)),
        ((1 / 3, 1 / 3, 1 / 3), (4, 3, 3)),
        ((0.96, 0.04), (10, 0)),
        ((0.25, 0.25), (3, 2)),
        ((1.0, 1.0), (5, 5)),
        ((), ()),
    ],
)
def test_ten_cells_are_shared_out_by_largest_remainder(shares, cells):
    assert cells_of(shares, 10) == cells


def test_a_signature_of_20000_characters_is_simplified_at_once():
    assert simplify_signature("<" + "x" * 20_000) == "<" + "x" * 20_000
    assert simplify_signature("f<" + "(" * 10_000 + ")" * 10_000)[:3] == "f<("


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=15), st.integers(10, 200))
def test_parts_of_a_whole_fill_the_bar_and_miss_their_share_by_less_than_a_cell(values, width):
    whole = sum(values)
    shares = tuple(value / whole for value in values) if whole else (0.0,) * len(values)
    cells = cells_of(shares, width)
    assert sum(cells) == (width if whole else 0)
    assert all(abs(count - share * width) < 1.000001 for count, share in zip(cells, shares, strict=True))


def test_slices_are_means_of_what_was_measured():
    assert resample((0.0, 1.0, None, None, None, 0.5), 3) == [0.5, None, 0.5]
    assert resample((0.25, 0.75), 4) == [0.25, 0.25, 0.75, 0.75]
    assert resample((), 4) == []


def test_a_sparkline_has_8_heights_a_space_for_zero_and_a_dot_for_nothing():
    assert sparkline((None, 0.0, 0.001, 0.125, 0.126, 1.0, math.nan), 7) == "· ▁▁▂█·"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::f<4, at::Add<float>>(int, at::D<char*>)", "f<4, Add<float>>"),
        ("void (anonymous namespace)::k<a::b>(c)", "k<b>"),
        ("sm80_xmma_gemm_f16", "sm80_xmma_gemm_f16"),
        ("Iterator::Prefetch::Map", "Iterator::Prefetch::Map"),
        ("void f<(int)4, g(int)::[lambda(int) (instance 1)]::operator ()() const>(T3)", "f<4, g>"),
        ("f<g(int)::[lambda(int) (instance 2)]::operator ()() const::[lambda() (instance 7)]>(T3)", "f<g::λ2::λ7>"),
        ("gemm(int, float*)", "gemm"),
        ("(only) (parens)", "(only) (parens)"),
        ("epoch 3 (warm-up)", "epoch 3 (warm-up)"),
        ("f()", "f"),
        ("a::", "a::"),
        (")", ")"),
    ],
)
def test_signatures_lose_namespaces_and_parameters(name, short):
    assert simplify_signature(name) == short


@given(st.lists(st.text("ab<", min_size=8, max_size=40), max_size=6), st.integers(1, 30))
def test_names_told_apart_fit(names, width):
    shown = shorten_apart(names, width)
    assert len(shown) == len(names)
    assert max(map(cell_len, shown), default=0) <= width


@given(st.lists(st.text("ab<", min_size=8, max_size=60), max_size=12), st.integers(12, 30))
def test_different_names_never_look_the_same(names, width):
    assert len(set(shorten_apart(names, width))) == len(set(names))


def test_names_that_differ_twice_show_where():
    names = ["pool_forward_kernel<float, 4, " + middle + ", long_tail_of_the_name>" for middle in ("a1", "a2", "b1")]
    assert shorten_apart(names, 30) == [
        "pool_forward…a1, long_tail_of…",
        "pool_forward…a2, long_tail_of…",
        "pool_forward…b1, long_tail_of…",
    ]


@given(st.text(max_size=60), st.integers(1, 50))
def test_a_shortened_name_fits(name, width):
    assert cell_len(shorten(name, width)) <= width


@given(st.text(max_size=200).map(visible), st.integers(2, 50))
def test_wrapped_text_fits_and_loses_nothing_but_spaces(text, width):
    lines = wrap(text, width)
    assert max(map(cell_len, lines), default=0) <= width
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def grid_of(shares, fold_below):
    columns = (Column("n", "N"), Column("calls", "Calls", "count", additive=True), Column("s", "S", "ratio", bar=True))
    return Grid(columns, tuple((f"k{i}", 2, share) for i, share in enumerate(shares)), fold_below=fold_below)


def test_only_trailing_rows_fold():
    shown = shown_rows(grid_of((0.5, 0.001, 0.002, 0.4, 0.05, 0.001, 0.002, 0.003), 0.01), None)
    assert (len(shown.rows), shown.hidden) == (5, 3)
    assert shown.rest == (None, 6, pytest.approx(0.006))


def test_three_rows_stay_where_all_are_small():
    assert len(shown_rows(grid_of((0.001,) * 9, 0.01), None).rows) == 3


def finding(code, cost, severity=Severity.INFO, share=None, share_of=""):
    return Finding(code, "slug", severity, "m", (), (), cost, share, share_of)


def test_findings_are_ordered_by_time_then_severity_then_code():
    ordered = by_time_at_stake((finding("D", 0), finding("C", 0), finding("B", 0, Severity.ERROR), finding("A", 7)))
    assert [each.code for each in ordered] == ["A", "B", "C", "D"]


def test_time_at_stake_names_its_denominator():
    assert time_at_stake(finding("A", 1_500_000, share=0.25, share_of="steps")) == "1.50 ms at stake, 25.0 % of steps"
    assert time_at_stake(finding("A", 1_500_000)) == "1.50 ms at stake"
    assert time_at_stake(finding("A", 0)) == ""


@pytest.mark.parametrize(("count", "text"), [(None, ""), (0, ""), (1, ""), (2, " (2×)"), (12_345, " (12,345×)")])
def test_a_note_says_how_often_where_that_is_more_than_1(count, text):
    assert times(Note("c", Severity.INFO, "m", count)) == text


def test_of_4_sections_3_whose_tables_are_not_there_share_a_line():
    skipped = (
        Skipped("kernels", "the capture has no kernels table", ("kernels",)),
        Skipped("steps", "no steps were found"),
        Skipped("copies", "the capture has no memcpy table", ("memcpy",)),
        Skipped("launch", "the capture has no cuda_api table", ("cuda_api",)),
    )
    together = ("kernels, copies, launch", "nothing of the kind is in this capture")
    assert not_measured(skipped) == [("steps", "no steps were found"), together]
    assert not_measured(skipped[:2]) == [(skip.slug, skip.reason) for skip in skipped[:2]]


def test_base_and_new_of_one_quantity_are_shown_together_or_not_at_all():
    columns = (Column("name", "Kernel", "text", 0), *(Column(f"{side}_ns", side, "ns", 2) for side in ("base", "new")))
    grid = Grid(columns, (("gemm_of_a_long_name", 1_000, 2_000),))
    assert [shown_columns_at(grid, width) for width in (42, 40, 28)] == [
        ("name", "base_ns", "new_ns"),
        ("name", "base_ns", "new_ns"),
        ("name",),
    ]


def test_dates_are_whole():
    columns = Column("name", "Trace", "text", 0), Column("recorded", "Recorded", "text", 0)
    grid = Grid(columns, (("a_name_that_is_rather_long_for_a_page", "2026-05-17 10:30"),))
    assert "2026-05-17 10:30" in grid_lines(grid, 40, None)[-1].plain
