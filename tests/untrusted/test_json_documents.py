"""Untrusted JSON: bounds on size, depth, values and numbers, and what the parser lets through."""

import ast
import math
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import REPOSITORY
from tests.support.command import run
from traceviz.parsers.registry import READERS
from traceviz.untrusted.json_documents import (
    MOST_BYTES,
    MOST_DEPTH,
    JsonError,
    document_of,
    object_of,
    read_document,
    read_object,
    value_of,
)

DEEP = b"[" * 200_000 + b"]" * 200_000


def nested(depth):
    return "[" * depth + "]" * depth


def test_a_document_is_what_the_text_says():
    text = '\ufeff{"a": [1, -2.5, true, null, "\\u00e9\\ud83d\\ude00"], "b": {}}'
    assert document_of(text.encode()) == {"a": [1, -2.5, True, None, "é😀"], "b": {}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (DEEP, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (nested(MOST_DEPTH), "nested too deeply"),
        (b'{"a": 1, "b": 2, "a": 3}', "has the key 'a' twice"),
        (b'"\xff"', "not UTF-8: invalid start byte at byte 1"),
        (b'{"a": ', "Expecting value"),
        (b'"a\nb"', "control character"),
        (b"", "Expecting value"),
        (b"[]" + b" " * MOST_BYTES, "longer than 16 MiB"),
        (b"[" + b"[],[]," * (MOST_BYTES // 8) + b"0]", "more than 2,000,000 values"),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else value[:20],
)
def test_what_is_no_document_says_why(text, why):
    with pytest.raises(JsonError, match=why):
        document_of(text)
    assert object_of(text) == {}


def test_the_deepest_and_longest_that_is_let_through():
    assert document_of(nested(MOST_DEPTH - 1))
    assert document_of("9" * 308) == 10**308 - 1
    assert document_of(f'"{"x" * (MOST_BYTES - 2)}"') == "x" * (MOST_BYTES - 2)


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 309, "-" + "9" * 10_000], ids=len
)
def test_numbers_that_json_does_not_have_are_nothing_or_refused(text):
    def refuse(name):
        raise ValueError(f"{name} is no number")

    assert document_of(f"[{text}]") == [None]
    with pytest.raises(JsonError, match="is no number"):
        document_of(text, constant=refuse)


def test_half_of_a_surrogate_pair_is_replaced_in_keys_and_values():
    assert document_of(rb'{"a\ud800": ["\uDFFF\u0041", {"b": "\\ud800"}]}') == {
        "a\ufffd": ["\ufffdA", {"b": "\\ud800"}]
    }


def test_reports_keep_the_texts_of_their_trace():
    assert document_of(r'"\ud800"', keep_halves=True) == "\ud800"


def test_a_value_of_a_trace_may_be_careless_but_not_deep():
    assert value_of('{"a": "b\tc", "a": NaN}').keys() == {"a"}
    assert math.isnan(value_of("NaN"))
    for text in (DEEP.decode(), "9" * 10_000):
        with pytest.raises(JsonError):
            value_of(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=20)
@given(_VALUES)
def test_texts_of_a_document_can_be_written_again(value):
    import json

    document = document_of(json.dumps(value))
    assert json.dumps(document, ensure_ascii=False).encode()


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ud80019eE.-NaIf \n', max_size=60).map(str.encode))
def test_whatever_the_bytes_there_is_an_object_or_none(content):
    assert isinstance(object_of(content), dict)


def test_a_file_is_read_no_further_than_its_bound(tmp_path):
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(1 << 40)  # a hole: a terabyte
    with pytest.raises(JsonError, match="longer than 16 MiB"):
        read_document(tmp_path / "a.json")
    assert read_object(tmp_path / "a.json") == {}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path), lambda _: None])
def test_what_is_no_file_holds_no_document(tmp_path, make):
    make(tmp_path / "a.json")
    with pytest.raises((JsonError, OSError)):
        read_document(tmp_path / "a.json")
    assert read_object(tmp_path / "a.json") == {}


@pytest.mark.parametrize("name", ["manifest.json", "resources.json", "scrubbed.json", "archive.json", "status.json"])
@pytest.mark.parametrize("content", [DEEP, b'{"kind": ' * 5_000, b"\xff\xfe", b"9" * 10_000])
def test_no_sniffer_fails_on_a_folder_with_hostile_json(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert {reader.sniff(b"", tmp_path).name for reader in READERS} == {"NO"}


@pytest.mark.process
@pytest.mark.parametrize("words", [("report",), ("doctor",), ("scrub", "-o", "out"), ("convert", "-o", "out")])
def test_a_folder_with_a_deep_manifest_is_refused_in_words(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_bytes(DEEP)
    done = run(words[0], tmp_path / "run", *words[1:])
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    assert "run" in done.stderr


@pytest.mark.process
def test_an_archive_with_a_deep_marker_is_damaged(tmp_path):
    (tmp_path / "archive.json").write_bytes(DEEP)
    done = run("archive", "list", tmp_path)
    assert (done.returncode, "cannot be read.\n  it is nested too deeply." in done.stderr) == (3, True)


ELSEWHERE = {
    "collectors/inject/traceviz_inject/config.py": 1,  # rides in the program, and reads what we wrote for it
    "collectors/pyspy/convert.py": 1,  # events of a list of any length, one at a time
    "traceviz/archive/query/guard.py": 1,  # what DuckDB makes of a query
    "traceviz/untrusted/json_documents.py": 2,
}
"""Files that parse JSON themselves, and in how many places."""


_PARSERS = re.compile(r"from (?:json|orjson|msgspec\.json) import|json\.(?:loads?|JSONDecoder|decode)\b")


def test_json_is_parsed_in_one_place():
    """Another place would have no bounds. ``msgspec.json.Decoder`` decodes events, typed and as deep as their type."""
    found = {}
    for folder in ("traceviz", "parsers", "collectors"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            count = sum(map(_parses_json, ast.walk(ast.parse(text)))) if _PARSERS.search(text) else 0
            if count:
                found[path.relative_to(REPOSITORY).as_posix()] = count
    assert found == ELSEWHERE


def _parses_json(node):
    if isinstance(node, ast.ImportFrom):
        return node.module in {"json", "orjson", "msgspec.json"}
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = ast.unparse(node.func.value)
    names = {"json": {"load", "loads", "JSONDecoder"}, "msgspec.json": {"decode"}, "orjson": {"loads"}}
    return node.func.attr in names.get(owner, set())
