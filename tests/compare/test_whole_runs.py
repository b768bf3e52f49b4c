"""Comparisons of whole runs: by total time if there are no steps, by any other requested time."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.compare.command import compared
from tests.compare.sections_of import measures, parts, run, section, side, table, tagged
from traceviz.analyses.host.findings import BUSY as NOTE_OF_HOST
from traceviz.compare.compare import compare
from traceviz.compare.effect import Outcome, interval_of_runs
from traceviz.compare.options import CompareOptions
from traceviz.compare.report.document import document
from traceviz.compare.sides.measures import BUSY, measures_of
from traceviz.compare.sides.sides import Side
from traceviz.core.errors import UsageError
from traceviz.gates.gates import Gates, judge_gates
from traceviz.gates.metrics import Candidate
from traceviz.render.json import dumps
from traceviz.report import Grid, Note, Prose, Severity

S = 1_000_000_000


def lasting(label: str, *totals_s: float, steps: int = 0, **values: float) -> Side:
    """Return a side of runs that took so long, by default without steps."""
    return side(label, *(run(steps, measures(total_ns=total * S, **values), tagged(study="a")) for total in totals_s))


def grids(result, slug):
    tables = [block for block in result.section(slug).blocks if isinstance(block, Grid)]
    return [[dict(zip((c.name for c in table.columns), row, strict=True)) for row in table.rows] for table in tables]


def prose(result, slug):
    return " ".join(block.text for block in result.section(slug).blocks if isinstance(block, Prose))


def test_runs_of_8_and_4_s_without_steps_are_twice_as_fast_by_their_total_time():
    result = document(compare([lasting("slow", 8), lasting("fast", 4)]))
    assert result.verdict.code == "faster"
    assert result.verdict.sentence == "2.00× faster: total time 8.00 → 4.00 s (−50.0 %, one run of each side)."
    assert (result.fact("effect", "basis"), result.fact("effect", "speedup")) == ("total", 2.0)
    assert (result.fact("effect", "base_ns"), result.fact("effect", "low_ratio")) == (8 * S, None)
    (rows,) = grids(result, "effect")
    assert [(row["mean_ns"], row["median_ns"], row["per_second"]) for row in rows] == [
        (8 * S, None, None),
        (4 * S, None, None),
    ]
    assert "no steady steps" not in " ".join((result.verdict.sentence, prose(result, "comparability")))


@pytest.mark.parametrize(
    ("new_s", "outcome"),
    [(7.9, Outcome.NO_CHANGE), (6.4, Outcome.UNKNOWN), (6.32, Outcome.FASTER), (9.48, Outcome.SLOWER)],
)
def test_of_one_run_on_each_side_a_difference_of_a_fifth_is_judged_and_a_smaller_one_is_not(new_s, outcome):
    judgement = compare([lasting("a", 7.9), lasting("b", new_s)]).shown.judgement
    assert judgement.outcome is outcome
    assert ("one run of each side" in judgement.why) == (outcome is Outcome.UNKNOWN)


def test_the_interval_of_repeats_is_that_of_welch_of_the_logarithms():
    spread = math.log(1.21) / math.sqrt(2)  # of two runs that differ by 1.21
    half = 4.3027 * spread  # both sides scatter equally: 2 degrees of freedom
    low, high = interval_of_runs((1.0, 1.21), (2.0, 2.42))
    assert (low, high) == (
        pytest.approx(2 * math.exp(-half) - 1, rel=1e-4),
        pytest.approx(2 * math.exp(half) - 1, rel=1e-4),
    )
    judgement = compare([lasting("a", 1, 1.21), lasting("b", 2, 2.42)]).shown.judgement
    assert (judgement.outcome, judgement.effect.runs) == (Outcome.SLOWER, True)
    assert judgement.effect.interval == pytest.approx((low, high))
    wide = compare([lasting("a", 1, 1.5), lasting("b", 1.1, 1.7)]).shown.judgement
    assert (wide.outcome, "more runs of each side" in wide.why) == (Outcome.UNKNOWN, True)


def test_intervals_within_one_run_of_each_side_are_joined():
    within = ((9.0, 11.0), (4.5, 5.5))
    half = math.hypot(math.log(11 / 9) / 2, math.log(11 / 9) / 2)
    assert interval_of_runs((10.0,), (5.0,), within) == pytest.approx(
        (math.exp(math.log(0.5) - half) - 1, math.exp(math.log(0.5) + half) - 1)
    )
    assert interval_of_runs((10.0,), (5.0,), (within[0], None)) is None
    assert interval_of_runs((10.0,), (10.0,)) == (0.0, 0.0)
    assert interval_of_runs((0.0, 1.0), (5.0, 5.0)) is None


def test_steps_remain_what_is_compared_where_two_sides_have_them():
    stepping = [lasting(name, total, steps=20) for name, total in (("a", 8), ("b", 4))]
    assert compare(stepping).basis.name == "step"
    result = document(compare(stepping))
    assert result.verdict.sentence.endswith(" Total time 8.00 → 4.00 s (−50.0 %).")
    alike = document(compare([stepping[0], lasting("d", 8.8, steps=20)]))
    assert alike.verdict.sentence.endswith(" Total time 8.00 → 8.80 s (+10.0 %, which may be chance).")
    assert compare([stepping[0], lasting("c", 2)]).basis.name == "total"
    three = compare([*stepping, lasting("c", 2)])
    assert (three.basis.name, three.pairs[1].judgement.outcome) == ("step", Outcome.UNKNOWN)
    assert any("--measure total" in remark.text for remark in three.pairs[1].remarks)
    asked = document(compare(stepping, CompareOptions(measure="total")))
    assert asked.verdict.sentence.startswith("2.00× faster: total time 8.00 → 4.00 s")
    assert document(compare([side("a", run(0)), side("b", run(0))])).verdict.sentence == "Cannot judge: a has no steps."


def test_one_run_of_each_side_on_a_busy_machine_is_not_judged_and_two_are():
    def busy(side_of):
        note = Note(BUSY, Severity.WARNING, "Other programs used 2 of 2 cores.")
        return replace(side_of, reports=tuple(replace(report, notes=(note,)) for report in side_of.reports))

    assert BUSY == NOTE_OF_HOST
    result = document(
        compare([lasting("a", 8, host_memory_peak_bytes=8), busy(lasting("b", 4, host_memory_peak_bytes=4))])
    )
    assert result.verdict.sentence == (
        "Cannot judge: one run of each side, on a machine that other programs used; more runs of each side would tell. "
        "Total time 8.00 → 4.00 s."
    )
    assert [row["verdict"] for row in grids(result, "measures")[0]] == ["cannot judge", "better"]
    assert "other programs used the machine while b ran" in prose(result, "comparability")
    rates = [lasting(name, 1, samples_per_second=(rate, rate - 1, rate + 1)) for name, rate in (("a", 90), ("b", 50))]
    assert [
        grids(document(compare([rates[0], of])), "measures")[0][1]["verdict"] for of in (rates[1], busy(rates[1]))
    ] == [
        "worse",
        "cannot judge",
    ]
    assert compare([busy(lasting("a", 8, 8.1)), busy(lasting("b", 4, 4.1))]).shown.judgement.outcome is Outcome.FASTER


def test_another_batch_is_other_work_in_a_step_and_the_same_in_a_run():
    sides = [
        side(batch, run(20, measures(total_ns=total * S, epoch_ns=total * S / 10), tagged(batch=batch)))
        for batch, total in (("32", 9), ("512", 3))
    ]
    assert compare(sides).shown.judgement.outcome is Outcome.UNKNOWN
    for measure, words in (("total", "total time 9.00 → 3.00 s"), ("epoch", "time per epoch 900 → 300 ms")):
        shown = document(compare(sides, CompareOptions(measure=measure))).verdict.sentence
        assert shown.startswith(f"3.00× faster: {words} (−66.7 %")


def test_a_measure_that_is_none_and_one_that_is_not_of_steps_are_usage_errors():
    sides = [lasting("a", 8), lasting("b", 4)]
    with pytest.raises(UsageError, match=r"measure 'totl'.*total"):
        compare(sides, CompareOptions(measure="totl"))
    with pytest.raises(UsageError, match="--per batch compares steps, and --measure total does not"):
        compare(sides, CompareOptions(measure="total", per="batch"))


def test_a_stopped_run_has_no_total_time_and_is_named_with_how_it_ended():
    crashed = run(0, measures("failed", "out of memory", total_ns=1 * S))
    both = side("b", crashed, *lasting("b", 4, 4.1).reports)
    result = document(compare([lasting("a", 8, 8.1), both]))
    assert result.fact("effect", "new_ns") == pytest.approx(math.sqrt(4 * 4.1) * S)
    assert "1 of 3 runs of b did not end by itself (failed: out of memory)." in prose(result, "measures")
    alone = compare([lasting("a", 8), side("b", crashed)]).shown.judgement
    assert alone.outcome is Outcome.UNKNOWN
    assert alone.why == "b crashed: out of memory, and so has no total time"


def test_fewer_epochs_at_the_same_time_each_are_said_beside_the_steps():
    long, short = (
        lasting(name, 5 + 1.2 * count, steps=20, epochs=count, epoch_ns=1.2 * S, training_ns=(3 + 1.2 * count) * S)
        for name, count in (("all", 10), ("stopped early", 6))
    )
    sentence = document(compare([long, short])).verdict.sentence
    assert sentence.startswith("No change: mean step")
    assert sentence.endswith(" 10 → 6 epochs at the same time per epoch (1.20 s): time to the end of training −32.0 %.")
    slower = lasting("adam", 20, steps=20, epochs=6, epoch_ns=2.4 * S)
    assert "10 → 6 epochs, each longer (1.20 s → 2.40 s)." in document(compare([long, slower])).verdict.sentence
    unsure = lasting("noisy", 20, steps=20, epochs=6, epoch_ns=1.3 * S)
    assert "10 → 6 epochs (1.20 s → 1.30 s)." in document(compare([long, unsure])).verdict.sentence
    assert "epochs" not in document(compare([long, long])).verdict.sentence


def test_each_measure_of_both_sides_is_judged_by_what_is_a_gain():
    base = side("a", *(run(0, measures(total_ns=8 * S + i, samples_per_second=100.0 + i, epochs=3)) for i in range(3)))
    new = side("b", *(run(0, measures(total_ns=9 * S + i, samples_per_second=200.0 + i, x_ns=1)) for i in range(3)))
    (rows,) = grids(document(compare([base, new])), "measures")
    assert [(row["key"], row["verdict"], row["base_runs"]) for row in rows] == [
        ("total_ns", "worse", 3),
        ("samples_per_second", "better", 3),
    ]
    assert (rows[0]["base"], rows[0]["new"], rows[0]["change"]) == ("8.00 s", "9.00 s", "+12.5 %")
    assert rows[1]["ratio"] == pytest.approx(201 / 101 - 1, rel=1e-3)
    assert rows[1]["low_ratio"] < rows[1]["ratio"] < rows[1]["high_ratio"]


def test_a_saved_report_has_one_value_of_each_measure_and_what_is_no_number_is_none():
    twice = section("measures", table("measures", "key value unit low high", *_ODD))
    measure, other = measures_of(side("a", run(0, twice))).values()
    assert (measure.values, measure.unit, measure.within, measure.better) == ((3.0,), "number", None, "")
    assert (other.key, other.within) == ("b", (1.0, 2.0))


_ODD = (
    *(("a", 3, "furlong", 1, None), ("a", 9, "ns", 1, 2), ("b", float("nan"), "ns", 1, 2), ("b", True, "ns", 1, 2)),
    *(("c", "7", "ns", 1, 2), ("b", 1.5, "ns", 1, 2)),
)


def test_the_whole_runs_of_3_sides_are_a_row_each_with_the_speed_up_of_the_total():
    sides = [lasting(name, *totals, epochs=2) for name, *totals in (("a", 8, 8), ("b", 4, 4), ("c", 16))]
    table, *pairs = grids(document(compare(sides)), "measures")
    assert [(row["side"], row["runs"], row["total_ns"], row["total_speedup"]) for row in table] == [
        ("a", 2, 8 * S, 1.0),
        ("b", 2, 4 * S, 2.0),
        ("c", 1, 16 * S, 0.5),
    ]
    assert len(pairs) == 2
    sides[2] = lasting("c", 7.5)
    sides[0] = lasting("a", 7, 7.5, epochs=2)
    unsure, *_ = grids(document(compare(sides)), "measures")
    assert [row["total_speedup"] is None for row in unsure] == [False, False, True]


def test_the_part_of_the_run_that_makes_most_of_the_difference_is_named():
    slow = side("a", run(0, measures(total_ns=8 * S), parts(imports=6 * S, saving=2 * S)))
    fast = side("b", run(0, measures(total_ns=4 * S), parts(imports=3 * S, saving=1 * S)))
    result = document(compare([slow, fast]))
    assert result.verdict.sentence.endswith(" 75 % of the gain is imports.")
    (rows,) = grids(result, "attribution")
    assert {row["part"]: row["difference_ns"] for row in rows} == {"imports": -3 * S, "saving": -1 * S}
    unclear = (
        side(name, run(0, measures(total_ns=t * S), parts(imports=S, other=(t - 1) * S)))
        for name, t in (("a", 8), ("b", 4))
    )
    assert "of the gain" not in document(compare(list(unclear))).verdict.sentence


def test_parts_of_the_run_are_no_reason_of_shorter_epochs():
    slow, fast = (
        side(name, run(0, measures(total_ns=t * S, epoch_ns=t * S), parts(imports=t * S)))
        for name, t in (("a", 8), ("b", 4))
    )
    sentence = document(compare([slow, fast], CompareOptions(measure="epoch"))).verdict.sentence
    assert sentence.endswith("(−50.0 %, one run of each side). Total time 8.00 → 4.00 s (−50.0 %).")


@pytest.mark.parametrize(("new_s", "outcome"), [(10, "failed"), (8.8, "unknown"), (6, "passed")])
def test_a_gate_on_regressions_judges_the_total_time(new_s, outcome):
    pair = compare([lasting("a", 8), lasting("b", new_s)]).shown
    (result,) = judge_gates(Gates(regression=0.05), [Candidate(pair.new.reports, "", pair.judgement)])
    assert (result.outcome.value, result.limit) == (outcome, "< 5.0 % longer total time")


def test_saved_reports_are_compared_by_the_measure_asked_for_on_the_command_line(tmp_path):
    for name, total in (("a", 8), ("b", 10)):
        (report,) = lasting(name, total, steps=20).reports
        (tmp_path / f"{name}.json").write_text(dumps(report))
    result = compared(tmp_path / "a.json", tmp_path / "b.json", "--measure", "total", "--fail-on-regression", "5%")
    assert (result.code, result.outcome, result.facts("effect")["basis"]) == (1, "slower", "total")
    assert result.sentence.startswith("1.25× slower: total time 8.00 → 10.0 s (+25.0 %")
