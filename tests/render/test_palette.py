"""Colours are distinguishable from the page behind them (WCAG 2.2, 1.4.3 and 1.4.11), and from each other.

Colour-blind sight is simulated as Machado, Oliveira and Fernandes do (2009), at full severity. The difference of two
colours is their distance in OKLab, times 100. About 2 can just be noticed side by side.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import pytest

from traceviz.analyses.derived.causes.kinds import KINDS
from traceviz.analyses.derived.host.classes import CLASSES
from traceviz.analyses.derived.run_parts.parts import LABELS as PARTS
from traceviz.render import palette
from traceviz.render.palette import BACKGROUND, COLORS, PANEL, SERIES, Color, color
from traceviz.trace.names.kernel_names import UNKNOWN
from traceviz.trace.names.kernel_names import catalogue as kernels
from traceviz.trace.names.op_families import catalogue as operators

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


SIGHTS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def seen(text: str, sight: str) -> npt.NDArray[np.float64]:
    parts = np.array([int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    simulated = np.clip(SIGHTS[sight] @ linear, 0, 1)
    return np.asarray(100 * _OKLAB @ np.cbrt(_CONES @ simulated))


def difference(one: Color, other: Color, theme: str) -> float:
    """Return the least difference of two colours for any sight."""
    pair = getattr(one, theme), getattr(other, theme)
    return min(float(np.linalg.norm(seen(pair[0], sight) - seen(pair[1], sight))) for sight in SIGHTS)


STEP = tuple(known.key for known in CLASSES)
CALLS = ("launch_call", "sync_call", "memory_call", "api_call", "os_call")
RUN = tuple(PARTS)[:-2]
IN_ORDER = {
    "rest": ("unexplained", "other"),
    "step time": STEP,
    "calls": CALLS,
    "run": RUN,
    "copies": ("copy_h2d", "copy", "copy_d2h", "memset"),
    "device use": ("device_compute", "communication", "copy"),
    "device use without communication": ("device_compute", "copy"),
}
"""Keys that are drawn in this order."""
TOGETHER = {
    **IN_ORDER,
    "kernels": tuple(dict.fromkeys(name for name in kernels().labels if name not in {UNKNOWN, "waiting"})),
    "operators": tuple(dict.fromkeys((*operators().labels, "python", "range"))),
    "causes": (
        *("input", "parameter_transfer", "synchronisation", "blocking_copy", "allocation", "first_launch", "launch"),
        *("launch_queue", "compilation", "optimizer", "operator", "runtime", "python", "python_wait", "range"),
        *("driver", "profiler", "unexplained"),
    ),
    "stacks": ("python", "library", "standard", "native", "other"),
}
"""Keys that are drawn together, in any order."""


def test_black_and_white_are_100_apart_and_red_and_green_are_closer_without_red_cones() -> None:
    white = float(np.linalg.norm(seen("#ffffff", "usual") - seen("#000000", "usual")))
    assert white == pytest.approx(100.0, abs=0.1)
    red, green = "#c0291d", "#13753a"
    usual, protan = (float(np.linalg.norm(seen(red, s) - seen(green, s))) for s in ("usual", "protanopia"))
    assert (usual, protan) == pytest.approx((27.8, 9.6), abs=0.1)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", IN_ORDER)
def test_neighbours_differ_for_any_sight(name: str, theme: str) -> None:
    worst = min((difference(COLORS[a], COLORS[b], theme), a, b) for a, b in pairwise(IN_ORDER[name]))
    assert worst[0] >= 10.0, worst


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_drawn_together_differs_for_any_sight(name: str, theme: str) -> None:
    together = {key: COLORS[key] for key in TOGETHER[name] if key in COLORS}
    worst = min((difference(together[a], together[b], theme), a, b) for a, b in combinations(together, 2))
    assert worst[0] >= 5.0, worst


def test_every_key_that_a_report_can_draw_has_a_colour_of_its_own() -> None:
    families = {*kernels().labels, *operators().labels} - {UNKNOWN}
    kinds = {kind.key for kind in KINDS}
    assert {*STEP, *PARTS, *families, *kinds} - COLORS.keys() == set()
