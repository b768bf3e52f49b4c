"""Colours are distinguishable from the page behind them, on light and dark pages (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import pytest

from traceviz.render import palette
from traceviz.render.palette import BACKGROUND, COLORS, PANEL, SERIES, Color, color

DRAWN = {**COLORS, **{f"series {index}": each for index, each in enumerate(SERIES)}}
WRITTEN = {name: getattr(palette, name) for name in ("TEXT", "QUIET", "ACCENT", "GOOD", "BAD", "WARNING")}


def luminance(text: str) -> float:
    parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_largest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_stands_out(name: str) -> None:
    drawn = DRAWN[name]
    assert contrast(drawn.light, BACKGROUND.light) >= 3.0
    assert contrast(drawn.dark, BACKGROUND.dark) >= 3.0


@pytest.mark.parametrize("name", WRITTEN)
def test_text_can_be_read(name: str) -> None:
    written: Color = WRITTEN[name]
    for behind in (BACKGROUND, PANEL):
        assert contrast(written.light, behind.light) >= 4.5
        assert contrast(written.dark, behind.dark) >= 4.5


def test_unknown_keys_take_the_series_in_turn() -> None:
    assert [color("none of ours", at) for at in (0, 1, len(SERIES))] == [SERIES[0], SERIES[1], SERIES[0]]


def test_a_known_key_has_one_colour_wherever_it_stands() -> None:
    assert color("input_wait", 0) == color("input_wait", 7) == COLORS["input_wait"]
