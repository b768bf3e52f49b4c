"""JSON keeps everything, has the names that scripts rely on, and says what is wrong with a damaged document."""

import json

import pytest
from hypothesis import given, settings

from tests.render.report_strategies import HOSTILE, REPORTS, hostile_report
from tests.render.sample_report import sample_report
from traceviz.errors import DamagedTraceError
from traceviz.render.json import dumps, loads
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import Bar, Bars, Column, Fact, Grid, Lane, Report, Section, Timeline, Verdict


@given(REPORTS)
@settings(max_examples=200, deadline=None)
def test_any_report_comes_back_equal(report):
    assert loads(dumps(report)) == report


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:20]))
def test_hostile_names_come_back_equal_and_the_document_is_ascii(name):
    text = dumps(hostile_report(name))
    assert text.isascii()
    assert loads(text) == hostile_report(name)


def test_scripts_find_the_names_they_rely_on():
    document = json.loads(renderer("json").render(sample_report(), RenderOptions(top=1)))
    assert document["schema"] == "traceviz.report/1"
    assert document["verdict"]["code"] == "input-bound-high"
    assert document["run"]["span_ns"] == 24_117_403_889
    api = next(section for section in document["sections"] if section["slug"] == "cuda_api")
    assert api["blocks"][0]["facts"][1] == {"key": "calls", "label": "calls", "value": 104_039, "unit": "count"}
    assert api["blocks"][1]["columns"][3] == {
        "name": "total_ns",
        "label": "Total",
        "unit": "ns",
        "importance": 0,
        "bar": False,
    }
    assert len(api["blocks"][1]["rows"]) == 13
    assert api["blocks"][1]["rows"][1]["calls"] == 91_884
    assert document["findings"][0]["cost_ns"] == 7_404_000_000
    reason = "the capture has no collective kernels"
    assert document["skipped"] == [{"slug": "communication", "reason": reason, "tables": []}]


def with_value(value):
    yield Report((Fact("k", "l", value, "number"),), Verdict("", ""))
    grid = Grid((Column("c", "C", "ratio"),), ((value,),))
    bars = Bars("", "", "ns", (Bar("", "", 1, value),))
    timeline = Timeline("", 0, 1, (Lane("", (value,)),))
    for block in (grid, bars, timeline):
        yield Report((), Verdict("", ""), (Section("s", "S", (block,)),))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", range(4))
def test_what_is_no_number_is_refused_in_each_of_four_places(value, place):
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(list(with_value(value))[place])


def damaged(change):
    document = json.loads(dumps(sample_report()))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a JSON report"),
        ("{", "not a JSON report"),
        ("[" * 100_000, "not a JSON report"),
        ('{"schema": NaN}', "NaN is not a JSON number"),
        ("[1]", "names no schema"),
        ("{}", "names no schema"),
        ('{"schema": "traceviz.report/2"}', "It is of traceviz.report/2, another version"),
        ('{"schema": "traceviz.report/1"}', "'verdict' is missing"),
    ],
)
def test_what_is_no_report_says_why(text, says):
    with pytest.raises(DamagedTraceError, match=says):
        loads(text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("findings"), "'findings' is missing"),
        (lambda d: d.update(notes=3), "'notes' should be a list, and is 3"),
        (lambda d: d.update(skipped=[3]), "'skipped' should be a list of objects"),
        (lambda d: d.update(verdict=[]), "'verdict' should be an object"),
        (lambda d: d["findings"][0].update(severity="bad"), "one of info, warning, error, and is 'bad'"),
        (lambda d: d["findings"][0].update(cost_ns=1.5), "'cost_ns' should be an integer, and is 1.5"),
        (lambda d: d["findings"][0].update(cost_ns=True), "'cost_ns' should be an integer, and is True"),
        (lambda d: d["findings"][0].update(advice=[1]), "'advice' should be a list of texts"),
        (lambda d: d["findings"][0].update(share="much"), "'share' should be a number or null"),
        (lambda d: d["run_facts"][0].update(unit="s"), "'unit' should be one of ns, bytes"),
        (lambda d: d["run_facts"][0].update(unit=[]), "'unit' should be one of ns, bytes"),
        (lambda d: d["run_facts"][0].update(value={}), "'value' should be a number, text"),
        (lambda d: d["sections"][0].update(title=None), "'title' should be a text, and is None"),
        (lambda d: d["sections"][0]["blocks"][0].update(type="chart"), "unknown type 'chart'"),
        (lambda d: d["sections"][3]["blocks"][1]["rows"][0].pop("calls"), "'calls' is missing"),
        (lambda d: d["sections"][3]["blocks"][1]["columns"][0].update(bar=1), "'bar' should be true or false"),
        (lambda d: d["sections"][3]["blocks"][1].update(audience="me"), "'audience' should be all or machine"),
        (lambda d: d["sections"][3]["blocks"][1].update(fold_below=None), "'fold_below' should be a number"),
        (lambda d: d["sections"][3]["blocks"][1]["columns"][0].update(name="calls"), "same name"),
    ],
)
def test_a_damaged_document_names_the_field(change, says):
    with pytest.raises(DamagedTraceError, match=says):
        loads(damaged(change))
