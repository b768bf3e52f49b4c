"""Both scanners of XPlane files: results, reports of damage, and agreement on any bytes."""

import random
import struct
from mmap import ACCESS_READ, mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.xplane.files import Name, Ref, Unsigned, chunk, event, fixed64, line, number, plane, space, varint
from traceviz.parsers.shared.arrays.native import SCANNER_VARIABLE, library
from traceviz.parsers.xplane.decode.raw import Kind, Plane, Space
from traceviz.parsers.xplane.decode.scan import available_scanner, read_space, scan_compiled

needs_compiled = pytest.mark.skipif(library is None, reason="built without the compiled scanner")
SCANNERS = [pytest.param("compiled", marks=needs_compiled), "protobuf"]


@pytest.fixture(params=SCANNERS)
def scanner(request):
    """Each of the scanners."""
    return request.param


WHOLE = space(
    plane(
        "/host:CPU",
        line(
            -7,
            event("train", 0, 9_000, {"step_num": 3, "real": 1.5, "id": Unsigned(2**63 + 1), "path": Ref("a/b")}),
            event("Iterator::Root", 1_000, 2_000, {"path": "inline", "raw": b"\x00\xff"}),
            event("Iterator::Root", 4_000, 0, {"path": "inline"}),
            name="python3",
            timestamp_ns=1_000,
        ),
        line(2, event("totals", occurrences=12), name="id 2", display_name="worker"),
        plane_id=4,
        stats={"cpu_count": 8, "uuid": Ref("a/b")},
        names={"train": Name("Train", {"flops": 2.5, "kind": Ref("a/b"), "hlo": b"\x01"})},
    ),
    plane("/device:GPU:0"),
    errors=["CUPTI: no permission"],
    warnings=["12 events dropped"],
    hostnames=["worker-0"],
)


def parts(space_: Space) -> list[object]:
    """Return all contents of a space, as comparable values."""

    def plain(plane_: Plane) -> list[object]:
        columns = [plane_.events.line, plane_.events.name, plane_.events.offset_ps, plane_.events.dur_ps]
        columns += [plane_.stats.event, plane_.stats.key, plane_.stats.kind, plane_.stats.value]
        facts = (
            plane_.id,
            plane_.name,
            plane_.lines,
            plane_.names,
            plane_.display_names,
            plane_.name_stats,
            plane_.texts,
            plane_.blobs,
        )
        tables = [(column.dtype.str, column.tolist()) for column in columns]
        return [*facts, repr(plane_.properties), plane_.aggregated, *tables]

    texts = (space_.errors, space_.warnings, space_.hostnames, space_.damage)
    return [*texts, [repr(plain(plane_)) for plane_ in space_.planes]]


def both(data: bytes) -> Space:
    """Return the result of both scanners for ``data``, once they agree."""
    spaces = [read_space(data, scanner) for scanner in ("compiled", "protobuf")]
    assert parts(spaces[0]) == parts(spaces[1])
    return spaces[0]


def words(space_: Space) -> list[str]:
    return [f"{damage.where}: {damage.what}" for damage in space_.damage]


def test_a_whole_file_becomes_columns(scanner):
    space_ = read_space(WHOLE, scanner)
    host, device = space_.planes
    assert (space_.errors, space_.warnings) == (("CUPTI: no permission",), ("12 events dropped",))
    assert (space_.hostnames, space_.damage, space_.scanner) == (("worker-0",), (), scanner)
    assert (host.id, host.name, host.aggregated, len(device.events)) == (4, "/host:CPU", 1, 0)
    assert [(one.id, one.name, one.timestamp_ns, one.events) for one in host.lines] == [
        (-7, "python3", 1_000, slice(0, 3)),
        (2, "worker", 0, slice(3, 3)),
    ]
    assert [host.names[place] for place in host.events.name] == ["train", "Iterator::Root", "Iterator::Root"]
    assert host.display_names[0] == "Train"
    assert host.events.offset_ps.tolist() == [0, 1_000, 4_000]
    assert host.events.dur_ps.tolist() == [9_000, 2_000, 0]
    assert host.events.line.dtype == host.events.name.dtype == host.stats.key.dtype == np.int32
    assert host.properties == {"cpu_count": 8, "uuid": "a/b"}
    assert host.name_stats == {0: {"flops": 2.5, "kind": "a/b", "hlo": b"\x01"}}


