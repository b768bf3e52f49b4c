"""A capture that is scanned before its tables are asked for, and whose groups another thread forms."""

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.shared.prefetch import background
from traceviz.parsers.xplane import tables
from traceviz.parsers.xplane.readers import XPlaneReader

SAMPLES = sorted((REPOSITORY / "sample_traces").rglob("*.xplane.pb"))


@pytest.fixture(autouse=True)
def beside(monkeypatch):
    monkeypatch.setattr(background, "_cores", lambda: 2)
    monkeypatch.setattr(tables, "_MANY_EVENTS", 1)


def read(reader, path):
    return dict(reader.tables(path, ReadOptions()))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_tables_are_the_same_whether_one_thread_reads_or_three(path, monkeypatch):
    by_three = read(XPlaneReader().reading_ahead(path), path)
    monkeypatch.setattr(background, "_cores", lambda: 1)
    by_one = read(XPlaneReader(), path)
    assert by_three == by_one
    assert by_one["run"].num_rows == 1


def test_what_was_begun_counts_for_1_reading(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(SAMPLES[0].read_bytes())
    reader = XPlaneReader().reading_ahead(path)
    assert read(reader, path)["run"].num_rows == 1
    path.write_bytes(b"")
    with pytest.raises(DamagedTraceError, match="is empty"):
        read(reader, path)


def test_a_file_that_is_no_profile_is_an_error_once_tables_are_asked_for(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(b"no profile at all")
    reader = XPlaneReader().reading_ahead(path)
    with pytest.raises(DamagedTraceError, match="not a profile that can be read"):
        read(reader, path)


def test_a_folder_is_not_begun(tmp_path):
    reader = XPlaneReader()
    assert reader.reading_ahead(tmp_path) is reader


@pytest.mark.parametrize(("max_memory", "begun"), [(None, 1), (10**12, 0)])
def test_a_report_on_a_large_file_begins_with_scanning_it_unless_memory_is_bounded(monkeypatch, max_memory, begun):
    paths = []
    monkeypatch.setattr(api, "_LARGE", 1)
    monkeypatch.setattr(XPlaneReader, "reading_ahead", lambda reader, path: paths.append(path) or reader)
    assert api.report_on(SAMPLES[0], sections=["steps"], max_memory=max_memory).sections
    assert len(paths) == begun


@pytest.mark.process
def test_scanning_loads_neither_pyarrow_nor_polars():
    code = (
        "import sys, traceviz.parsers.xplane.content as content\n"
        f"from pathlib import Path; assert content.read_file(Path({str(SAMPLES[0])!r})).planes\n"
        "sys.exit(len({'pyarrow', 'polars'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
