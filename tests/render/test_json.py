"""JSON keeps everything, has the names that scripts rely on, and reports the fault of a damaged document."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tests.render.report_strategies import REPORTS
from tests.render.sample_report import sample_report
from traceviz.core.errors import DamagedTraceError
from traceviz.render.json import dumps, loads
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import (
    Bar,
    Bars,
    Column,
    Fact,
    Grid,
    Lane,
    Level,
    Point,
    Report,
    Section,
    Series,
    Timeline,
    Verdict,
)
from traceviz.report.verdicts import VerdictCode
from traceviz.testing import HOSTILE_NAMES, hostile_report


@given(REPORTS)
@settings(max_examples=50)
def test_any_report_comes_back_equal(report):
    assert loads(dumps(report)) == report


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
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
    yield Report((Fact("k", "l", value, "number"),), Verdict(VerdictCode.NONE, ""))
    grid = Grid((Column("c", "C", "ratio"),), ((value,),))
    bars = Bars("", "", "ns", (Bar("", "", 1, value),))
    timeline = Timeline("", 0, 1, (Lane("", (value,)),))
    for block in (grid, bars, timeline):
        yield Report((), Verdict(VerdictCode.NONE, ""), (Section("s", "S", (block,)),))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", range(4))
def test_what_is_no_number_is_refused_in_each_of_four_places(value, place):
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(list(with_value(value))[place])


def test_an_integer_stays_an_integer_and_is_written_again_byte_for_byte():
    grid = Grid((Column("c", "C", "number"),), ((2**70,),), fold_below=0)
    series = Series("", "bytes", (Point("", 7),), (Level(0, 7),))
    text = dumps(Report((), Verdict(VerdictCode.NONE, ""), (Section("s", "S", (grid, series)),)))
    assert dumps(loads(text)) == text


def test_fields_that_are_not_known_are_passed_over():
    document = json.loads(dumps(sample_report()))
    document["more"] = {}
    document["findings"][0]["more"] = []
    document["sections"][3]["blocks"][1]["rows"][0]["more"] = [1]
    assert loads(json.dumps(document)) == sample_report()


def test_fields_that_older_reports_lack_have_their_defaults():
    document = json.loads(dumps(sample_report()))
    del document["skipped"][0]["tables"]
    assert loads(json.dumps(document)) == sample_report()


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
        ('{"schema": "traceviz.report/1"}', "missing required field"),
    ],
)
def test_what_is_no_report_says_why(text, says):
    with pytest.raises(DamagedTraceError, match=says):
        loads(text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("findings"), "missing required field `findings`"),
        (lambda d: d.update(notes=3), r"Expected `array`, got `int` - at `\$.notes`"),
        (lambda d: d.update(skipped=[3]), r"Expected `object`, got `int` - at `\$.skipped\[0\]`"),
        (lambda d: d.update(verdict=[]), r"Expected `object`, got `array` - at `\$.verdict`"),
        (lambda d: d["findings"][0].update(severity="bad"), r"'bad' - at `\$.findings\[0\].severity`"),
        (lambda d: d["findings"][0].update(cost_ns=1.5), r"Expected `int`, got `float` - at .*cost_ns"),
        (lambda d: d["findings"][0].update(cost_ns=1.0), r"Expected `int`, got `float` - at .*cost_ns"),
        (lambda d: d["findings"][0].update(cost_ns=True), r"Expected `int`, got `bool` - at .*cost_ns"),
        (lambda d: d["findings"][0].update(advice=[1]), r"Expected `str`, got `int` - at .*advice"),
        (lambda d: d["findings"][0].update(share="much"), r"got `str` - at .*share"),
        (lambda d: d["findings"][0].pop("share_of"), "missing required field `share_of`"),
        (lambda d: d["run_facts"][0].update(unit="s"), r"'s' - at `\$.run_facts\[0\].unit`"),
        (lambda d: d["run_facts"][0].update(unit=[]), r"Expected `str`, got `array` - at .*unit"),
        (lambda d: d["run_facts"][0].pop("unit"), "missing required field `unit`"),
        (lambda d: d["run_facts"][0].update(value={}), r"got `object` - at `\$.run_facts\[0\].value`"),
        (lambda d: d["sections"][0].update(title=None), r"Expected `str`, got `null` - at `\$.sections\[0\].title`"),
        (lambda d: d["sections"][0]["blocks"][0].update(type="chart"), r"'chart' - at .*blocks\[0\].type`"),
        (lambda d: d["sections"][3]["blocks"][1]["rows"][0].pop("calls"), "lacks the column 'calls'"),
        (lambda d: d["sections"][3]["blocks"][1]["rows"][0].update(calls=[]), "got `array`"),
        (lambda d: d["sections"][3]["blocks"][1]["columns"][0].update(bar=1), r"Expected `bool`, got `int` - at .*bar"),
        (lambda d: d["sections"][3]["blocks"][1].update(audience="me"), r"'me' - at .*audience"),
        (lambda d: d["sections"][3]["blocks"][1].update(fold_below=None), r"got `null` - at .*fold_below"),
        (lambda d: d["sections"][3]["blocks"][1]["columns"][0].update(name="calls"), "same name"),
    ],
)
def test_a_damaged_document_names_the_field(change, says):
    with pytest.raises(DamagedTraceError, match=says):
        loads(damaged(change))


def test_the_text_is_that_of_the_standard_library_with_1_space_and_numbers_of_numpy_are_numbers():
    report = replace(sample_report(), run=(Fact("span_ns", "span", np.float64(1e-7)), Fact("half", "half", "\ud800")))
    for one in (report, replace(report, run=report.run[:1])):
        text = dumps(one)
        assert text == json.dumps(json.loads(text), indent=1) + "\n"
        assert json.loads(text)["run"]["span_ns"] == 1e-7


def test_what_is_no_value_of_a_report_is_refused():
    with pytest.raises(TypeError, match="int64 is no value of a report"):
        dumps(replace(sample_report(), run=(Fact("calls", "calls", np.int64(3)),)))  # type: ignore[arg-type]
