"""Direction and memories of copies and fills, as the profilers of several devices state them."""

from __future__ import annotations

import pytest

from tests.parsers.kineto import files as k
from tests.parsers.kineto.tables import read, rows


@pytest.mark.parametrize(
    ("name", "kind", "source", "target"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "h2d", "pageable", "device"),
        ("Memcpy HtoD (Host -> Device)", "h2d", "unknown", "device"),
        ("Memcpy DtoH (Device -> Pinned)", "d2h", "device", "pinned"),
        ("Memcpy DtoD (Device -> Device)", "d2d", "device", "device"),
        ("Memcpy PtoP (Device -> Device)", "p2p", "device", "device"),
        ("Memcpy HtoA (Pageable -> Array)", "h2d", "pageable", "array"),
        ("Memcpy DtoH (Device Static -> Pageable)", "d2h", "device_static", "pageable"),
        ("CopyDeviceToHost", "d2h", "device", "unknown"),
        ("Memcpy Unknown (Unknown -> Unknown)", "unknown", "unknown", "unknown"),
    ],
)
def test_name_of_a_copy_says_its_kind_and_memories(tmp_path, name, kind, source, target):
    trace = read(tmp_path, [k.copy(0, 1, name=name, size=7)])
    assert rows(trace, "memcpy", "kind", "src_memory", "dst_memory", "bytes") == [(kind, source, target, 7)]


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("Memcpy", {"kind": "DtoH"}, ("d2h", "device", "unknown")),
        ("Memcpy", {"direction": "HOST_TO_DEVICE"}, ("h2d", "unknown", "device")),
        # PyTorch's CUPTI monitor: words, and numbers of CUPTI where it has no word
        (
            "Memcpy",
            {"copy kind": "HtoD", "src kind": "pageable", "dst kind": "device"},
            ("h2d", "pageable", "device"),
        ),
        ("Memcpy", {"copy kind": "DtoA", "src kind": "device", "dst kind": "array"}, ("d2d", "device", "array")),
        ("Memcpy", {"copy kind": "PtoP", "src kind": "device", "dst kind": "device"}, ("p2p", "device", "device")),
        ("Memcpy", {"copy kind": 9, "src kind": "pinned", "dst kind": "pageable"}, ("h2h", "pinned", "pageable")),
        ("Memcpy", {"copy kind": 10, "src kind": 3, "dst kind": 3}, ("p2p", "device", "device")),
        ("Memcpy", {"copy kind": "1"}, ("h2d", "unknown", "device")),
        ("Memcpy", {"copy kind": "HtoD", "src kind": "managed", "dst kind": "device_static"},
         ("h2d", "managed", "device_static")),
        # The two memories show the direction where nothing else does; managed memory is on both sides.
        ("Memcpy", {"copy kind": 0, "src kind": "device", "dst kind": "pinned"}, ("d2h", "device", "pinned")),
        ("Memcpy", {"src kind": "managed", "dst kind": "device"}, ("unknown", "managed", "device")),
        ("Memcpy", {"copy kind": 77, "src kind": "unknown", "dst kind": 99}, ("unknown", "unknown", "unknown")),
        # What the name states is not doubted.
        ("Memcpy DtoH (Device -> Pinned)", {"copy kind": "HtoD"}, ("d2h", "device", "pinned")),
        # Intel's and IBM's profilers
        ("Memcpy M2D (Memory -> Device)", {}, ("h2d", "pageable", "device")),
        ("Memcpy D2H (Device -> Host)", {}, ("d2h", "device", "unknown")),
        ("Memcpy S2D (Shared -> Device)", {}, ("unknown", "managed", "device")),
        ("Memcpy (HtoD)", {"call": "HtoD"}, ("h2d", "unknown", "device")),
    ],
)  # fmt: skip
def test_arguments_say_of_a_copy_what_its_name_does_not(tmp_path, name, args, expected):
    trace = read(tmp_path, [k.copy(0, 1, name=name, args=args)])
    assert rows(trace, "memcpy", "kind", "src_memory", "dst_memory") == [expected]


def test_each_copy_has_what_its_own_arguments_say(tmp_path):
    kinds = [("HtoD", "pageable", "device"), ("DtoH", "device", "pinned")] * 3
    events = [
        k.copy(10 * place, 1, name="Memcpy", args={"copy kind": kind, "src kind": source, "dst kind": target})
        for place, (kind, source, target) in enumerate(kinds)
    ]
    trace = read(tmp_path, [*events, k.copy(90, 1, name="Memcpy")])
    described = [("h2d", "pageable", "device"), ("d2h", "device", "pinned")] * 3 + [("unknown",) * 3]
    assert rows(trace, "memcpy", "kind", "src_memory", "dst_memory") == described


def test_fill_says_which_memory(tmp_path):
    said: list[tuple[str, dict[str, object], str]] = [
        ("Memset (Device)", {}, "device"),
        ("Memset (Managed)", {}, "managed"),
        ("Memset (Unknown)", {}, "unknown"),
        ("Memset", {}, "device"),
        ("Memset", {"memory kind": 2}, "pinned"),  # a number of CUPTI
        ("Memset", {"memory kind": "managed"}, "managed"),
        ("Memset (0 -> Shared)", {}, "managed"),  # Intel's profiler
    ]
    events = [k.fill(2 * place, 1, name=name, args=args) for place, (name, args, _) in enumerate(said)]
    assert rows(read(tmp_path, events), "memset", "memory") == [(memory,) for *_, memory in said]
