"""Decoding of Chrome-format traces: exact times, all spellings, every layout, equal with both scanners."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.kineto.texts import (
    BOTH,
    EVENTS,
    LAYOUTS,
    NUMBERS,
    SCALARS,
    SCANNERS,
    column,
    event,
    needs_compiled,
    plain,
    reading,
    same,
)
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.kineto.decode.compiled import CompiledScanner
from traceviz.parsers.kineto.decode.document import available_scanner, decode
from traceviz.parsers.kineto.raw import ARGUMENTS, PHASES
from traceviz.parsers.shared.arrays.native import SCANNER_VARIABLE

pytestmark = pytest.mark.process


@pytest.fixture(params=SCANNERS)
def read(request, tmp_path):
    """Decode a text with each of the scanners."""
    return reading(tmp_path / "trace.json", request.param)


def of_argument(read, key: str, value: object, name: str) -> tuple[object, dict[str, int]]:
    """Return the result for one argument given as JSON text."""
    text = f'[{{"ph": "X", "name": "k", "ts": 1, "args": {{{json.dumps(key)}: {value}}}}}]'
    trace = read(text)
    return column(trace, name)[0], trace.repaired


def of_time(read, value: str) -> tuple[list[object], dict[str, int]]:
    trace = read(f'[{{"ph": "X", "name": "k", "ts": {value}}}]')
    return column(trace, "start_ns"), trace.unusable


# The file -------------------------------------------------------------------------------------------------------------


def test_members_before_and_after_the_events_become_the_header(read):
    text = f'{{"schemaVersion": 1, "traceEvents": [{json.dumps(event())}], "distributedInfo": {{"rank": 3}}}}'
    trace = read(text)
    assert trace.header == {"schemaVersion": 1, "distributedInfo": {"rank": 3}}
    assert (trace.events.height, trace.damage) == (1, "")


def test_a_device_list_longer_than_the_head_of_the_file_is_read_before_the_events(read):
    devices = [{"id": number, "name": "NVIDIA H100 80GB HBM3"} for number in range(4_000)]
    text = json.dumps({"deviceProperties": devices, "traceEvents": [event()]})
    trace = read(text, block_bytes=4096)
    assert (len(trace.header["deviceProperties"]), trace.events.height) == (4_000, 1)


def test_two_lists_of_events_are_read_one_after_the_other(read):
    one, two = json.dumps(event(name="first")), json.dumps(event(name="second"))
    trace = read(f'{{"traceEvents": [{one}], "a": 1, "traceEvents": [{two}]}}')
    assert column(trace, "name") == ["first", "second"]


def test_an_empty_object_and_a_comma_may_end_the_list(read):
    trace = read(f"[{json.dumps(event())}, {{}},]")
    assert (trace.events.height, trace.damage, trace.unusable, trace.passed_over) == (1, "", {}, {})


def test_elements_that_are_no_objects_are_counted(read):
    trace = read(f'[null, 3, {json.dumps(event())}, "text", [{{}}], NaN]')
    assert (trace.events.height, trace.unusable) == (1, {"that are no objects": 5})


def test_a_byte_order_mark_is_passed_over_and_a_bare_list_has_no_header(read):
    trace = read(b"\xef\xbb\xbf" + json.dumps([event()]).encode())
    assert (trace.header, trace.events.height, trace.damage) == ({}, 1, "")


def test_a_list_without_events_is_a_trace_without_events(read):
    trace = read('{"traceEvents": []}')
    assert (trace.events.height, trace.events.columns[:2], trace.damage) == (0, ["phase", "name"], "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nodes": [1], "edges": []}', "it has no list traceEvents. It holds nodes, edges"),
        ('{"traceEvents": {"a": 1}}', "it has no list traceEvents"),
        ("{}", "It holds no member"),
        ("# a text", "is no JSON"),
        ("", "is no JSON"),
        ("   ", "is no JSON"),
    ],
)
def test_what_is_no_trace_is_refused_with_what_it_is(read, text, message):
    with pytest.raises(DamagedTraceError, match=message):
        read(text)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DamagedTraceError, match=r"cannot be read\. Is a directory"):
        decode(tmp_path)


# Events ---------------------------------------------------------------------------------------------------------------


def test_phases_that_are_kept_and_those_passed_over_are_counted_apart(read):
    events = [event(ph=phase) for phase in (*PHASES, "s", "s", "f", "long")]
    trace = read(json.dumps([*events, {"name": "no phase", "ts": 1}]))
    assert column(trace, "phase") == list(PHASES)
    assert (trace.passed_over, trace.unusable) == ({"s": 2, "f": 1, "long": 1}, {"without a phase": 1})


def test_processes_and_threads_are_texts_whatever_they_are_in_the_file(read):
    values = ["-1", '"Trace"', '"7"', "1.0", "true", "null", '""', "[1, 2]", '{"a": "b c"}']
    texts = ", ".join(f'{{"ph": "i", "ts": 1, "pid": {value}, "tid": {value}}}' for value in values)
    trace = read(f"[{texts}]")
    assert column(trace, "pid") == ["-1", "Trace", "7", "1.0", "true", "", "", "[1,2]", '{"a":"b c"}']
    assert column(trace, "pid") == column(trace, "tid")


def test_members_that_an_event_lacks_are_empty_texts(read):
    assert plain(read('[{"ph": "i", "ts": 1}]')).row(0) == ("i", "", "", "", "", 1000, None)


def test_of_equal_keys_the_last_counts_and_of_equal_arguments_all_of_the_last(read):
    trace = read(
        '[{"ph": "X", "ts": 1, "ts": 2, "args": {"device": 1, "stream": 7}, "args": {"device": 2, "device": 3}},'
        '{"ph": "X", "ts": 1, "args": {"device": 1}, "args": null}]'
    )
    assert column(trace, "start_ns") == [2000, 1000]
    assert (column(trace, "device"), column(trace, "stream")) == ([3, None], [None, None])


def test_of_two_spellings_the_first_in_the_list_counts(read):
    trace = read('[{"ph": "X", "ts": 1, "args": {"size": 5, "bytes": 4}}, {"ph": "X", "ts": 1, "args": {"size": 6}}]')
    assert column(trace, "bytes") == [4, 6]


def test_keys_may_be_written_with_escapes(read):
    text = r'[{"\u0070h": "X", "t\u0073": 4, "args": {"\u0064evice": 2, "External\u0020id": 9, "grid\n": 1, "s\/": 1}}]'
    trace = read(text)
    assert (column(trace, "start_ns"), column(trace, "device"), column(trace, "external_id")) == ([4000], [2], [9])


def test_only_the_arguments_asked_for_become_columns(read):
    text = json.dumps([event(args={"device": 1, "stream": 2, "Call stack": "a;b"})])
    trace = read(text, arguments=frozenset({"stream", "grid"}))
    assert trace.events.columns[7:] == ["stream"]


# Times ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        ("1751410836000000.123", 1751410836000000123),
        ("1751410836000000.1239", 1751410836000000123),
        ('"1751410836000000.123"', 1751410836000000123),
        ("9223372036854775.807", 2**63 - 1),
        ("-9223372036854775.807", -(2**63) + 1),
        ("1.623143089861e15", 1623143089861000000),
        ("0.0005", 0),
        ("-0.0019", -1),
        ("0." + "9" * 60, 999),
        ("-12.5", -12500),
        ("-0", 0),
        ('" 12.5 "', 12500),
        ('"0x10"', 16000),
        ("12.", 12000),
        ("007", 7000),
        ("1e-9999999", 0),
        ("000000000000000000000001", 1000),
    ],
)
def test_times_are_exact(read, value, nanoseconds):
    assert of_time(read, value) == ([nanoseconds], {})


NO_NUMBERS = [
    "NaN",
    "-Infinity",
    "nan",
    "null",
    "true",
    "[1]",
    '{"a": 1}',
    '""',
    '"12,5"',
    "1.2.3",
    '"' + "1" * 500 + '"',
]
TOO_LARGE = ["1" + "0" * 17, "-1" + "0" * 17, "9223372036854775.808", "1e999999999999999999999", "1e300"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *((value, "with a time that is no number") for value in NO_NUMBERS),
        *((value, "with a time out of range") for value in TOO_LARGE),
    ],
)
def test_events_whose_time_makes_no_sense_are_left_out_and_counted(read, value, reason):
    assert of_time(read, value) == ([], {reason: 1})


def test_an_event_without_a_time_is_left_out_but_the_name_of_a_thread_needs_none(read):
    trace = read('[{"ph": "X", "name": "a"}, {"ph": "M", "name": "process_name", "ts": NaN, "args": {"name": "b"}}]')
    assert (column(trace, "start_ns"), column(trace, "label")) == ([None], ["b"])
    assert trace.unusable == {"without a time": 1}


def test_an_end_beyond_64_bits_is_out_of_range(read):
    trace = read('[{"ph": "X", "ts": 9223372036854775.807, "dur": 1}, {"ph": "X", "ts": 1, "dur": 1e17}]')
    assert (trace.events.height, trace.unusable) == (0, {"with a time out of range": 2})


def test_negative_durations_are_none_and_counted(read):
    trace = read('[{"ph": "X", "ts": 5, "dur": -1}, {"ph": "X", "ts": 5, "dur": 0.5}]')
    assert (column(trace, "dur_ns"), trace.repaired) == ([None, 500], {"negative durations": 1})


# Arguments ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("7", 7),
        ('"7"', 7),
        ('"0x1f"', 31),
        ('"-0X1F"', -31),
        ("3.0", 3),
        ("1e3", 1000),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", -(2**63) + 1),
        ("null", None),
        ('""', None),
    ],
)
def test_whole_numbers_are_read_in_all_spellings(read, value, number):
    assert of_argument(read, "correlation", value, "correlation") == (number, {})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("3.5", "that are no whole number"),
        ("true", "that are no number"),
        ('"abc"', "that are no number"),
        ("[1]", "that are no number"),
        ("NaN", "that are no number"),
        ("18446744073709551615", "out of range"),
        ("1e400", "out of range"),
    ],
)
def test_other_values_instead_of_whole_numbers_are_left_out_and_counted(read, value, reason):
    assert of_argument(read, "device", value, "device") == (None, {f"values of device {reason}": 1})


@pytest.mark.parametrize(
    ("value", "number", "repaired"),
    [
        ("12.5", 12.5, 0),
        ('"12.5"', 12.5, 0),
        ("0", 0.0, 0),
        ("null", None, 0),
        ("Infinity", None, 1),
        ("1e999", None, 1),
        ("[1]", None, 1),
    ],
)
def test_numbers_with_decimals_are_read_in_all_spellings(read, value, number, repaired):
    found, counts = of_argument(read, "est. achieved occupancy %", value, "achieved_occupancy")
    assert (found, sum(counts.values())) == (number, repaired)


@pytest.mark.parametrize(
    ("value", "triple", "repaired"),
    [
        ("[784, 1,\n 1]", [784, 1, 1], 0),
        ('["2", "3", "4"]', [2, 3, 4], 0),
        ('"[2, 3, 4]"', [2, 3, 4], 0),
        ("null", None, 0),
        ("[1, 2]", None, 1),
        ("[1, 2, 3, 4]", None, 1),
        ("[1, 2, 4294967296]", None, 1),
        ("[[1], 2, 3]", None, 1),
        ("[]", None, 1),
        ("7", None, 1),
    ],
)
def test_grids_are_three_whole_numbers(read, value, triple, repaired):
    found, counts = of_argument(read, "grid", value, "grid")
    assert (found if found is None else list(found), sum(counts.values())) == (triple, repaired)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("[[1, 3],\n\t []]", "[[1,3],[]]"),
        ('["a b", "c\\" d"]', '["a b","c\\" d"]'),
        ('"[1, 2]"', "[1, 2]"),
        ("12", "12"),
        ("false", "false"),
        ("null", None),
        ('""', ""),
    ],
)
def test_texts_stay_and_lists_become_their_json_without_blanks(read, value, text):
    assert of_argument(read, "Input Dims", value, "input_shapes") == (text, {})


# Texts that break the rules -------------------------------------------------------------------------------------------


def test_half_of_a_surrogate_pair_is_replaced_and_a_whole_pair_is_one_character(read):
    trace = read(r'[{"ph": "X", "name": "a\ud800b", "cat": "\ud83d\ude00", "ts": 1}]')
    assert (column(trace, "name"), column(trace, "category")) == (["a�b"], ["😀"])


def test_folders_of_windows_that_were_not_escaped_keep_their_backslashes(read):
    trace = read(r'[{"ph": "X", "name": "C:\new\Users\train.py(3): \"f\"", "ts": 1}, {"ph": "X", "ts": 2}]')
    assert column(trace, "name") == [r'C:\new\Users\train.py(3): "f"', ""]
    assert trace.repaired == {"texts with a backslash that JSON does not know": 1}


def test_control_characters_that_were_not_escaped_stay(read):
    trace = read('[{"ph": "X", "name": "a\nb\tc", "ts": 1}]')
    assert column(trace, "name") == ["a\nb\tc"]
    assert trace.repaired == {"texts with control characters as they are": 1}


def test_nesting_deeper_than_any_stack_is_passed_over(read):
    deep = "[" * 100_000 + "]" * 100_000
    trace = read(f'[{{"ph": "X", "ts": 1, "args": {{"x": {deep}, "device": 3}}}}]')
    assert column(trace, "device") == [3]


# Layouts and scanners -------------------------------------------------------------------------------------------------


def reference(events: list[dict[str, object]]) -> list[tuple[str, int, int | None]]:
    """Return the events that have plain numbers as times, by Python's own decimals."""
    kept = []
    for raw in events:
        if raw["ph"] in PHASES and raw["ph"] != "M":
            start, dur = (int(Decimal(repr(raw.get(key, 0))).scaleb(3)) for key in ("ts", "dur"))
            kept.append((raw["ph"], start, dur if "dur" in raw and dur >= 0 else None))
    return kept


