"""A file gives the same with two scanning threads as with one, for any contents of its middle."""

import json
import threading
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.kineto.texts import EVENTS, LAYOUTS, column, event, needs_compiled, same
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.kineto.decode.compiled import CompiledScanner
from traceviz.parsers.kineto.decode.document import decode
from traceviz.parsers.kineto.decode.halves import SecondHalf, second_half
from traceviz.parsers.kineto.raw import ARGUMENTS

pytestmark = [pytest.mark.process, needs_compiled]
NEVER = 2**60


def both(path, block: int = 2**19):
    """Return the file read by one thread, and by two."""
    return [decode(path, scanner="compiled", block_bytes=block, halves_from=least) for least in (NEVER, 0)]


@pytest.fixture
def taken(monkeypatch):
    """Return the ends of the second scans whose findings were used."""
    places = []
    found = SecondHalf.found

    def noted(half: SecondHalf):
        outcome = found(half)
        places.append(outcome[1] if outcome else -1)
        return outcome

    monkeypatch.setattr(SecondHalf, "found", noted)
    return places


def test_of_1000_events_the_second_half_is_scanned_up_to_the_bracket(tmp_path, taken):
    path = tmp_path / "trace.json"
    events = [event(name=f"op{number % 7}", ts=number, args={"correlation": number}) for number in range(1_000)]
    path.write_text(json.dumps({"traceEvents": events, "host_name": "node7"}))
    one, two = both(path)
    same(one, two)
    assert column(two, "correlation") == list(range(1_000))
    assert two.header == {"host_name": "node7"}
    assert taken == [path.read_text().rindex("]")]


def test_a_list_of_objects_in_the_middle_of_an_event_is_no_half(tmp_path, taken):
    path = tmp_path / "trace.json"
    inner = [{"ph": "X", "name": "no event", "ts": 1} for _ in range(200)]
    path.write_text(json.dumps([event(), event(args={"list": inner}), event(name="last")]))
    one, two = both(path)
    same(one, two)
    assert column(two, "name") == ["op", "op", "last"]
    assert taken == []


def test_what_is_broken_in_the_second_half_is_passed_over_at_the_same_byte(tmp_path, taken):
    path = tmp_path / "trace.json"
    parts = [json.dumps(event(ts=number)) for number in range(100)]
    parts[80] = '{"ph": "X", "ts": =}'
    text = f"[{', '.join(parts)}]"
    path.write_text(text)
    one, two = both(path)
    same(one, two)
    assert (two.events.height, f"the first at byte {text.index('='):,} of" in two.damage) == (99, True)
    assert taken == [text.index('{"ph": "X", "ts": =}')]


def test_of_two_lists_only_the_one_with_the_middle_is_halved(tmp_path, taken):
    path = tmp_path / "trace.json"
    events = json.dumps([event(ts=number) for number in range(50)])
    path.write_text(f'{{"traceEvents": [{json.dumps(event())}], "traceEvents": {events}, "traceEvents": {events}}}')
    one, two = both(path)
    same(one, two)
    assert two.events.height == 101
    assert len(taken) == 1


def test_a_file_that_takes_the_name_of_another_meanwhile_is_not_mixed_with_it(tmp_path):
    path, other = tmp_path / "trace.json", tmp_path / "other.json"
    path.write_text(json.dumps([event(name="old") for _ in range(100)]))
    other.write_text(json.dumps([event(name="new") for _ in range(100)]))
    half = second_half(path, CompiledScanner(ARGUMENTS), 2**19, 0)
    assert half is not None
    half.stop()
    with path.open("rb") as old, other.open("rb") as new:
        assert (half.is_of(old), half.is_of(new)) == (True, False)
    half.close()


def test_a_text_longer_than_200_bytes_is_refused_with_halves_as_without(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([event() for _ in range(50)]))
    with pytest.raises(DamagedTraceError, match="200 B of text"):
        decode(path, max_size=200, halves_from=0)


def test_without_a_thread_to_spare_all_20_events_are_read(tmp_path, monkeypatch):
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    path = tmp_path / "trace.json"
    path.write_text(json.dumps([event() for _ in range(20)]))
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert decode(path, halves_from=0).events.height == 20


def test_a_scanner_joins_no_other_that_gave_its_40_texts_away():
    scanners = [CompiledScanner(ARGUMENTS) for _ in range(2)]
    for scanner in scanners:
        scanner.feed(json.dumps([event(name=str(number)) for number in range(40)]).encode(), 1)
    scanners[1].pieces().texts()
    with pytest.raises(ValueError, match="do not fit"):
        scanners[0].join(scanners[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("halves")


@settings(max_examples=15)
@given(st.lists(EVENTS, min_size=1, max_size=6), LAYOUTS, st.sampled_from([16, 1_000, 2**19]), st.data())
def test_any_events_whole_cut_or_spoilt_are_the_same_from_one_thread_and_from_two(folder, parts, layout, block, data):
    path = folder / "trace.json"
    text = bytearray(json.dumps({"a": 1, "traceEvents": list(chain(*parts)), "b": [2]}, **layout).encode())
    match data.draw(st.sampled_from(["whole", "cut", "spoilt"])):
        case "cut":
            del text[data.draw(st.integers(0, len(text))) :]
        case "spoilt":
            text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(text)
    outcomes = []
    for least in (NEVER, 0):
        try:
            outcomes.append(decode(path, scanner="compiled", block_bytes=block, halves_from=least))
        except DamagedTraceError as error:
            outcomes.append(error)
    if isinstance(outcomes[0], DamagedTraceError):
        assert str(outcomes[0]) == str(outcomes[1])
    else:
        same(*outcomes)
