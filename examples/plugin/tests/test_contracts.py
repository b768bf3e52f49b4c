"""The plugin keeps the contracts of traceviz."""

from pathlib import Path

from acme_traceviz.declared import ACME101, SHORT_KERNELS
from acme_traceviz.reader import AcmeReader

import traceviz
from traceviz.testing import AnalysisContract, FindingContract, ReaderContract

SAMPLE = Path(__file__).parents[1] / "sample.acme"


class TestReader(ReaderContract):
    """The reader of ACME."""

    reader = AcmeReader()
    samples = (SAMPLE,)


class TestAnalysis(AnalysisContract):
    """The section on short kernels."""

    entry = SHORT_KERNELS

    def trace(self) -> traceviz.TraceTables:
        """Return the sample."""
        return traceviz.open(SAMPLE)


class TestFinding(FindingContract):
    """ACME101."""

    record = ACME101


def test_short_kernels_take_18_of_88_microseconds() -> None:
    report = traceviz.analyze(SAMPLE)
    assert report.fact("acme_short_kernels", "short_ns") == 18_000