@given(
    st.lists(
        st.fixed_dictionaries(
            {"ph": st.sampled_from("XBisf"), "ts": NUMBERS}, optional={"dur": NUMBERS, "cat": SCALARS}
        ),
        max_size=8,
    ).filter(lambda events: all(abs(one["ts"]) + abs(one.get("dur", 0)) < 9e15 for one in events)),
    LAYOUTS,
    st.sampled_from([64, 100, 2**20]),
)
def test_times_are_those_of_decimal_arithmetic_in_every_layout(tmp_path_factory, events, layout, block):
    path = tmp_path_factory.getbasetemp() / "times.json"
    path.write_text(json.dumps({"a": 1, "traceEvents": events, "b": [2]}, **layout), errors="surrogatepass")
    for scanner in BOTH:
        trace = decode(path, scanner=scanner, block_bytes=block)
        assert plain(trace).select("phase", "start_ns", "dur_ns").rows() == reference(events)
        assert trace.header == {"a": 1, "b": [2]}


@needs_compiled
@given(EVENTS, LAYOUTS, st.sampled_from([64, 1000]))
def test_scanners_agree_on_any_values_in_every_layout(tmp_path_factory, events, layout, block):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(json.dumps(events, **layout).encode("utf-8", "surrogatepass"))
    whole = [decode(path, scanner=scanner) for scanner in BOTH]
    same(*whole)
    same(whole[0], decode(path, scanner="compiled", block_bytes=block))
    same(whole[0], decode(path, scanner="msgspec", block_bytes=block))


@needs_compiled
@pytest.mark.parametrize(
    ("most_bytes", "expected"), [(50_000, 4_210), pytest.param(10**9, 243_409, marks=pytest.mark.slow)]
)
def test_scanners_agree_on_public_traces(public_traces, most_bytes, expected):
    rows = 0
    paths = (path for path in (public_traces / "kineto").glob("*.json.gz") if path.stat().st_size <= most_bytes)
    for path in paths:
        first, second = (decode(path, scanner=scanner) for scanner in BOTH)
        same(first, second)
        assert not first.damage
        rows += first.events.height
    assert rows == expected


@needs_compiled
def test_the_environment_asks_to_do_without_the_compiled_scanner(monkeypatch):
    assert available_scanner() == "compiled"
    for value in ("msgspec", "protobuf"):
        monkeypatch.setenv(SCANNER_VARIABLE, value)
        assert available_scanner() == "msgspec"


@needs_compiled
def test_a_place_outside_the_text_is_refused():
    with pytest.raises(ValueError, match="outside"):
        CompiledScanner(ARGUMENTS).feed(b"[]", 3)