def test_every_kind_of_stat_keeps_its_64_bits(scanner):
    host = read_space(WHOLE, scanner).planes[0]
    stats = host.stats
    assert stats.event.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert [host.texts[key] for key in stats.key] == ["step_num", "real", "id", "path", "path", "raw", "path"]
    assert stats.kind.tolist() == [Kind.SIGNED, Kind.REAL, Kind.UNSIGNED, Kind.TEXT, Kind.TEXT, Kind.BYTES, Kind.TEXT]
    assert stats.value[0] == 3
    assert stats.value[1:2].view(np.float64)[0] == 1.5
    assert stats.value[2:3].view(np.uint64)[0] == 2**63 + 1
    assert host.texts[stats.value[3]] == "a/b"
    assert stats.value[4] == stats.value[6] != stats.value[3]  # a text is kept once
    assert host.blobs[stats.value[5]] == b"\x00\xff"


def test_names_before_the_lines_and_fields_in_any_order_read_the_same(scanner):
    events = (event("a", 1, 2, {"k": 1}), event("b", 3, 4, {"k": Ref("text")}))
    after, before = (
        read_space(space(plane("p", line(1, *events), metadata_first=first)), scanner) for first in (False, True)
    )
    assert parts(after) == parts(before)
    turned = number(5, 0)[:0] + number(3, 40) + number(2, 30) + number(1, 1)  # duration, offset, name
    names = chunk(4, chunk(2, chunk(2, "a") + number(1, 1)) + number(1, 1))
    body = chunk(3, chunk(4, turned) + chunk(2, "late name") + number(1, 9)) + names + chunk(2, "p")
    plane_ = read_space(chunk(1, body), scanner).planes[0]
    assert (plane_.name, plane_.names, plane_.lines[0].name, plane_.lines[0].id) == ("p", ["a"], "late name", 9)
    assert (plane_.events.offset_ps[0], plane_.events.dur_ps[0], plane_.events.name[0]) == (30, 40, 0)


def test_an_id_without_a_name_gets_an_entry_of_its_own(scanner):
    space_ = read_space(
        space(plane("p", line(1, event(77, 0, 1, {-5: Ref("x"), 6: 1}), event(77, 1, 1)))), scanner
    ).planes[0]
    assert space_.names == ["event 77"]
    assert space_.display_names == [""]
    assert space_.events.name.tolist() == [0, 0]
    assert [space_.texts[key] for key in space_.stats.key] == ["stat -5", "stat 6"]
    property_ = chunk(6, number(1, 8) + number(7, 9))
    assert read_space(chunk(1, chunk(2, "p") + property_), scanner).planes[0].properties == {"stat 8": "stat 9"}


def test_of_two_names_with_one_id_the_last_counts(scanner):
    entries = b"".join(chunk(4, number(1, 1) + chunk(2, chunk(2, name))) for name in ("old", "new"))
    body = chunk(3, chunk(4, number(1, 1))) + entries
    plane_ = read_space(chunk(1, chunk(2, "p") + body), scanner).planes[0]
    assert [plane_.names[place] for place in plane_.events.name] == ["new"]


def test_a_stat_without_a_value_is_left_out_and_of_two_values_the_last_counts(scanner):
    none, two = number(1, 1), number(1, 1) + number(4, 7) + fixed64(2, struct.pack("<d", 0.5))
    body = chunk(3, chunk(4, number(1, 1) + chunk(4, none) + chunk(4, two)))
    stats = read_space(chunk(1, chunk(2, "p") + body), scanner).planes[0].stats
    assert stats.kind.tolist() == [Kind.REAL]
    assert stats.value.view(np.float64).tolist() == [0.5]


