"""Truncated or broken traces: complete parts are read, and losses are reported."""

import gzip
import json
import random
import struct
import time
import zlib
from itertools import accumulate

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.kineto.texts import BOTH, EVENTS, LAYOUTS, SCANNERS, column, event, needs_compiled, reading, same
from traceviz.api import open_trace
from traceviz.cli.main import main
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.kineto.decode.document import decode
from traceviz.parsers.kineto.raw import RawTrace
from traceviz.parsers.shared.json import stream as json_stream

pytestmark = pytest.mark.process

NESTED = [
    event(name='}, {"ph": "X"', args={"Input Dims": [[1, 2], [], [{"a": 1}, {"b": 2}]], "grid": [1, 2, 3]}),
    event(name="a\\", args={"Call stack": "C:\\dir\\", "dtype": "]}"}),
    {},
    event(name="last", ts=10.125),
]


@pytest.fixture(params=SCANNERS)
def read(request, tmp_path):
    """Decode a text with each of the scanners."""
    return reading(tmp_path / "trace.json", request.param)


def whole_events(text: str, cut: int) -> int:
    """Return the number of events of :data:`NESTED` up to byte ``cut``, by the strict parser of Python."""
    decoder, place, ends = json.JSONDecoder(), text.index("[") + 1, []
    for _ in NESTED:
        while text[place] in ", \n":
            place += 1
        event, place = decoder.raw_decode(text, place)
        if event:
            ends.append(place)
    return sum(end <= cut for end in ends)


def read_or_refuse(path, **options) -> RawTrace | None:
    try:
        return decode(path, **options)
    except DamagedTraceError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("scanner", BOTH)
@pytest.mark.parametrize("block", [64, 2**20])
@pytest.mark.parametrize("layout", [{}, {"indent": 1}, {"separators": (",", ":")}])
def test_a_text_cut_at_any_byte_keeps_exactly_the_whole_events(tmp_path, scanner, block, layout):
    text = json.dumps({"schemaVersion": 1, "traceEvents": NESTED, "trailer": [1, {"a": "b"}]}, **layout)
    path = tmp_path / "cut.json"
    for cut in range(len(text)):
        path.write_text(text[:cut])
        expected = 0 if cut <= text.index("[") else whole_events(text, cut)
        trace = read_or_refuse(path, scanner=scanner, block_bytes=block)
        if expected == 0:
            assert trace is None, cut
        else:
            assert (trace.events.height, "The file ends" in trace.damage) == (expected, True), cut
    path.write_text(text)
    assert decode(path, scanner=scanner).damage == ""


@pytest.mark.parametrize("scanner", BOTH)
def test_a_gzip_file_cut_at_any_byte_keeps_the_whole_events_of_what_inflates(tmp_path, scanner):
    text = json.dumps({"traceEvents": [event(name=f"op {number * number}") for number in range(12)]})
    packed = gzip.compress(text.encode())
    path = tmp_path / "cut.json.gz"
    heights = []
    for cut in range(2, len(packed)):
        path.write_bytes(packed[:cut])
        trace = read_or_refuse(path, scanner=scanner)
        inflated = zlib.decompressobj(31).decompress(packed[:cut]).decode()
        expected = inflated.count('"dur": 1}')
        assert (0 if trace is None else trace.events.height) == expected, cut
        assert trace is None or trace.damage.startswith("The gzip file is cut off.")
        heights.append(expected)
    assert heights[-1] == 12


@pytest.mark.parametrize("scanner", BOTH)
def test_a_wrong_checksum_is_said_and_costs_nothing(tmp_path, scanner):
    packed = gzip.compress(json.dumps([event(name=f"op {number}") for number in range(5_000)]).encode())
    path = tmp_path / "wrong.json.gz"
    path.write_bytes(packed[:-8] + struct.pack("<II", 1, 2))
    trace = decode(path, scanner=scanner, block_bytes=10_000)
    assert trace.events.height == 5_000
    assert trace.damage.startswith("The gzip file is broken")


def test_a_broken_byte_in_a_gzip_file_loses_only_what_follows(tmp_path):
    rng = random.Random(4)
    events = [event(name=f"{rng.random()}") for _ in range(4_000)]
    packed = bytearray(gzip.compress(json.dumps(events).encode()))
    place = len(packed) // 2
    packed[place : place + 64] = bytes(64)
    path = tmp_path / "broken.json.gz"
    path.write_bytes(packed)
    stream = zlib.decompressobj(31)
    sound = stream.decompress(bytes(packed[:place])).count(b'"dur": 1}')
    for block in (1000, 2**20):
        trace = decode(path, block_bytes=block)
        assert sound + 20 > trace.events.height >= sound > 1_000
        assert "gzip" in trace.damage


