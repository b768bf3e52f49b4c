"""A limit is read as it is written, or refused with what to write instead."""

import pytest

from traceviz.core.errors import UsageError
from traceviz.gates.budgets import Budget, parse_share
from traceviz.gates.gates import gates_from_toml
from traceviz.gates.metrics import METRICS, metric
from traceviz.report import Severity


@pytest.mark.parametrize(
    ("text", "unit", "limit"),
    [
        ("input_wait<=5%", "ratio", 0.05),
        ("input_wait <= 0.05", "ratio", 0.05),
        ("input_wait≤7 %", "ratio", 0.07),
        ("input_wait<0.1%", "ratio", 0.001),
        ("input_wait<=1", "ratio", 1.0),
        ("input_wait<=150%", "ratio", 1.5),
        ("step_median<=120ms", "ns", 120_000_000),
        ("step_median<=.5s", "ns", 500_000_000),
        ("step_median>1.5us", "ns", 1_500),
        ("step_median>1.5µs", "ns", 1_500),
        ("step_median>1.5μs", "ns", 1_500),
        ("step_median<=0", "ns", 0),
        ("step_median<=1e3ms", "ns", 1_000_000_000),
        ("peak_memory<=8GB", "bytes", 8_000_000_000),
        ("peak_memory<=8GiB", "bytes", 8_589_934_592),
        ("host_rss<=500kB", "bytes", 500_000),
        ("host_threads<=64", "count", 64),
        ("speedup>=1.1x", "factor", 1.1),
        ("speedup>=1.1", "factor", 1.1),
        ("copies.bandwidth>=10GB/s", "bytes/s", 10_000_000_000),
        ("launch.launches_per_step<=2.5", "number", 2.5),
        ("total_time<=1.5min", "ns", 90_000_000_000),
        ("total_time<=2h", "ns", 7_200_000_000_000),
        ("energy<=5kJ", "joule", 5_000),
        ("energy<=2Wh", "joule", 7_200),
        ("samples_per_second>=100/s", "per_second", 100),
        ("samples_per_second>=100", "per_second", 100),
    ],
)
def test_a_limit_is_in_the_base_unit_of_its_metric(text, unit, limit):
    assert Budget.parse(text).limit(unit) == limit


@pytest.mark.parametrize(
    ("relation", "held"),
    [
        ("<=", (True, True, False)),
        ("<", (True, False, False)),
        (">=", (False, True, True)),
        (">", (False, False, True)),
    ],
)
def test_the_limit_itself_belongs_to_what_is_written_with_an_equals_sign(relation, held):
    budget = Budget.parse(f"step_median{relation}100ns")
    assert tuple(budget.holds(value, "ns") for value in (99, 100, 101)) == held
    assert budget.is_upper == (relation in {"<=", "<"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input_wait", "Quote it"),
        ("", "not a budget"),
        ("<=5%", "not a budget"),
        ("input_wait=5%", "not a budget"),
        ("1%<input_wait<=5%", "not a budget"),
        ("inputwait<=5%", "Did you mean input_wait?"),
        ("allocation<=5%", "Did you mean class:allocation?"),
        ("class:alocation<=5%", "Did you mean class:allocation?"),
        ("api:<=5%", "There is no metric 'api:'"),
        ("input_wait<=5", "5%, or 0.05"),
        ("input_wait<=-5%", "'-5%' is not a limit"),
        ("input_wait<=5ms", "'5ms' is not a limit"),
        ("input_wait<=", "'' is not a limit"),
        ("input_wait<=nan", "'nan' is not a limit"),
        ("step_median<=120", "120ms"),
        ("step_median<=1,5ms", "'1,5ms' is not a limit"),
        ("step_median<=1e999s", "'1e999s' is not a limit"),
        ("step_median<=5 parsecs", "'5 parsecs' is not a limit"),
        ("peak_memory<=8", "8GB"),
        ("host_threads<=5%", "'5%' is not a limit"),
        ("launch.queue_p95_ns<=soon", "'soon' is not a limit"),
    ],
)
def test_what_is_no_budget_is_refused_with_what_to_write(text, message):
    with pytest.raises(UsageError) as refused:
        Budget.parse(text)
    assert message in str(refused.value)


