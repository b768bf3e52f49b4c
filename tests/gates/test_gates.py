"""A gate passes, fails, or is unknown, and never passes on what was not measured."""

import re
from dataclasses import replace

import pytest

from tests.compare.sides_of import side
from tests.conftest import REPOSITORY
from traceviz.analyses.derived.host import classes as host
from traceviz.analyses.steps.bases import kineto as kineto_basis
from traceviz.analyses.steps.bases import xprof as xprof_basis
from traceviz.compare.attribution import CLASS_KEYS
from traceviz.compare.effect import Effect
from traceviz.compare.effect import Outcome as Judged
from traceviz.compare.judge import Judgement, judge
from traceviz.compare.options import Limits
from traceviz.core.errors import GateFailedError, NoVerdictError, UsageError
from traceviz.gates.budgets import Budget
from traceviz.gates.gates import (
    Gates,
    Outcome,
    add_gate_section,
    check,
    exit_code,
    for_one_side,
    judge_gates,
)
from traceviz.gates.metrics import METRICS, Candidate
from traceviz.render.json import dumps, loads
from traceviz.report import Column, Fact, Facts, Finding, Grid, Report, Section, Severity, Skipped, Verdict
from traceviz.report.verdicts import VerdictCode


def table(names, *rows, title=""):
    return Grid(tuple(Column(name, name, "text") for name in names.split()), rows, title, audience="machine")


def finding(code, severity):
    return Finding(code, f"slug-{code}", severity, "Something.", (), (), 5)


MEASURED = {
    "total_ns": 9_000,
    "training_ns": 8_000,
    "start_ns": 2_000,
    "epoch_ns": 300,
    "first_epoch_ns": 400,
    "epochs": 4,
    "samples_per_second": 512.5,
    "latency_p50_ns": 10,
    "latency_p95_ns": 12,
    "latency_p99_ns": 19,
    "energy_j": 1_000.0,
    "energy_per_step_j": 10.0,
    "energy_per_sample_j": 0.3,
    "device_memory_peak_bytes": 5_000,
}


def sample(**changes):
    """Return a report with a number for every metric of one run."""
    facts = {
        "steps": [Fact("median_ns", "", 110, "ns"), Fact("p95_ns", "", 130, "ns"), Fact("source", "", "NVTX ranges")],
        "input_pipeline": [Fact("verdict", "", "not input-bound"), Fact("input_share", "", 0.25, "ratio")],
        "compilation": [Fact("steady_share", "", 0.02, "ratio")],
        "memory": [Fact("peak_bytes", "", 6_000, "bytes")],
        "host": [
            *(Fact("cpu_mean", "", 0.5, "ratio"), Fact("rss_max", "", 7_000, "bytes")),
            *(Fact("threads_max", "", 12, "count"), Fact("gpu_mean", "", None, "ratio")),
        ],
        "breakdown": [Fact("basis", "", "traceviz")],
        "measures": [Fact("outcome", "", "finished")],
    }
    shares = (("input_wait", 0.15), ("copy_h2d", 0.1), ("copy_d2h", 0.05), ("communication", 0.03))
    classes = (*shares, ("kernel_launch", 0.04), ("device_compute", 0.63))
    grids = {
        "breakdown": [
            table("class share_of_step", *classes),
            table("step process dur_ns", (0, 0, 100), (1, 0, 110), (2, 0, 150), title="By step"),
        ],
        "cuda_api": [table("name share_of_api", ("cudaMalloc", 0.375), ("cudaFree", 0.625))],
        "device_use": [table("device judged_utilisation", ("GPU 0", 0.75), ("GPU 1", 0.25))],
        "measures": [
            table("key label value", *((key, key, value) for key, value in MEASURED.items()), title="measures")
        ],
    }
    slugs = dict.fromkeys((*facts, *grids))
    sections = tuple(Section(s, s, (Facts(tuple(facts.get(s, ()))), *grids.get(s, ()))) for s in slugs)
    findings = tuple(finding(f"TV{n}", s) for n, s in enumerate((Severity.INFO, Severity.WARNING, Severity.ERROR)))
    report = Report(
        (),
        Verdict(VerdictCode.NOT_INPUT_BOUND, "Not input-bound."),
        sections,
        findings,
        (Skipped("launch", "no calls"),),
    )
    return replace(report, **changes)


