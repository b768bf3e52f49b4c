"""Headlines of all shipped samples and public traces: one claim of at most 12 words with one figure, which leads."""

import re
import tomllib

import pytest

from tests.conftest import REPOSITORY
from tests.support.reports import report_of
from traceviz import api
from traceviz.core.errors import TracevizError
from traceviz.core.units import format_ratio
from traceviz.render.options import RenderOptions

_ENTRIES = tomllib.loads((REPOSITORY / "sample_traces/MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
NAMES = sorted({entry.get("folder", entry["file"]) for entry in _ENTRIES})
SAMPLES = [name for name in NAMES if not name.endswith(".nsys-rep")]
MUCH = 0.2
"""A measured candidate of this share leaves no room for *Not judged*."""


def words_of(headline, figure):
    """Return the words as a reader counts them: the figure with its unit is one, and so is a name after it."""
    before, _, after = headline.partition(figure) if figure else (headline, "", "")
    base, colon, _ = after.partition(": ")
    return [*before.split(), *([figure] if figure else []), *base.split(), *(["NAME"] if colon else [])]


def check(report):
    verdict = report.verdict
    headline, figure = verdict.headline, verdict.figure
    words = words_of(headline, figure)
    assert 0 < len(words) <= 12, headline
    lead = next((candidate for candidate in verdict.candidates if candidate.leads), None)
    much = lead is not None and lead.share >= MUCH
    if headline.startswith(("Not judged", "Cannot judge")):
        assert not (much and lead.certainty == "measured"), headline
        assert figure == "", headline
        return
    assert headline.count(figure) == 1, headline
    assert re.fullmatch(r"\d+\.\d %", figure), headline
    others = [word for word in words if re.search(r"\d", word)]
    is_rank = re.search(r"\brank \d+\b", headline)
    assert others in ([figure], *([[is_rank[0].split()[1], figure]] if is_rank else [])), headline
    if much:
        assert figure == format_ratio(lead.share), headline
    elif headline.startswith(("Healthy", "Devices compute")) and verdict.parts:
        computes = next(part for part in verdict.parts if part.key == "device_compute")
        assert figure == format_ratio(computes.share), headline
    assert headline not in {finding.message.rstrip(".") for finding in report.findings}
    screen = " ".join(api.to_text(report, "terminal", RenderOptions(200, first_screen=True)).split())
    assert screen.count(headline) == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_the_headline_of_a_sample_is_one_claim_with_the_figure_that_leads(samples, name):
    check(report_of(samples / name))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kineto", "nsys", "nvprof", "xplane"])
def test_headlines_of_public_traces_are_claims_with_the_figure_that_leads(public_traces, kind):
    checked = 0
    for path in sorted((public_traces / kind).iterdir()):
        try:
            report = api.report_on(path)
        except TracevizError:  # a pointer to a file elsewhere, a session without recording
            continue
        check(report)
        checked += 1
    assert checked


def test_words_are_counted_as_a_reader_counts_them():
    headline = "One kernel takes 68.7 % of GPU time: void f<a, b>(int)"
    assert words_of(headline, "68.7 %") == ["One", "kernel", "takes", "68.7 %", "of", "GPU", "time", "NAME"]
    assert words_of("Not judged: no steps", "") == ["Not", "judged:", "no", "steps"]
