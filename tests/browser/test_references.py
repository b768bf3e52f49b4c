"""Pages look as they did when somebody last looked at them: ``make references`` takes the screenshots anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import MakePage
from tests.browser.references import (
    DIFFERENT,
    FOLDER,
    MOST_DIFFERENT,
    SHOTS,
    WIDTHS,
    difference,
    file_of,
    picture,
    shots,
    words_of,
)

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("name", "scheme"), SHOTS)
def test_a_page_looks_as_it_did(browser: Browser, make_page: MakePage, tmp_path: Path, name: str, scheme: str) -> None:
    page = make_page(*words_of(name, tmp_path))
    found = {}
    for width, taken in shots(browser, page, scheme):
        shot = tmp_path / f"{name}-{scheme}-{width}.png"
        shot.write_bytes(taken)
        found[width] = difference(picture(file_of(name, scheme, width)), picture(shot))
    assert [width for width, share in found.items() if share > MOST_DIFFERENT] == [], (found, tmp_path)


def test_references_are_those_of_eight_pages_and_small() -> None:
    stored = {path.name for path in FOLDER.glob("*.png")}
    assert stored == {file_of(name, scheme, width).name for name, scheme in SHOTS for width in WIDTHS}
    assert len(stored) == 30
    assert sum((FOLDER / name).stat().st_size for name in stored) < 2_500_000


def test_pages_of_other_traces_and_colours_are_not_alike() -> None:
    for width in WIDTHS:
        slow = picture(file_of("slow-loader", "light", width))
        assert difference(slow, slow) == 0
        for name, scheme in (("repaired-loader", "light"), ("tensorflow", "light"), ("cuda", "dark")):
            assert difference(slow, picture(file_of(name, scheme, width))) > MOST_DIFFERENT


def test_what_moves_a_line_is_alike_and_what_is_gone_is_not() -> None:
    reference = picture(file_of("cuda", "light", 1400))
    assert difference(reference, np.roll(reference, 5, axis=0)) < MOST_DIFFERENT
    assert difference(reference, reference + DIFFERENT / 2) == 0
    gone = reference.copy()
    gone[100:200] = 255.0
    assert difference(reference, gone) > MOST_DIFFERENT