def test_a_gzip_file_of_several_members_is_one_text(tmp_path):
    text = json.dumps([event(), event(name="second")]).encode()
    path = tmp_path / "several.json.gz"
    path.write_bytes(b"".join(gzip.compress(text[at : at + 20]) for at in range(0, len(text), 20)) + bytes(512))
    trace = decode(path, block_bytes=64)
    assert (trace.events.height, trace.damage) == (2, "")


def test_what_follows_a_gzip_file_is_said(tmp_path):
    path = tmp_path / "more.json.gz"
    path.write_bytes(gzip.compress(json.dumps([event()]).encode()) + b"more")
    assert decode(path).damage == "The gzip file goes on with something that is not gzip; that is not read."


def test_what_follows_the_end_of_the_trace_is_said(read):
    text = json.dumps([event()])
    assert read(text + "\n[1]").damage == (
        f"The text goes on after the end of the trace, at byte {len(text) + 1}; that is not read."
    )


def test_a_broken_event_is_passed_over_and_the_following_ones_are_read(read):
    events = [json.dumps(event(name=f"op {number}")) for number in range(9)]
    events[2] = events[2].replace(": 10", ": ?")
    events[5] = events[5].replace('"op 5"', 'op" 5"')
    text = f'{{"traceEvents": [{", ".join(events)}], "schemaVersion": 1}}'
    for block in (64, 2**20):
        trace = read(text, block_bytes=block)
        assert column(trace, "name") == [f"op {number}" for number in (0, 1, 3, 4, 6, 7, 8)]
        assert trace.header == {"schemaVersion": 1}
        first = text.index(events[2])
        lost = len(events[2]) + len(events[5]) + 4
        assert trace.damage == (
            f"The list of events is broken at 2 places, the first at byte {first + events[2].index('?')} of the text; "
            f"{lost} bytes were passed over."
        )


def test_events_after_a_broken_member_of_the_file_are_read(read):
    trace = read(f'{{"schemaVersion": 1, "path": ?, "traceEvents": [{json.dumps(event())}], "a": 1}}')
    assert (trace.events.height, trace.header) == (1, {"schemaVersion": 1, "a": 1})
    assert trace.damage == "The text is no JSON from byte 29 on, up to the list of events."


def test_a_member_of_the_file_that_means_nothing_is_left_out(read):
    trace = read(f'{{"a": +1x, "b": NaN, "c": {{"path": "C:\\Users"}}, "traceEvents": [{json.dumps(event())}]}}')
    assert (list(trace.header), trace.events.height) == (["b"], 1)
    assert trace.damage == (
        "What the file says as 'a' is no JSON; it is left out. What the file says as 'c' is no JSON; it is left out."
    )


# Limits ---------------------------------------------------------------------------------------------------------------


def test_a_text_longer_than_allowed_is_refused_with_the_flag_that_raises_the_limit(tmp_path):
    path = tmp_path / "long.json"
    path.write_text(json.dumps([event()] * 100))
    with pytest.raises(DamagedTraceError, match=r"more than 500 B of text .* --max-size"):
        decode(path, max_size=500)
    assert decode(path, max_size=10_000).events.height == 100


def test_a_gzip_file_made_to_exhaust_the_memory_is_refused_and_a_limit_by_hand_lets_it_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "FREE_BYTES", 2**20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'[{"ph": "X", "ts": 1, "name": "' + bytes(2**22) + b'"}]'))
    with pytest.raises(DamagedTraceError, match="Files that are made to exhaust the memory do this"):
        decode(path, block_bytes=2**16)
    assert decode(path, max_size=2**23).events.height == 1


def test_text_that_repeats_itself_as_traces_do_is_below_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "FREE_BYTES", 2**16)
    path = tmp_path / "steps.json.gz"
    path.write_bytes(gzip.compress(json.dumps([event(ts=number) for number in range(20_000)]).encode()))
    assert path.stat().st_size * 5 < 20_000 * 50
    assert decode(path).events.height == 20_000


@pytest.mark.parametrize(("size", "code"), [("1kB", 3), ("1KiB", 3), ("999", 3), ("1.5MB", 0), ("2 GiB", 0), ("1x", 2)])
def test_the_command_line_takes_the_limit_as_a_size(tmp_path, size, code):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event(cat="cpu_op")] * 100}))
    done = CliRunner().invoke(main, ["convert", str(path), "--max-size", size, "-o", str(tmp_path / "out")])
    assert (done.exit_code, "--max-size" in done.output) == (code, code != 0), done.output


def test_without_the_fast_library_gzip_is_read_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "_inflater", zlib)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps([event(ts=number) for number in range(3_000)]).encode()))
    trace = decode(path, block_bytes=1000)
    assert (trace.events.height, trace.damage) == (3_000, "")


