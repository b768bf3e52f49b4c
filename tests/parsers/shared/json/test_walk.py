"""A JSON trace as segments: contents of each, the start of damage, and the stop of a strict walk there."""

import pytest

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.json import window
from traceviz.parsers.shared.json.grammar import BrokenError, CutError, skip_value
from traceviz.parsers.shared.json.walk import DamagedTextError, SegmentKind, Step, Stop, TraceWalk
from traceviz.parsers.shared.json.window import Window

TRACE = b'{"a": 1, "traceEvents": [{"n": 1}, {"n": 2}], "b": {"c": [2]}}'


def scan(text: bytes, place: int) -> Step:
    """Return whole elements, one after the other."""
    while True:
        while text[place : place + 1] in {b",", b" "}:
            place += 1
        if text[place : place + 1] == b"]":
            return Step(Stop.END, place + 1, place + 1)
        try:
            place = skip_value(text, place)
        except CutError:
            return Step(Stop.MORE, place, place)
        except BrokenError as error:
            return Step(Stop.MORE if place >= len(text) else Stop.BROKEN, place, error.place)


def walk(text: bytes, *, strict: bool = False, block: int = 1 << 20) -> TraceWalk:
    blocks = (text[begin : begin + block] for begin in range(0, len(text), block))
    return TraceWalk(Window(blocks), scan, strict=strict)


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_segments_are_the_file_without_the_blanks_between_values(block):
    walked = walk(TRACE, strict=True, block=block)
    segments = list(walked.segments())
    assert b"".join(segment.text for segment in segments).replace(b" ", b"") == TRACE.replace(b" ", b"")
    headers = [(segment.key, segment.text) for segment in segments if segment.kind is SegmentKind.HEADER]
    assert headers == [("a", b"1"), ("b", b'{"c": [2]}')]
    assert (walked.lists, walked.damage) == (1, [])


def test_a_list_alone_is_a_trace():
    walked = walk(b'\xef\xbb\xbf [{"n": 1}]')
    assert [segment.kind for segment in walked.segments()] == [SegmentKind.GLUE, SegmentKind.EVENTS]
    assert walked.opened == b"["


@pytest.mark.parametrize(
    ("text", "damage"),
    [
        (TRACE[:-1], "The file ends before its closing brace, after 61 bytes of text."),
        (TRACE[:30], "The file ends inside an event, of which 5 bytes are there, after 25 bytes of text."),
        (TRACE + b"x", "The text goes on after the end of the trace, at byte 62; that is not read."),
    ],
)
def test_damage_is_named_by_its_place_and_stops_a_strict_walk(text, damage):
    walked = walk(text)
    assert list(walked.segments())
    assert walked.damage == [damage]
    with pytest.raises(DamagedTextError, match=damage[:20]):
        list(walk(text, strict=True).segments())


def test_events_after_a_broken_one_are_given_unless_the_walk_is_strict():
    text = b'[{"n": 1}, {"n" 2}, {"n": 3}]'
    walked = walk(text)
    events = b"".join(segment.text for segment in walked.segments() if segment.kind is SegmentKind.EVENTS)
    assert events == b'{"n": 1}, {"n": 3}]'
    assert walked.damage[0].startswith("The list of events is broken at one place, the first at byte 16 of the text")
    with pytest.raises(DamagedTextError, match="broken at byte 16"):
        list(walk(text, strict=True).segments())


@pytest.mark.parametrize("head", ['{"traceEvents": [{"n": "', '{"a": "'])
def test_a_value_longer_than_any_profiler_writes_is_refused_once_so_much_of_it_was_read(head, monkeypatch):
    read = []

    def blocks(length):
        yield head.encode()
        for _ in range(length // 10):
            read.append(10)
            yield b"x" * 10
        yield b'"}]}' if "Events" in head else b'", "traceEvents": []}'

    monkeypatch.setattr(window, "LONGEST_VALUE_BYTES", 100)
    assert b"x" * 60 in b"".join(segment.text for segment in TraceWalk(Window(blocks(60)), scan).segments())
    read.clear()
    with pytest.raises(DamagedTraceError, match=r"a\.json holds one value of more than 100 B"):
        list(TraceWalk(Window(blocks(10_000), name="a.json"), scan).segments())
    assert sum(read) < 130