def test_names_that_are_not_utf_8_are_read_with_replacement(scanner):
    space_ = read_space(space(plane(b"openxla\xff tpu", line(1, event("\udcfek", 0, 1), name=b"\xc3"))), scanner)
    assert (space_.planes[0].name, space_.planes[0].names) == ("openxla\ufffd tpu", ["\ufffdk"])
    assert space_.planes[0].lines[0].name == "\ufffd"
    assert space_.damage == ()


def test_unknown_fields_are_skipped_without_a_word(scanner):
    odd = number(99, 5) + fixed64(98, b"12345678") + chunk(97, "x") + varint(96 << 3 | 5) + b"1234"
    space_ = read_space(odd + space(plane("p", line(1, event("a", 1, 2, extra=odd), extra=odd), extra=odd)), scanner)
    assert space_.damage == ()
    assert space_.planes[0].events.offset_ps.tolist() == [1]


def test_an_event_that_breaks_the_format_is_left_out_and_counted(scanner):
    broken = [
        event("wrong type", 1, 1, extra=chunk(3, "x")),
        event("endless number", 2, 1, extra=varint(3 << 3) + b"\xff" * 11),
        event("too long", 3, 1, extra=varint(4 << 3 | 2) + varint(50)),
        event("group", 4, 1, extra=varint(9 << 3 | 3)),
        event("field 0", 5, 1, extra=b"\x00\x00"),
        event("bad stat", 6, 1, extra=chunk(4, number(1, 1) + number(5, 3))),
    ]
    space_ = read_space(space(plane("p", line(1, event("a", 0, 9), *broken, event("z", 7, 1), name="t"))), scanner)
    assert space_.planes[0].events.offset_ps.tolist() == [0, 7]
    assert words(space_) == ["line t of plane p: 6 events that break the format were left out"]


def test_damage_to_line_plane_and_file_is_told_apart(scanner):
    torn = line(1, event("a", 0, 1), name="t", extra=b"\x07")
    data = space(plane("p", torn, extra=chunk(1, "x") + chunk(6, chunk(1, "x")) + chunk(4, number(2, 1)) + b"\x00ab"))
    space_ = read_space(data + chunk(3, "later") + number(2, 1) + b"\x06", scanner)
    assert words(space_) == [
        "file: 1 byte at its end breaks the format and was not read",
        "file: 1 field of a wrong type was left out",
        "plane p: 3 bytes at its end break the format and were not read",
        "plane p: 1 field of a wrong type was left out",
        "plane p: 1 name that breaks the format was left out",
        "plane p: 1 property that breaks the format was left out",
        "line t of plane p: 1 byte at its end breaks the format and was not read",
    ]
    assert (space_.warnings, len(space_.planes[0].events)) == (("later",), 1)


def test_of_more_fields_than_any_capture_has_the_first_16_384_are_read(scanner):
    data = space(plane("p")) + chunk(2, "e") * 16_383
    assert (len(read_space(data, scanner).errors), words(read_space(data, scanner))) == (16_383, [])
    more = read_space(data + chunk(2, "e") * 2, scanner)
    assert len(more.errors) == 16_383
    assert words(more) == ["file: 6 bytes at its end break the format and were not read"]


def test_of_a_file_that_is_cut_short_whole_events_are_kept(scanner):
    head = space(plane("first", line(1, event("a", 0, 1))))
    events = [event("b", offset, 100) for offset in range(1_000, 1_010)]
    data = head + space(plane("second", line(1, *events, name="thread")))
    cut = data[: data.index(b"second") + len("second") + 2 + 2 + 8 + 4 * 9 + 3]
    space_ = read_space(cut, scanner)
    first, second = space_.planes
    assert (len(first.events), first.names) == (1, ["a"])
    assert 0 < len(second.events) < 10
    assert second.names == ["event 1"]
    assert [damage.where for damage in space_.damage] == ["file", "plane second", "line thread of plane second"]
    assert space_.damage[0].what == f"it is cut short: {len(data) - len(cut)} bytes are missing"


@pytest.mark.parametrize("data", [b"hello, this is no trace", b"\n\nhello\n", b'{"a": 1}', b"\x1f\x8b\x08zipped"])
def test_what_is_no_xspace_has_damage_and_no_planes(data, scanner):
    space_ = read_space(data, scanner)
    assert len(space_.planes) == 0
    assert len(space_.damage) > 0


