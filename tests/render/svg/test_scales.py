"""Round values that an axis names, in one unit for all of them, and widths of texts."""

from __future__ import annotations

import pytest

from traceviz.render.figures.values import Axis
from traceviz.render.svg.elements import shortened, shortened_inside, width_of, wrapped
from traceviz.render.svg.layout import thinned
from traceviz.render.svg.scales import Tick, scale

MS = 1_000_000


def labels(axis, values, length=400, spacing=80, **options):
    found = scale(axis, values, length, spacing, **options)
    return [tick.label for tick in found.ticks], found.unit


def test_an_axis_of_0_to_97_ms_has_a_tick_every_20_ms():
    assert labels(Axis("time", "ns"), [0, 97 * MS]) == (["0", "20", "40", "60", "80", "100"], "ms")


@pytest.mark.parametrize(
    ("unit", "values", "expected"),
    [
        ("ns", [0, 900], (["0", "200", "400", "600", "800", "1,000"], "ns")),
        ("ns", [0, 1_200_000 * MS], (["0", "5", "10", "15", "20"], "min")),
        ("ns", [0, 2.5e13], (["0", "2", "4", "6", "8"], "h")),
        ("bytes", [0, 3_400_000_000], (["0", "1", "2", "3", "4"], "GB")),
        ("ratio", [0, 0.61], (["0", "20", "40", "60", "80"], "%")),
        ("ratio", [-0.04, 0.01], (["−4", "−3", "−2", "−1", "0", "1"], "%")),
        ("factor", [0, 2.4], (["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"], "×")),
        ("count", [0, 40_000], (["0", "10,000", "20,000", "30,000", "40,000"], "")),
    ],
)
def test_ticks_are_round_in_the_unit_that_fits_the_largest_value(unit, values, expected):
    assert labels(Axis("", unit), values) == expected


def test_bars_begin_at_0_and_curves_of_changes_do_not():
    assert labels(Axis("", "ns"), [90 * MS, 97 * MS], at_zero=True)[0][0] == "0"
    assert labels(Axis("", "ns"), [90 * MS, 97 * MS])[0][0] == "90"


def test_batches_of_8_to_512_on_a_logarithmic_axis_are_equally_far_apart_by_factor():
    found = scale(Axis("batch", log=True, start=8, end=512), [8, 64, 512], 300, 50)
    assert [round(found.place(value)) for value in (8, 64, 512)] == [0, 150, 300]
    assert [tick.label for tick in found.ticks] == ["10", "20", "50", "100", "200", "500"]


@pytest.mark.parametrize("values", [[], [0], [5e300, -5e300], [5e-324], [7.0, 7.0], [float("nan")], [1, float("inf")]])
def test_values_without_a_range_have_2_ticks_or_more(values):
    for at_zero in (True, False):
        found = scale(Axis("", "ns"), values, 400, 80, at_zero=at_zero)
        assert len(found.ticks) >= 2
        assert found.end > found.start


def test_of_100_names_that_would_touch_every_tenth_stays():
    ticks = [Tick(n, f"step {n:03}") for n in range(100)]
    assert [tick.value for tick in thinned(ticks, [8.0 * n for n in range(100)])] == list(range(0, 100, 10))


def test_ten_digits_at_10_pixels_are_63_wide_and_wide_characters_more():
    assert width_of("0123456789", 10) == pytest.approx(63)
    assert width_of("核函数", 10) == pytest.approx(31.5)
    assert width_of("e\N{COMBINING ACUTE ACCENT}", 10) == width_of("e", 10)


def test_a_text_that_is_as_wide_as_the_room_stays_and_a_wider_one_ends_with_an_ellipsis():
    assert shortened("cudaMalloc", width_of("cudaMalloc", 12), 12) == "cudaMalloc"
    assert shortened("cudaMalloc", width_of("cudaMalloc", 12) - 1, 12) == "cudaMall…"
    assert shortened("two\nlines", 200, 12) == "two␊lines"


def test_a_name_of_a_kernel_keeps_its_begin_and_its_end():
    name = "sm80_xmma_wgrad_implicit_gemm_tf32f32_nhwc_tilesize128x128"
    short = shortened_inside(name, 160, 12)
    assert short.startswith("sm80_xmma")
    assert short.endswith("128")
    assert width_of(short, 12) <= 160
    assert shortened_inside(name, 1_000, 12) == name


def test_no_room_at_all_leaves_an_ellipsis():
    assert (shortened("cudaMalloc", 0, 12), shortened_inside("cudaMalloc", 0, 12)) == ("…", "…")


def test_a_sentence_of_5_words_takes_2_lines_where_3_words_fit():
    room = width_of("one two three", 12)
    assert wrapped("one two three four five", room, 12) == ["one two three", "four five"]
    assert wrapped("", room, 12) == []
