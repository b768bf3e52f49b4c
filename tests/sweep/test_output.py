"""The kept output of a run, its end as text, and time limits of runs."""

from dataclasses import replace

import pytest

from tests.compare.sides_of import report
from traceviz.collectors.run.outcome import ending_of
from traceviz.compare.sides.measures import BUSY
from traceviz.compare.sides.sides import Side
from traceviz.core.units import format_limit, parse_ns
from traceviz.parsers.run.manifest import Ending
from traceviz.report import Note, Severity
from traceviz.sweep.child import Output, last_lines, program_lines
from traceviz.sweep.summary import busy_in_words
from traceviz.sweep.times import roughly

NOTE = Note(BUSY, Severity.WARNING, "Other programs used 1.9 of 2 cores.", None)


def side(label, *busy):
    """Return a side of runs, some of them on a busy machine."""
    return Side(label, tuple(replace(report([1, 1]), notes=(NOTE,) * one) for one in busy))


def test_a_busy_machine_is_reported_with_repeats_too():
    sides = (side("a=1", 1, 0, 1), side("a=2", 0, 0, 0), side("a=3", 0, 1, 0))
    assert busy_in_words(sides) == (
        "Other programs used the machine during 3 of 9 runs: a=1 (2), a=3. "
        "Times of these runs are longer than they would be alone."
    )


def test_a_quiet_machine_is_not_mentioned():
    assert busy_in_words((side("a=1", 0, 0), side("a=2", 0))) == ""


TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1\n    raise MemoryError if a else b\n'


def test_of_40_bytes_the_first_and_last_8_are_kept():
    output = Output(head=8, tail=8)
    for part in ("beginning", ", then more and more, ", "and the end"):
        output.add(part.encode())
    assert output.text() == "beginnin\n… 26 bytes left out …\n the end"


def test_a_million_bytes_take_no_more_than_the_bounds():
    output = Output(head=100, tail=100)
    for _ in range(10_000):
        output.add(b"x" * 100)
    assert output.text().count("x") == 200
    assert "999,800 bytes left out" in output.text()


def test_lines_of_the_program_are_as_a_terminal_shows_them_last():
    text = "traceviz: recording\n 10 %\r100 %\r\n\x1b[31mred\x1b[0m\n\nend"
    assert program_lines(text) == ["100 %", "red", "end"]
    assert last_lines(str(number) for number in range(100)) == tuple(map(str, range(80, 100)))
    assert last_lines(["a\x07b", "y" * 1000])[0] == "a␇b"
    assert len(last_lines(["y" * 1000])[0]) == 300


@pytest.mark.parametrize(
    ("outcome", "exited", "output", "reason", "words"),
    [
        ("finished", (0, None), "MemoryError", "", "finished"),
        ("interrupted", (130, 2), "", "", "interrupted"),
        ("failed", (3, None), "", "exit code 3", "crashed, exit code 3"),
        (
            "failed",
            (1, None),
            f"{TRACEBACK}ValueError: no",
            "exit code 1: ValueError",
            "crashed: ValueError",
        ),
        ("failed", (1, None), f"{TRACEBACK}a.b.MyError", "exit code 1: MyError", "crashed: MyError"),
        ("failed", (1, None), f"{TRACEBACK}MemoryError", "out of memory", "crashed: out of memory"),
        ("failed", (1, None), f"{TRACEBACK}torch.OutOfMemoryError: CUDA", "out of memory", "crashed: out of memory"),
        (
            "failed",
            (1, None),
            f"{TRACEBACK}RuntimeError: CUDA out of memory.",
            "out of memory",
            "crashed: out of memory",
        ),
        ("failed", (1, None), f"W: ran out of memory\n{TRACEBACK}KeyError: 1", "exit code 1: KeyError", None),
        ("failed", (1, None), "2026: E RESOURCE_EXHAUSTED: OOM", "out of memory", None),
        ("killed", (134, 6), "terminate: std::bad_alloc", "out of memory", "killed (out of memory)"),
        ("killed", (137, 9), "", "SIGKILL", "killed (SIGKILL)"),
        ("timed-out", (143, 15), "", "timed out after 10 min", "timed out after 10 min"),
        ("failed", (127, None), "", "command not found", "crashed: command not found"),
        ("failed", (1, None), f"{TRACEBACK}<script>: x", "exit code 1", None),
    ],
)
def test_an_ending_is_put_into_words_of_ours(outcome, exited, output, reason, words):
    code, number = exited
    ending = ending_of(outcome, code=code, number=number, limit_s=600, output=output)
    assert ending.reason == reason
    assert words in {None, Ending(ending.outcome, ending.reason).in_words}


def test_a_kill_while_the_system_lacked_memory_is_want_of_memory():
    assert ending_of("killed", code=137, number=9, starved=True).reason == "out of memory"
    assert ending_of("killed", code=143, number=15, starved=True).reason == "SIGTERM"


def test_times_are_read_and_said_as_people_write_them():
    texts = ("1.5", "10 min", "2h", "20us", "3 ns", "0.5 s", "5min")
    assert [parse_ns(text) for text in texts] == [
        *(1_500_000_000, 600_000_000_000, 7_200_000_000_000, 20_000, 3, 500_000_000, 300_000_000_000)
    ]
    assert [parse_ns(text) for text in ("", "soon", "-1", "nan", "inf", "1e400")] == [None] * 6
    assert [format_limit(limit) for limit in (1.5, 60, 90, 600, 5400, 7200)] == [
        *("1.5 s", "1 min", "90 s", "10 min", "1.5 h", "2 h")
    ]
    assert [roughly(seconds) for seconds in (0.2, 41.4, 99.9, 600, 12_000, 14_399)] == [
        *("1 s", "41 s", "2 min", "10 min", "3 h 20 min", "4 h")
    ]
