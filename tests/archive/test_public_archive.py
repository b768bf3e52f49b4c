"""All public traces in one archive: every readable one is in, once, and states the same as its own report."""

import polars as pl
import pytest

import traceviz
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import LocalRunner
from traceviz.archive.sources.hashes import source_sha256

pytestmark = pytest.mark.slow
READABLE = 34
LEFT_OUT = ["NVIDIA__Fuser__64ee035__report1.nsys-rep"]
"""Reports whose export lies next to them: the same recording."""
QUARANTINED = {"profile.nvvp": "damaged", "report1.nsys-rep": "unknown-format", "report1.sqlite": "unknown-format"}
"""Ends of names of what is no trace: a session of NVIDIA's Visual Profiler, and two git-lfs pointers."""


@pytest.fixture(scope="module")
def public(public_traces, tmp_path_factory):
    archive = Archive(tmp_path_factory.mktemp("public") / "archive")
    return archive, archive.add(public_traces, runner=LocalRunner(2))


def test_every_readable_trace_is_in_and_the_others_are_quarantined_with_their_reasons(public):
    _, done = public
    assert (done.added, done.known, done.refused) == (READABLE, 0, ())
    assert [refusal.name.rpartition("/")[2] for refusal in done.left_out] == LEFT_OUT
    reasons = {refusal.source.rpartition("__")[2]: refusal.error.partition(":")[0] for refusal in done.quarantined}
    assert reasons == QUARANTINED
    errors = " ".join(refusal.error for refusal in done.quarantined)
    assert errors.count("git-lfs pointer") == 2
    assert "Visual Profiler: an XML file" in errors


def test_show_says_what_the_report_on_the_file_says(public, public_traces):
    archive, _ = public
    files = {source_sha256(path)[0]: path for path in public_traces.rglob("*") if path.is_file()}
    rows = archive.rows().filter(pl.col("state") == "ready").unique("trace_id")
    assert rows.height == READABLE
    for row in rows.select("trace_id", "source_sha256", "rank", "verdict").to_dicts():
        made, shown = traceviz.report_on(files[row["source_sha256"]]), archive.show(row["trace_id"])
        assert (shown.verdict, shown.run[1:], shown.notes) == (made.verdict, made.run[1:], made.notes)
        assert [one.slug for one in shown.sections] == [one.slug for one in made.sections]
        assert [(one.code, one.cost_ns) for one in shown.findings] == [(one.code, one.cost_ns) for one in made.findings]
