"""The synthetic file of rocprof matches its generator, and scrubbing keeps what a report says of it."""

from __future__ import annotations

from pathlib import Path

import make_synthetic_rocprof as rocprof

from traceviz import api
from traceviz.scrub import scrub


def test_the_committed_file_holds_exactly_what_the_generator_makes() -> None:
    assert rocprof.check() == []


def test_its_ranges_are_no_calls_and_its_copies_are_to_the_device() -> None:
    trace = api.open_trace(rocprof.PATH)
    assert (trace.rows("kernels"), trace.rows("nvtx"), trace.rows("memcpy"), trace.rows("cuda_api")) == (60, 24, 12, 84)
    assert trace.arrow("memcpy")["kind"].to_pylist() == ["h2d"] * 12


def test_a_scrubbed_copy_has_the_same_verdict(tmp_path: Path) -> None:
    copy = tmp_path / "copy.json.gz"
    scrub(rocprof.PATH, copy)
    assert api.report_on(copy).verdict == api.report_on(rocprof.PATH).verdict
