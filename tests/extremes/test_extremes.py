"""Every column of every format with values that none should hold: a report, or an error of ours that reports it.

The columns are found in the samples, so that a new one is covered by itself. A few cases of each format run with every
change, every eighth column with one of the values in ``make test-all``, and all of them in ``make extremes``.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import traceback
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.extremes.formats import FORMATS
from tests.extremes.values import VALUES, Place, Sample
from tests.support.unpacking import unpacked
from traceviz import api
from traceviz.core.errors import TracevizError
from traceviz.report.pictures.packed import packed

EVERY = bool(os.environ.get("TRACEVIZ_EXTREMES"))
"""True if every column is tested with every value, which takes most of an hour: ``make extremes``."""
FEW = 2
"""Cases of each format that run with every change; ``make test-all`` and ``make extremes`` have the others."""
_NO_TEXT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

Case = tuple[Place, str]

sample_of = cache(lambda name: FORMATS[name]())


def report_of(path: Path, name: str) -> str:
    """Return all text that is made of an input: as a page, as JSON, and the timeline of a page."""
    if name == "report":
        comparison = api.compare(path, path)
        return api.to_text(comparison, "terminal")
    report, pictures = api.pictured(path)
    header = ""
    if pictures.timeline is not None:
        packing = packed(pictures.timeline, pictures.places)
        unpacked(packing)
        header = packing.header
    return api.to_text(report, "terminal") + api.to_text(report, "json") + header


def problem_of(name: str, sample: Sample, case: Case, folder: Path) -> str:
    """Return the problem of an answer to one case; empty for a clean report, or an error of ours."""
    place, value = case
    path = sample.write(place, VALUES[value], folder)
    if path is None:
        return ""
    try:
        text = report_of(path, name)
    except TracevizError:
        return ""
    except Exception as error:  # noqa: BLE001 (what else there may be is what the test looks for; warnings are errors)
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{name} {place} {value}: {type(error).__name__} {str(error)[:200]} at {where.filename}:{where.lineno}"
    found = _NO_TEXT.search(text)
    return f"{name} {place} {value}: {found[0]!r} in the report" if found else ""


def problems(name: str, cases: Iterable[Case], folder: Path) -> list[str]:
    found = []
    for case in cases:
        inner = folder / "case"
        inner.mkdir()
        found.append(problem_of(name, sample_of(name), case, inner))
        shutil.rmtree(inner)
    return [problem for problem in found if problem]


@pytest.mark.parametrize("name", FORMATS)
def test_a_few_extreme_values_end_in_a_report_or_an_error_of_ours(name: str, tmp_path: Path) -> None:
    places = sample_of(name).places()
    assert len(places) == len(set(places)) > 2
    cases = [(place, value) for place in places for value in VALUES]
    assert problems(name, random.Random(name).sample(cases, FEW), tmp_path) == []  # the name is the seed


@pytest.mark.slow
@pytest.mark.parametrize("part", range(len(VALUES) if EVERY else 1))
@pytest.mark.parametrize("name", FORMATS)
def test_every_column_bears_extreme_values(name: str, part: int, tmp_path: Path) -> None:
    values = list(VALUES)
    cases = [(place, values[(number + part) % len(values)]) for number, place in enumerate(sample_of(name).places())]
    assert problems(name, cases if EVERY else cases[::8], tmp_path) == []


def test_a_column_that_a_sample_gains_is_found_by_itself(tmp_path: Path) -> None:
    from tests.extremes.json_sample import JsonSample

    def write(text: str, folder: Path) -> Path:
        (folder / "a.json").write_text(text)
        return folder / "a.json"

    sample = JsonSample({"old": 1, "rows": [{"a": 1}, {"a": 2}]}, write)
    assert sample.places() == [("old",), ("rows",), ("rows", "0"), ("rows", "0", "a")]
    changed = sample.write(("rows", "0", "a"), 2**63, tmp_path)
    assert changed.read_text() == '{"old": 1, "rows": [{"a": 9223372036854775808}, {"a": 2}]}'
