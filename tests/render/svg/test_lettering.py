"""Widths of text before it is drawn, and truncation of long text."""

import pytest

from traceviz.render.svg.elements import shortened, shortened_inside, width_of, wrapped


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