def without(report, slug):
    return replace(report, sections=tuple(section for section in report.sections if section.slug != slug))


def gate(expression, *reports, **candidate):
    (result,) = judge_gates(Gates((Budget.parse(expression),)), [Candidate(reports or (sample(),), **candidate)])
    return result


VALUES = {
    "step_median": 110,
    "step_p95": 130,
    "step_mean": 120,
    "input_wait": 0.15,
    "input_share": 0.25,
    "device_busy": 0.5,
    "device_idle": 0.5,
    "communication": 0.03,
    "exposed_copies": 0.15,
    "launch": 0.04,
    "compilation": 0.02,
    "peak_memory": 6_000,
    "host_cpu": 0.5,
    "host_rss": 7_000,
    "host_threads": 12,
    "total_time": 9_000,
    "training_time": 8_000,
    "startup_time": 2_000,
    "epoch_time": 300,
    "first_epoch_time": 400,
    "epochs": 4,
    "samples_per_second": 512.5,
    "latency_p50": 10,
    "latency_p95": 12,
    "latency_p99": 19,
    "energy": 1_000.0,
    "energy_per_step": 10.0,
    "energy_per_sample": 0.3,
    "device_memory": 5_000,
    "findings": 3,
    "findings_warning": 2,
    "findings_error": 1,
    "class:device_compute": 0.63,
    "api:cudaMalloc": 0.375,
    "api:cudaMallocAsync": 0,
    "host.threads_max": 12,
}


def test_every_metric_of_one_run_has_a_value_here():
    assert {metric.name for metric in METRICS if not metric.comparing} <= VALUES.keys()


@pytest.mark.parametrize("name", VALUES)
def test_a_metric_is_read_from_the_report(name):
    result = gate(f"{name}>0")
    assert result.value == pytest.approx(VALUES[name])
    assert result.outcome == (Outcome.PASSED if VALUES[name] else Outcome.FAILED)


@pytest.mark.parametrize(("limit", "outcome"), [("14.9%", "failed"), ("15%", "passed"), ("15.1%", "passed")])
def test_a_budget_fails_above_its_limit_and_passes_at_it(limit, outcome):
    result = gate(f"input_wait<={limit}")
    assert (result.outcome, result.measured, result.limit) == (outcome, "15.0 %", f"<= {limit}")


NEEDS = [(metric.name, metric.sections) for metric in METRICS if metric.sections]


@pytest.mark.parametrize(("name", "sections"), NEEDS, ids=[name for name, _ in NEEDS])
def test_without_its_section_a_metric_is_unknown_and_not_zero(name, sections):
    report = sample()
    for slug in sections:
        report = without(report, slug)
    zero = f"{name}<=0"
    assert gate(zero).outcome == Outcome.FAILED
    result = gate(zero, report)
    assert (result.outcome, result.value, result.measured) == (Outcome.UNKNOWN, None, "not measured")
    assert "the report has no section" in result.why


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("class:allocation<=1%", "this capture does not show the class allocation"),
        ("launch.queue_p95_ns<=1ms", "no calls"),
        ("host.gpu_mean>=50%", "host.gpu_mean was not measured"),
        ("steps.nothing<=1", "section steps has no nothing here, but p95_ns, median_ns"),
        ("ranks.lost_ns<=1ms", "the report has no section ranks"),
        ("speedup>=1", "there is nothing to compare with"),
    ],
)
def test_what_was_not_measured_is_unknown_and_says_why(expression, why):
    result = gate(expression)
    assert result.outcome == Outcome.UNKNOWN
    assert result.why == why


def test_a_class_that_is_measured_in_part_is_unknown():
    report = sample()
    grids = (Facts(()), table("class share_of_step", ("copy_h2d", 0.1)))
    report = replace(without(report, "breakdown"), sections=(Section("breakdown", "", grids),))
    result = gate("exposed_copies<=50%", report)
    assert (result.outcome, result.why) == (Outcome.UNKNOWN, "this capture does not show the class copy_d2h")


def test_classes_by_other_rules_are_said_to_be_so():
    blocks = (Facts((Fact("basis", "", "xprof"),)), table("class share_of_step", ("infeed", 0.1)))
    report = sample(sections=(Section("breakdown", "", blocks),))
    assert gate("class:infeed<=10%", report).outcome == Outcome.PASSED
    assert (
        gate("input_wait<=10%", report).why == "this capture does not show the class input_wait by the rules of xprof"
    )


