"""Captures that break their format are read as far as they are intact, and losses are noted; never a crash."""

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.xplane.files import chunk, event, line, plane, space
from tests.parsers.xplane.traces import US, environment, host, notes, tables_of, training
from traceviz.core.errors import TracevizError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.registry import identify
from traceviz.parsers.xplane.decode.wire import read_fields
from traceviz.trace.schema import DEVICE_WORK
from traceviz.trace.tables import TraceTables

WHOLE = training(4)
ENDS = {end for *_, end in read_fields(WHOLE, 0, len(WHOLE))}
"""Lengths at which planes end: a file that is cut off there looks whole."""


def outcome(path, content):
    """Return tables of a capture, or the error that it ends with."""
    path.write_bytes(content)
    try:
        return TraceTables(dict(identify(path).read(path, ReadRequest())))
    except TracevizError as error:
        return error


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The folder for captures."""
    return tmp_path_factory.mktemp("damage") / "host.xplane.pb"


@given(st.integers(0, len(WHOLE) - 1))
def test_a_capture_cut_off_anywhere_is_read_so_far_or_refused_in_words(path, length):
    result = outcome(path, WHOLE[:length])
    if isinstance(result, TracevizError):
        assert result.why
        assert length < 16  # so early that no plane has a name yet
        return
    assert result.rows("host_ops") + result.rows("cuda_api") <= 20
    assert sum(result.rows(table) for table in DEVICE_WORK) <= 8
    assert length in ENDS or notes(result)["damaged"][0] == "warning"


@given(st.integers(0, 2**32))
def test_a_capture_with_bytes_changed_never_crashes(path, seed):
    chance = random.Random(seed)
    content = bytearray(WHOLE)
    for _ in range(chance.randint(1, 12)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    result = outcome(path, bytes(content))
    assert isinstance(result, TracevizError) or result.rows("run") == 1


def test_a_compressed_capture_that_is_cut_off_says_so(path):
    packed = gzip.compress(WHOLE, mtime=0)
    result = outcome(path, packed[: len(packed) * 3 // 4])
    assert "gzip file is cut short" in str([row["message"] for row in result.arrow("notes").to_pylist()])
    assert 0 < result.rows("host_ops") <= 12


def test_names_that_are_not_utf8_are_replaced(tmp_path):
    tables = tables_of(tmp_path, space(plane("/host:CPU", line(1, event("op\udcff\udcfe", 0, US)))))
    assert tables.arrow("host_ops")["name"].to_pylist() == ["op\ufffd\ufffd"]


def test_events_without_metadata_have_their_number_for_a_name(tmp_path):
    tables = tables_of(tmp_path, space(host(line(1, event(77, 0, US, {99: 5})))))
    assert tables.arrow("host_ops")["name"].to_pylist() == ["event 77"]
    assert tables.arrow("op_args")["key"].to_pylist() == ["stat 99"]


def test_a_message_that_is_no_plane_after_the_first_is_noted(tmp_path):
    content = space(host(line(1, event("a", 0, US)))) + chunk(1, b"\xff\xff\xff")
    tables = tables_of(tmp_path, content)
    assert tables.rows("host_ops") == 1
    assert notes(tables)["damaged"][0] == "warning"


def test_a_capture_of_no_events_has_no_span(tmp_path):
    tables = tables_of(tmp_path, space(environment()))
    assert tables.run_facts()["span_ns"] == 0
    assert tables.rows("threads") == 0