def test_an_empty_file_is_an_empty_space(scanner):
    assert parts(read_space(b"", scanner)) == [(), (), (), (), []]


def test_a_memory_map_is_read_as_bytes_are(tmp_path, scanner):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(WHOLE)
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        space_ = read_space(mapped, scanner)
        assert parts(space_) == parts(read_space(WHOLE, scanner))
    assert len(space_.planes[0].events) == 3  # nothing refers to the map any more: it could be closed


@needs_compiled
def test_the_environment_asks_for_protobuf(monkeypatch):
    assert available_scanner() == "compiled"
    monkeypatch.setenv(SCANNER_VARIABLE, "protobuf")
    assert read_space(WHOLE).scanner == "protobuf"


@needs_compiled
def test_a_plane_outside_the_data_is_refused():
    with pytest.raises(ValueError, match="outside"):
        scan_compiled(b"abc", 1, 4)


STAT_VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(Unsigned),
    st.floats(),
    st.text(max_size=3),
    st.text(max_size=3).map(Ref),
    st.binary(max_size=3),
)
STATS = st.lists(
    st.tuples(st.one_of(st.sampled_from("abc"), st.integers(-(2**63), 2**63 - 1)), STAT_VALUES), max_size=3
)
INT64 = st.integers(-(2**63), 2**63 - 1)
EVENTS = st.builds(
    event,
    st.one_of(st.sampled_from(["train", "Iterator::Root", "é"]), INT64),
    st.none() | INT64,
    st.none() | INT64,
    STATS,
    occurrences=st.none() | st.integers(0, 3),
)
LINES = st.lists(EVENTS, max_size=4).flatmap(
    lambda events: st.builds(
        lambda line_id, name, display, base: line(line_id, *events, name=name, display_name=display, timestamp_ns=base),
        INT64,
        st.text(max_size=3),
        st.text(max_size=3),
        INT64,
    )
)
PLANES = st.lists(LINES, max_size=3).flatmap(
    lambda lines: st.builds(
        lambda name, stats, of_name, first: plane(
            name, *lines, stats=stats, names={"train": Name("T", of_name)}, metadata_first=first
        ),
        st.text(max_size=3),
        STATS,
        STATS,
        st.booleans(),
    )
)
SPACES = st.lists(PLANES, max_size=3).map(lambda planes: space(*planes, warnings=["w"]))


@needs_compiled
@given(SPACES)
def test_both_scanners_read_any_space_alike(data):
    assert len(both(data).damage) == 0


@needs_compiled
def test_both_scanners_agree_wherever_a_file_is_cut_off():
    for size in range(len(WHOLE)):
        space_ = both(WHOLE[:size])
        assert sum(len(one.events) for one in space_.planes) <= 3


@needs_compiled
@pytest.mark.parametrize("seed", range(5))
def test_both_scanners_agree_on_damaged_bytes(seed):
    chance = random.Random(seed)
    for _ in range(100):
        data = bytearray(WHOLE)
        for _ in range(chance.randint(1, 4)):
            place, size = chance.randrange(len(data)), chance.randrange(4)
            data[place : place + size] = chance.randbytes(chance.randrange(4))
        assert len(both(bytes(data)).planes) <= 8


LARGE = {289_306: 6_024, 862_707: 26_723, 3_039_638: 23_128}
"""Events of public captures by the size of the file."""


@needs_compiled
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (range(200_000), {12_931: 196, 120_758: 706}),
        pytest.param(
            range(200_000, 10**9), {289_306: 6_024, 862_707: 26_723, 3_039_638: 23_128}, marks=pytest.mark.slow
        ),
    ],
)
def test_both_scanners_read_the_public_captures_alike(public_traces, sizes, expected):
    files = [file for file in (public_traces / "xplane").glob("*.xplane.pb") if file.stat().st_size in sizes]
    counts = {file.stat().st_size: sum(len(one.events) for one in both(file.read_bytes()).planes) for file in files}
    assert counts == expected
