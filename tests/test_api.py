"""Options for reading: one value for every function, and the keywords of before it."""

import pytest

import traceviz
from traceviz import api
from traceviz.core.errors import UsageError


def test_keywords_of_before_are_taken_with_a_warning_that_names_their_replacement(samples):
    path = samples / "synthetic" / "input_bound.sqlite"
    with pytest.warns(DeprecationWarning, match=r"read=traceviz\.ReadOptions\(reader=\.\.\., cache=\.\.\.\)") as caught:
        report = traceviz.report_on(path, reader="nsys-sqlite", cache=False)
    assert [warning.filename for warning in caught] == [__file__]
    assert report == traceviz.report_on(path, read=traceviz.ReadOptions(reader="nsys-sqlite", cache=False))


def test_a_keyword_overrides_the_field_of_the_value(samples):
    with pytest.warns(DeprecationWarning, match="reader"), pytest.raises(UsageError, match="no reader 'none'"):
        api.open_trace(
            samples / "synthetic" / "input_bound.sqlite", read=api.ReadOptions(reader="xplane"), reader="none"
        )


def test_a_keyword_that_never_was_is_a_type_error():
    with pytest.raises(TypeError, match="'readers'"):
        api.report_on("x", readers="none")


def test_every_function_that_reads_takes_the_value(samples, tmp_path):
    path = samples / "synthetic" / "input_bound.sqlite"
    stages = []
    read = api.ReadOptions(progress=lambda stage, done, total: stages.append(stage))
    calls = (
        lambda: api.open_trace(path, read=read),
        lambda: api.convert(path, tmp_path / "tables", read=read),
        lambda: api.analyze(path, read=read, options=api.AnalysisOptions()),
        lambda: api.pictured(path, events=0, read=read),
        lambda: api.compare(path, path, read=read),
        lambda: api.flame_differences(path, path, read=read),
    )
    for number, call in enumerate(calls):
        stages.clear()
        call()
        assert stages, number


def test_tables_that_were_read_take_no_options_for_reading(samples):
    tables = traceviz.open(samples / "synthetic" / "input_bound.sqlite")
    with pytest.raises(UsageError, match=r"Give it to traceviz\.open"):
        traceviz.analyze(tables, read=traceviz.ReadOptions())