def test_an_unknown_metric_lists_all_that_exist():
    with pytest.raises(UsageError) as refused:
        metric("nonsense")
    assert len(METRICS) == 33
    assert [known.name for known in METRICS if f" {known.name}," not in str(refused.value)] == []
    assert "SECTION.FACT" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "share"), [("5%", 0.05), (" 0.05 ", 0.05), ("0", 0.0), ("200%", 2.0), ("1.5 %", 0.015)]
)
def test_a_share_is_read(text, share):
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["5", "-5%", "", "5ms", "%", "five", "1e999%"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(UsageError, match=r"5%, or 0\.05"):
        parse_share(text)


FILE = """
[gates]
fail-on = "warning"
fail-on-regression = "2.5%"

[budgets]
input_wait = "<=5%"
step_median = [">=50ms", "<120ms"]
"class:allocation" = "<= 1%"
launch.queue_p95_ns = "<=1ms"
"""


def test_a_file_says_the_same_as_options():
    gates = gates_from_toml(FILE)
    assert [(budget.metric.name, budget.limit_text) for budget in gates.budgets] == [
        ("input_wait", "<= 5%"),
        ("step_median", ">= 50ms"),
        ("step_median", "< 120ms"),
        ("class:allocation", "<= 1%"),
        ("launch.queue_p95_ns", "<= 1ms"),
    ]
    assert (gates.fail_on, gates.regression) == (Severity.WARNING, 0.025)
    assert gates.sections == {"breakdown", "steps", "launch"}


@pytest.mark.parametrize("text", ["", "[budgets]\n", "[gates]\n[budgets]\n", "# limits are to come\n"])
def test_a_file_that_asks_for_no_gate_is_refused_rather_than_passed(text):
    with pytest.raises(UsageError, match=r"b\.toml sets no gate"):
        gates_from_toml(text, "b.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[budgets", "b.toml is not TOML"),
        ("[budget]\ninput_wait = '<=5%'", "unknown table 'budget'"),
        ("budgets = 3", "should be a table"),
        ("[gates]\nfail_on = 'error'", "unknown key 'fail_on'"),
        ("[gates]\nfail-on = 'info'", "fail-on of b.toml is 'info'"),
        ("[gates]\nfail-on = ['error']", "fail-on of b.toml is ['error']"),
        ("[gates]\nfail-on-regression = 5", 'should be a text such as "5%", but is 5'),
        ("[gates]\nfail-on-regression = '5'", "'5' is not a share"),
        ("[budgets]\ninput_wait = 5", 'should be a text such as "<=5%", but is 5'),
        ("[budgets]\ninput_wait = '5%'", "should be a text such as \"<=5%\", but is '5%'"),
        ("[budgets]\ninputwait = '<=5%'", "Did you mean input_wait?"),
        ("[budgets.a.b]\nc = '<=5%'", "should be a text"),
    ],
)
def test_a_file_that_says_something_else_is_refused(text, message):
    with pytest.raises(UsageError) as refused:
        gates_from_toml(text, "b.toml")
    assert message in str(refused.value)


def test_the_command_line_wins_over_the_file_for_the_same_metric_and_direction():
    gates = gates_from_toml("[budgets]\nstep_median = '<=200ms'\n[gates]\nfail-on = 'error'")
    merged = gates.over(gates_from_toml(FILE))
    assert [(budget.metric.name, budget.limit_text) for budget in merged.budgets] == [
        ("input_wait", "<= 5%"),
        ("step_median", ">= 50ms"),
        ("class:allocation", "<= 1%"),
        ("launch.queue_p95_ns", "<= 1ms"),
        ("step_median", "<= 200ms"),
    ]
    assert (merged.fail_on, merged.regression) == (Severity.ERROR, 0.025)
