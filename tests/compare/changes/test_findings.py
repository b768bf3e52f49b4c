"""Findings of two sides: what appeared, stayed or went away, and its cost per step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compare.sections_of import facts, finding, run, section, side
from traceviz.compare.changes.findings import Seen, compare_findings
from traceviz.report import Severity


def test_findings_appear_stay_and_go_with_their_cost_per_step():
    quiet = section("input_pipeline", facts(verdict="not input-bound"))
    base = run(4, quiet, section("copies"), findings=[finding("TV101", 800, 0.2, Severity.ERROR)])
    new = run(2, quiet, section("copies"), findings=[finding("TV302", 100, 0.05, Severity.WARNING)])
    changes = {change.code: change for change in compare_findings(side("base", base), side("new", new)).changes}
    gone, appeared = changes["TV101"], changes["TV302"]
    assert (gone.seen, gone.base_ns, gone.new_ns, gone.base_share, gone.new_share) == (
        Seen.WENT_AWAY,
        200,
        None,
        0.2,
        None,
    )
    assert (appeared.seen, appeared.base_ns, appeared.new_ns) == (Seen.APPEARED, None, 50)
    assert (gone.severity, gone.message) == (Severity.ERROR, "TV101 costs 800")
    assert list(changes) == ["TV302", "TV101"]
    same = compare_findings(side("base", base), side("base", base)).changes
    assert [(change.seen, change.base_ns, change.new_ns) for change in same] == [(Seen.STAYED, 200, 200)]


@pytest.mark.parametrize("verdict", [None, "cannot judge", "not judged"])
def test_a_finding_that_nobody_looked_for_neither_appears_nor_goes(verdict):
    sections = [section("input_pipeline", facts(verdict=verdict))] if verdict else []
    without = side("without", run(4, *sections))
    having = side("with", run(4, findings=[finding("TV101", 800, 0.2, Severity.ERROR)]))
    (first,) = compare_findings(without, having).changes
    (second,) = compare_findings(having, without).changes
    assert (first.seen, first.base_ns, first.base_share, first.new_ns) == (Seen.ONLY_NEW, None, None, 200)
    assert (second.seen, second.base_ns, second.new_ns) == (Seen.ONLY_BASE, 200, None)


@pytest.mark.parametrize("forwards", [True, False])
def test_an_input_that_one_capture_supposes_to_be_awaited_and_the_other_sees_is_awaited_on_both(forwards):
    """Without ranges of the input there is an idle device, and with them a wait for a batch: nothing has appeared."""
    supposed = section("input_pipeline", facts(verdict="possibly input-bound"))
    seen = section("input_pipeline", facts(verdict="highly input-bound"))
    before = run(4, supposed, findings=[finding("TV102", 800, 0.9, Severity.WARNING)])
    workers = finding("TV109", 0, 0.0, Severity.INFO)
    after = run(2, seen, findings=[finding("TV101", 300, 0.8, Severity.ERROR), workers])
    sides = [side("before", before), side("after", after)]
    changes = {change.code: change for change in compare_findings(*(sides if forwards else sides[::-1])).changes}
    assert set(changes) == {"TV109", "TV101" if forwards else "TV102"}
    wait = changes["TV101" if forwards else "TV102"]
    assert wait.seen == Seen.STAYED
    assert (wait.base_ns, wait.new_ns) == ((200, 150) if forwards else (150, 200))
    assert (wait.base_share, wait.new_share) == ((0.9, 0.8) if forwards else (0.8, 0.9))
    assert len(wait.slug.split(" → ")) == 2
    assert changes["TV109"].seen == (Seen.ONLY_NEW if forwards else Seen.ONLY_BASE)


def test_what_a_finding_costs_is_of_the_runs_that_have_it():
    having = run(4, section("copies"), findings=[finding("TV302", 800, 0.2, Severity.WARNING)])
    base = side("base", having, run(36, section("copies")))
    (change,) = compare_findings(base, side("new", having)).changes
    assert (change.base_ns, change.base_share, change.new_ns, change.new_share) == (200, 0.2, 200, 0.2)


def test_a_finding_without_a_known_cost_has_none_on_either_side():
    unpriced = replace(finding("TV108", 0, 0.0, Severity.WARNING), share=None)
    base = side("base", run(4, findings=[unpriced]))
    (change,) = compare_findings(base, side("new", run(4, section("input_pipeline", facts(verdict="fine"))))).changes
    assert (change.seen, change.base_share, change.new_share) == (Seen.WENT_AWAY, None, None)


@pytest.mark.parametrize(
    ("collector", "seen", "other_way"),
    [("torch 2.13", Seen.WENT_AWAY, Seen.APPEARED), ("nsys 2026.2, nvtx", Seen.ONLY_BASE, Seen.ONLY_NEW)],
)
def test_a_kind_of_loader_that_the_other_profiler_cannot_see_did_not_go_away(collector, seen, other_way):
    quiet, other = (section("run", facts(recorded_by=words)) for words in ("torch 2.12", collector))
    pipeline = section("input_pipeline", facts(verdict="highly input-bound"))
    base = side("base", run(4, quiet, pipeline, findings=[finding("TV108", 800, 0.2, Severity.INFO)]))
    new = side("new", run(4, other, pipeline))
    for pair, expected in (((base, new), seen), ((new, base), other_way)):
        (change,) = compare_findings(*pair).changes
        assert change.seen == expected


def test_a_cost_of_other_time_is_not_told_per_step():
    base = side("base", run(2, findings=[finding("TV601", 800, 0.2, Severity.ERROR, "captured time")]))
    (change,) = compare_findings(base, base).changes
    assert (change.seen, change.base_ns, change.base_share) == (Seen.STAYED, None, 0.2)