def test_a_gzip_file_broken_within_its_first_bytes_is_still_known_by_what_comes_before(tmp_path):
    packed = gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": [event(cat="cpu_op")] * 50}).encode())
    path = tmp_path / "trace.json.gz"
    for broken in (packed[:-8] + bytes(8), packed[:-20] + bytes([packed[-20] ^ 255]) + packed[-19:]):
        path.write_bytes(broken)
        damaged = [note for note in open_trace(path).arrow("notes").to_pylist() if note["code"] == "damaged"]
        assert "The gzip file is broken" in damaged[0]["message"]
    path.write_bytes(packed[:10])
    done = CliRunner().invoke(main, ["report", str(path)])
    assert (done.exit_code, "cut off or broken in its beginning" in done.output) == (3, True)


def test_of_a_gzip_file_of_many_small_members_little_is_read_beyond_each(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "TOLD_BYTES", 0)
    texts = ["[", *(json.dumps(event(ts=number)) + "," for number in range(2_000)), "{}]"]
    members = [gzip.compress(text.encode()) for text in texts]
    path, ends = tmp_path / "members.json.gz", []
    path.write_bytes(b"".join(members))
    assert decode(path, progress=lambda _what, done, _total: ends.append(done)).events.height == 2_000
    begins = [0, *accumulate(map(len, members))][:-1]
    assert max(end - begin for begin, end in zip(begins, ends, strict=True)) == 4096


@pytest.mark.parametrize(("time", "why"), [("NaN", "2 with a time that is no number"), ("1e17", "out of range")])
def test_a_file_whose_events_all_lack_a_usable_time_says_so_instead_of_being_called_empty(tmp_path, time, why):
    path = tmp_path / "trace.json"
    text = json.dumps({"schemaVersion": 1, "traceEvents": [event(cat="cpu_op", ts="TIME")] * 2})
    path.write_text(text.replace('"TIME"', time))
    done = CliRunner().invoke(main, ["report", str(path)])
    assert (done.exit_code, "no events that can be used" in done.output, why in done.output) == (3, True, True)


def test_bytes_that_are_not_utf8_are_replaced_and_counted_once_per_text(read):
    text = json.dumps([event(name=name) for name in ("caf#", "caf#", "t##h", "caf\ufffd")], ensure_ascii=False)
    trace = read(text.encode().replace(b"#", b"\xe9"))
    assert column(trace, "name") == ["caf\ufffd", "caf\ufffd", "t\ufffd\ufffdh", "caf\ufffd"]
    assert trace.repaired == {"texts with bytes that are not UTF-8": 2}


@needs_compiled
def test_names_made_to_share_one_hash_take_no_longer_than_others(tmp_path):
    # Pairs of words whose highest bits differ cancel each other in a hash that multiplies by a constant.
    words = (b"a" * 16, b"aaaaaaa\xe1aaa\xe1aaa\xe1")
    alike = [b"aaaaaaa" + b"".join(words[number >> place & 1] for place in range(13)) for number in range(2**13)]
    others = [b"%07d" % number + words[0] * 13 for number in range(2**13)]
    seconds = []
    for names in (others, alike):
        path = tmp_path / "names.json"
        path.write_bytes(b"[" + b",".join(b'{"ph":"X","name":"%s","ts":1}' % name for name in names) + b"]")
        begin = time.process_time()
        assert decode(path, scanner="compiled").events.height == 2**13
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 4 * seconds[0] + 0.1


# Scanners -------------------------------------------------------------------------------------------------------------


@needs_compiled
@settings(max_examples=12)
@given(EVENTS, LAYOUTS, st.data())
def test_scanners_agree_on_damaged_texts(tmp_path_factory, events, layout, data):
    check_scanners(tmp_path_factory, events, layout, data)


@needs_compiled
@pytest.mark.slow
@settings(max_examples=200)
@given(EVENTS, LAYOUTS, st.data())
def test_scanners_agree_on_many_damaged_texts(tmp_path_factory, events, layout, data):
    check_scanners(tmp_path_factory, events, layout, data)


def check_scanners(tmp_path_factory, events, layout, data):
    text = bytearray(json.dumps({"a": [1], "traceEvents": events, "b": 2}, **layout).encode("utf-8", "surrogatepass"))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.sampled_from(["replace", "remove", "insert", "cut"])):
            case "replace":
                text[place] = data.draw(st.sampled_from(b'"\\{}[],:x0\x00\xff '))
            case "remove":
                del text[place : place + data.draw(st.integers(1, 5))]
            case "insert":
                text[place:place] = data.draw(st.sampled_from([b'"', b"\\", b"}, {", b"]", b"NaN", b'{"', b"[["]))
            case _:
                del text[place:]
        text = text or bytearray(b" ")
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(text)
    outcomes = [
        read_or_refuse(path, scanner=scanner, block_bytes=block) for scanner in BOTH for block in (64, 333, 2**20)
    ]
    for another in outcomes[1:]:
        assert (outcomes[0] is None) == (another is None)
        if outcomes[0] is not None:
            same(outcomes[0], another)
