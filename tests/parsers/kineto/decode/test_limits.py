"""Memory for a Chrome-format trace: a text that no profiler writes is refused before it is allocated."""

import gzip
import json
from pathlib import Path

import pytest

from tests.parsers.kineto import files as k
from tests.support.measured import measured
from traceviz.parsers.kineto.decode import document

pytestmark = pytest.mark.process

MEGABYTE = 2**20


def packed(path: Path, head: bytes, repeated: bytes, times: int, tail: bytes) -> Path:
    """Return a gzip file of several members, one of them ``times`` times: a long text, written at once."""
    path.write_bytes(gzip.compress(head) + gzip.compress(repeated) * times + gzip.compress(tail))
    return path


@pytest.mark.parametrize("scanner", ["compiled", pytest.param("msgspec", marks=pytest.mark.slow)])
def test_a_gzip_file_of_one_huge_text_is_refused_within_300_megabytes(tmp_path, scanner):
    head = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "'
    path = packed(tmp_path / "a.json.gz", head, b"a" * MEGABYTE, 1000, b'"}]}')
    assert path.stat().st_size < 3 * MEGABYTE
    done = measured("report", path, env={"TRACEVIZ_SCANNER": scanner})
    assert (done.code, done.err.count("\n")) == (3, 3)
    assert "holds one value of more than 50.0 MB." in done.err
    assert done.peak_bytes < 300 * 10**6


def test_the_json_of_tensorflow_with_one_huge_text_is_refused_within_300_megabytes(tmp_path):
    head = b'{"displayTimeUnit": "ns", "traceEvents": [{"ph": "X", "name": "'
    path = packed(tmp_path / "a.trace.json.gz", head, b"a" * MEGABYTE, 900, b'"}]}')
    done = measured("report", path, "--reader", "tf-trace-json")
    assert (done.code, "holds one value of more than 50.0 MB." in done.err) == (3, True)
    assert done.peak_bytes < 300 * 10**6


def test_of_members_beside_the_events_so_much_is_read_and_the_rest_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "HEADER_BYTES", 100)
    path = tmp_path / "a.json"
    members = {"a": "x" * 60, "b": [{}] * 30, "c": 5, "traceEvents": [k.op("f", 0, 5)], "d": [1] * 40, "e": 6}
    path.write_text(json.dumps(members))
    raw = document.decode(path)
    assert raw.header == {"a": "x" * 60, "c": 5, "e": 6}
    assert list(raw.repaired.values()) == [2]
    assert raw.events.height == 1
    assert raw.damage == ""