@pytest.mark.parametrize("verdict", ["possibly input-bound", "cannot judge", "not judged"])
def test_an_input_share_that_nobody_saw_is_unknown(verdict):
    facts = Facts((Fact("verdict", "", verdict), Fact("input_share", "", 0.0, "ratio")))
    result = gate("input_share<=5%", sample(sections=(Section("input_pipeline", "", (facts,)),)))
    assert (result.outcome, result.value) == (Outcome.UNKNOWN, None)
    assert verdict in result.why


def test_an_input_share_of_copies_alone_is_unknown():
    """If a wait for input would not show, a verdict of not input-bound is not known to a percent."""
    report = sample()
    blind = Section("breakdown", "", (table("class share_of_step", ("copy_h2d", 0.01)),))
    sections = tuple(blind if section.slug == "breakdown" else section for section in report.sections)
    result = gate("input_share<=50%", sample(sections=sections))
    assert (result.outcome, result.why) == (Outcome.UNKNOWN, "this capture does not show the class input_wait")
    assert gate("input_share<=50%", report).outcome == Outcome.PASSED


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("steps.source<=1", "steps.source cannot have a limit, as it is not a number"),
        ("steps.median_ns<=5%", "'5%' is not a limit for steps.median_ns"),
        ("api:cudamalloc<=5%", "Did you mean cudaMalloc?"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_an_error(expression, message):
    with pytest.raises(UsageError) as refused:
        gate(expression)
    assert message in str(refused.value)


def test_a_function_that_is_never_called_is_zero_and_said():
    result = gate("api:cudaMallocAsync<=1%")
    assert (result.outcome, result.why) == (Outcome.PASSED, "cudaMallocAsync is never called")


@pytest.mark.parametrize(
    ("expression", "outcome", "value", "why"),
    [
        ("quality:val_accuracy>=0.9", Outcome.PASSED, 0.91, ""),
        ("quality:Validation accuracy>=0.95", Outcome.FAILED, 0.91, ""),
        ("quality:loss<=1", Outcome.UNKNOWN, None, "its last value is no finite number"),
        ("quality:f1>=0.5", Outcome.UNKNOWN, None, "stated are: val_accuracy, loss"),
    ],
)
def test_a_figure_of_quality_is_limited_by_its_last_value(expression, outcome, value, why):
    stated = table("name label last", ("val_accuracy", "validation accuracy", 0.91), ("loss", "loss", None))
    result = gate(expression, sample(sections=(Section("quality", "", (stated,)),)))
    assert (result.outcome, result.value, result.why) == (outcome, value, why)


def test_several_runs_are_judged_by_their_mean_and_by_the_most_findings():
    other = sample(findings=(), sections=(Section("steps", "", (Facts((Fact("median_ns", "", 120, "ns"),)),)),))
    assert gate("step_median<=115ns", sample(), other).value == 115
    assert gate("findings_error<=0", sample(), other).value == 1
    assert gate("input_wait<=50%", sample(), other).outcome == Outcome.UNKNOWN


@pytest.mark.parametrize(("value", "shown"), [(0.15004, "15.004 %"), (0.15, "15.0 %"), (0.16, "16.0 %")])
def test_a_value_that_looks_like_the_limit_shows_more_digits(value, shown):
    blocks = (table("class share_of_step", ("input_wait", value)),)
    assert gate("input_wait<15%", sample(sections=(Section("breakdown", "", blocks),))).measured == shown


def test_a_time_that_looks_like_the_limit_shows_more_digits():
    blocks = (Facts((Fact("median_ns", "", 120_000_001, "ns"),)),)
    assert gate("step_median<=120ms", sample(sections=(Section("steps", "", blocks),))).measured == "120,000,001 ns"


# Findings


def fail_on(severity, *reports):
    (result,) = judge_gates(Gates(fail_on=severity), [Candidate(reports or (sample(),))])
    return result


@pytest.mark.parametrize(
    ("severity", "severities", "outcome"),
    [
        (Severity.WARNING, (), "passed"),
        (Severity.WARNING, (Severity.INFO,), "passed"),
        (Severity.WARNING, (Severity.WARNING,), "failed"),
        (Severity.WARNING, (Severity.ERROR,), "failed"),
        (Severity.ERROR, (Severity.WARNING,), "passed"),
        (Severity.ERROR, (Severity.ERROR,), "failed"),
    ],
)
def test_findings_fail_from_a_severity_on(severity, severities, outcome):
    report = sample(findings=tuple(finding(f"TV{n}", level) for n, level in enumerate(severities)))
    assert fail_on(severity, report).outcome == outcome


def test_findings_are_named():
    assert fail_on(Severity.WARNING).measured == "2 (TV1 slug-TV1, TV2 slug-TV2)"
    assert fail_on(Severity.ERROR, sample(findings=())).measured == "none"


@pytest.mark.parametrize("code", [VerdictCode.CANNOT_JUDGE, VerdictCode.PARTIAL])
def test_no_findings_where_nothing_could_be_judged_are_unknown(code):
    blind = Verdict(code, "Cannot judge: no steps.")
    result = fail_on(Severity.ERROR, sample(findings=(), verdict=blind))
    assert (result.outcome, result.why) == (Outcome.UNKNOWN, "Cannot judge: no steps.")
    assert fail_on(Severity.ERROR, sample(verdict=blind)).outcome == Outcome.FAILED
    assert gate("findings<=3", sample(verdict=blind)).outcome == Outcome.UNKNOWN
    assert gate("findings<=2", sample(verdict=blind)).outcome == Outcome.FAILED
    assert gate("findings>=3", sample(verdict=blind)).outcome == Outcome.PASSED
    assert gate("findings>=4", sample(verdict=blind)).outcome == Outcome.UNKNOWN


# Regressions


def regression(limit, judgement):
    (result,) = judge_gates(Gates(regression=limit), [Candidate((), judgement=judgement)])
    return result


def judged(outcome, new_ns, low=0.0, high=0.0):
    return Judgement(outcome, Effect(100.0, new_ns, low, high, 100.0, new_ns, runs=False))


@pytest.mark.parametrize(
    ("judgement", "outcome", "measured"),
    [
        (judged(Judged.SLOWER, 104.9, low=1.0), "passed", "+4.9 %, slower"),
        (judged(Judged.SLOWER, 104.998, low=1.0), "passed", "+4.998 %, slower"),
        (judged(Judged.SLOWER, 105.0, low=1.0), "failed", "+5.0 %, slower"),
        (judged(Judged.SLOWER, 200.0, low=1.0), "failed", "+100.0 %, slower"),
        (judged(Judged.NO_CHANGE, 107.0), "passed", "+7.0 %, no change"),
        (judged(Judged.NO_CHANGE, 107.0, low=1.0), "failed", "+7.0 %, slower"),
        (judged(Judged.FASTER, 50.0), "passed", "−50.0 %, faster"),
        (judged(Judged.UNKNOWN, 200.0), "unknown", "+100.0 %, cannot judge"),
        (Judgement(Judged.UNKNOWN, None, "new has no steps"), "unknown", "not compared, cannot judge"),
        (None, "unknown", "not compared, cannot judge"),
    ],
)
def test_a_regression_fails_where_steps_are_judged_slower_by_the_limit(judgement, outcome, measured):
    result = regression(0.05, judgement)
    assert (result.outcome, result.measured) == (outcome, measured)


def test_a_regression_that_cannot_be_judged_says_why():
    base, new = side("base", [100] * 20), side("new", [100] * 4)
    result = regression(0.05, judge(base, new, Limits()))
    assert (result.outcome, result.why) == (Outcome.UNKNOWN, "new has 4 steady steps, and 5 are needed")


def test_real_sides_fail_where_each_step_is_a_tenth_longer():
    base = side("base", [1_000_000] * 20)
    assert regression(0.05, judge(base, side("new", [1_100_000] * 20), Limits())).outcome == Outcome.FAILED
    assert regression(0.05, judge(base, base, Limits())).outcome == Outcome.PASSED


@pytest.mark.parametrize(("high", "remark"), [(4.0, ""), (5.0, "steps that are up to 5.0 % longer are not excluded")])
def test_no_change_whose_interval_reaches_the_limit_passes_and_says_so(high, remark):
    result = regression(0.05, judged(Judged.NO_CHANGE, 101.0, low=-3.0, high=high))
    assert result.outcome == Outcome.PASSED
    assert result.why.partition(";")[0] == remark


@pytest.mark.parametrize(
    ("judgement", "outcome"),
    [
        (judged(Judged.FASTER, 50.0), "passed"),
        (judged(Judged.FASTER, 90.0), "failed"),
        (judged(Judged.UNKNOWN, 50.0), "unknown"),
    ],
)
def test_a_speedup_is_asked_of_what_could_be_judged(judgement, outcome):
    assert gate("speedup>=1.5x", judgement=judgement).outcome == outcome


def test_gates_of_comparisons_are_refused_for_one_side():
    gates = Gates((Budget.parse("speedup>=1"),), regression=0.05)
    with pytest.raises(UsageError, match=r"fail-on-regression and speedup compare"):
        for_one_side(gates)
    assert for_one_side(Gates(fail_on=Severity.ERROR)) == Gates(fail_on=Severity.ERROR)


# Together

PASSING, FAILING, UNSEEN = "step_median<=1s", "input_wait<=5%", "class:allocation<=1%"


@pytest.mark.parametrize(
    ("budgets", "code"),
    [
        ((), 0),
        ((PASSING,), 0),
        ((PASSING, UNSEEN), 4),
        ((PASSING, FAILING), 1),
        ((UNSEEN, FAILING), 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst_and_failed_beats_unknown(budgets, code):
    results = judge_gates(Gates(tuple(map(Budget.parse, budgets))), [Candidate((sample(),))])
    assert exit_code(results) == code
    if code == 0:
        check(results)
        return
    with pytest.raises((GateFailedError, NoVerdictError)) as raised:
        check(results)
    assert raised.value.exit_code == code


def test_the_error_counts_gates_and_names_those_that_failed():
    results = judge_gates(Gates(tuple(map(Budget.parse, (PASSING, UNSEEN, FAILING)))), [Candidate((sample(),))])
    with pytest.raises(GateFailedError) as raised:
        check(results)
    assert raised.value.what == "1 of 3 gates failed, 1 cannot be judged."
    assert raised.value.why == "input_wait: 15.0 %, and the limit is <= 5%."


def test_the_section_shows_the_worst_first_and_survives_json():
    results = judge_gates(Gates(tuple(map(Budget.parse, (PASSING, UNSEEN, FAILING)))), [Candidate((sample(),))])
    report = add_gate_section(sample(), results)
    assert loads(dumps(report)) == report
    rows = loads(dumps(report)).rows("gates")
    assert [(row["gate"], row["outcome"]) for row in rows] == [
        ("input_wait", "failed"),
        ("class:allocation", "unknown"),
        ("step_median", "passed"),
    ]
    assert (rows[0]["limit_value"], rows[0]["measured_value"], rows[0]["unit"]) == (0.05, 0.15, "ratio")
    assert [report.fact("gates", key) for key in ("gates", "failed", "unknown", "passed")] == [3, 1, 1, 1]
    assert add_gate_section(sample(), ()) == sample()


def test_each_of_several_sides_has_to_pass_and_is_named():
    fine = sample(findings=())
    results = judge_gates(Gates(fail_on=Severity.ERROR), [Candidate((fine,), "a"), Candidate((sample(),), "b")])
    assert [(result.side, result.outcome) for result in results] == [("b", "failed"), ("a", "passed")]
    with pytest.raises(GateFailedError, match=r"b: findings: 1 \(TV2 slug-TV2\); no error is allowed"):
        check(results)


def test_classes_are_those_of_every_basis():
    keys = [c.key for c in (*host.CLASSES, *xprof_basis.CLASSES, *kineto_basis.CLASSES)]
    assert sorted(CLASS_KEYS) == sorted(set(keys))


def test_the_total_time_of_a_run_that_did_not_finish_is_unknown_and_the_gate_says_why():
    empty = Section("measures", "", (Facts((Fact("outcome", "", "timed-out"),)), table("key value", title="measures")))
    result = gate("total_time<=60s", replace(without(sample(), "measures"), sections=(empty,)))
    assert (result.outcome, result.value) == (Outcome.UNKNOWN, None)
    assert result.why == "the program was ended after its time limit"


def test_every_metric_is_documented_with_its_unit_and_meaning():
    page = (REPOSITORY / "docs" / "gates.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(metric.name, metric.unit, metric.meaning) for metric in METRICS]
