"""Ranks in public traces and in the shipped recording of two ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from traceviz import api

HTA = "facebookresearch__HolisticTraceAnalysis__sampled_rank-"


def test_two_ranks_of_128_keep_their_10_collectives_each(public_traces: Path) -> None:
    files = [public_traces / "kineto" / f"{HTA}{rank}.json.gz" for rank in (1, 0)]
    report = api.report_on(*files)
    assert report.fact("capture", "ranks") == "2 of 128 (0, 1)"
    assert report.fact("ranks", "world_size") == 128
    nccl = api.open_trace(*files, tables=["kernels"]).kernels.collect().to_pandas()
    nccl = nccl[nccl["name"].astype(str).str.startswith("nccl")]
    assert nccl.groupby("process_id").size().to_dict() == {0: 10, 1: 10}
    assert report.fact("ranks", "collectives") == 0  # all of them are transfers between two ranks
    assert [(row["rank"], row["steps"], row["kernels"]) for row in report.rows("ranks")] == [(0, 2, 1154), (1, 2, 1104)]


def test_the_rank_with_the_longer_sequences_keeps_the_other_waiting(samples: Path) -> None:
    report = api.report_on(samples / "kineto" / "two_ranks")
    late = next(finding for finding in report.findings if finding.code == "TV503")
    assert {fact.key: fact.value for fact in late.evidence}["rank"] == 1
    own = {row["rank"]: row["own_ns"] for row in report.rows("ranks")}
    assert own[1] > 1.5 * own[0]
    steps = {row["rank"]: row["median_step_ns"] for row in report.rows("ranks")}
    assert steps[1] == pytest.approx(steps[0], rel=0.05)  # which step times alone do not show
