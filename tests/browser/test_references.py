"""Pages look as they did at the last review: ``make references`` takes the screenshots again."""

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
    NAMES,
    SHOTS,
    difference,
    file_of,
    picture,
    take,
    words_of,
)

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: "-".join(map(str, shot)))
def test_a_page_looks_as_it_did(
    browser: Browser, make_page: MakePage, tmp_path: Path, shot: tuple[str, str, int]
) -> None:
    name, scheme, width = shot
    taken = tmp_path / file_of(*shot).name
    taken.write_bytes(take(browser, make_page(*words_of(name, tmp_path)), scheme, width))
    assert difference(picture(file_of(*shot)), picture(taken)) <= MOST_DIFFERENT, taken


def test_references_are_those_of_eight_pages_and_small() -> None:
    stored = {path.name for path in FOLDER.glob("*.png")}
    assert stored == {file_of(*shot).name for shot in SHOTS}
    assert len(stored) == 10
    assert {name for name, _, _ in SHOTS} == {*NAMES}
    assert sum((FOLDER / name).stat().st_size for name in stored) < 800_000


def test_pages_of_other_traces_and_colours_are_not_alike() -> None:
    shots = {shot: picture(file_of(*shot)) for shot in SHOTS}
    assert {shot for shot, one in shots.items() if difference(one, one) != 0} == set()
    alike = [
        (shot, other)
        for shot, one in shots.items()
        for other, another in shots.items()
        if shot < other and shot[2] == other[2] and difference(one, another) <= MOST_DIFFERENT
    ]
    assert alike == []


def test_what_moves_a_line_is_alike_and_what_is_gone_is_not() -> None:
    reference = picture(file_of("cuda", "light", 1400))
    assert difference(reference, np.roll(reference, 5, axis=0)) < MOST_DIFFERENT
    assert difference(reference, reference + DIFFERENT / 2) == 0
    gone = reference.copy()
    gone[100:200] = 255.0
    assert difference(reference, gone) > MOST_DIFFERENT
