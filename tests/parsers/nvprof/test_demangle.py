"""Mangled names, ordinary and hostile. The bombs are made here: each part of such a name repeats two before it."""

import subprocess
import sys
from pathlib import Path

import pycxxfilt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceviz.parsers.nvprof import demangle, demangle_child
from traceviz.parsers.nvprof.demangle import LONGEST_NAME, MOST_FAILURES, Demangler
from traceviz.parsers.shared.notes import Notes

pytestmark = pytest.mark.process

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def bomb(steps: int) -> str:
    """Return a function of pointers to members, each of the class and of the type that the one before is."""
    name = "_Z1fP1a"
    for step in range(1, steps):
        name += "M" + 2 * f"S{_DIGITS[step - 1]}_"
    return name


def left(demangler: Demangler) -> list[tuple[str, int | None]]:
    notes = Notes()
    demangler.note(notes)
    return [(code, count) for code, _, count, _ in notes.rows]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_Z3fooi", "foo(int)"),
        ("i", "i"),
        ("volta_sgemm", "volta_sgemm"),
        ("_Z", "_Z"),
        ("_Z3foo\0i", "_Z3foo\0i"),
        ("_Z3foo\ni", "_Z3foo\ni"),
        ("_Z3foo\udcffi", "_Z3foo\udcffi"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_Z4größi", "_Z4größi"),
        ("_Z6größi", "größ(int)"),
        ("", ""),
    ],
)
def test_only_mangled_names_are_demangled_and_damaged_ones_stay(name, expected):
    demangler = Demangler()
    assert demangler.demangled([name]) == [expected]
    assert left(demangler) == []


def test_names_keep_their_order_and_each_is_asked_for_once(monkeypatch):
    asked = []
    answers = demangle._answers
    monkeypatch.setattr(demangle, "_answers", lambda names: asked.extend(names) or answers(names))
    demangler = Demangler()
    assert demangler.demangled(["_Z1bi", "x", "_Z1ai", "_Z1bi"]) == ["b(int)", "x", "a(int)", "b(int)"]
    assert demangler.demangled(["_Z1ai", "_Z1ci"]) == ["a(int)", "c(int)"]
    assert asked == ["_Z1bi", "_Z1ai", "_Z1ci"]


def test_a_long_name_of_templates_is_demangled():
    """As those of CUTLASS: some kilobytes, with many substitutions that repeat little."""
    arguments = "".join(f"N7cutlass5ShapeILi{number}ELi{number + 1}EEE" for number in range(200))
    name = f"_ZN7cutlass6KernelIJ{arguments}EEEvT_S1_S2_S1_"
    assert 4_000 < len(name) < LONGEST_NAME
    (shown,) = Demangler().demangled([name])
    assert shown.startswith("void cutlass::Kernel<cutlass::Shape<0, 1>, cutlass::Shape<1, 2>")
    assert shown.count("cutlass::Shape<") >= 200


def test_the_text_of_a_bomb_grows_without_bound_as_the_tests_below_suppose():
    few, more = (len(text) for text in Demangler().demangled([bomb(6), bomb(12)]))
    assert more > 30 * few
    assert len(bomb(12)) < 100


def test_bombs_stay_mangled_and_cost_the_names_around_them_nothing():
    demangler = Demangler()
    bombs = [bomb(20), bomb(34)]
    names = ["_Z1ai", bombs[0], "_Z1bi", bombs[1], "_Z1ci"]
    assert demangler.demangled(names) == ["a(int)", bombs[0], "b(int)", bombs[1], "c(int)"]
    assert left(demangler) == [("name-left-mangled", 2)]


def test_after_some_names_that_cost_a_process_the_rest_stays_as_it_is():
    bombs = [f"{bomb(34)}{'i' * number}" for number in range(MOST_FAILURES)]
    demangler = Demangler()
    names = ["_Z1ai", *bombs, "_Z1bi"]
    assert demangler.demangled(names) == ["a(int)", *bombs, "_Z1bi"]
    assert left(demangler) == [("name-left-mangled", MOST_FAILURES + 1)]


def test_names_too_long_to_be_asked_for_stay_and_are_counted():
    longest, longer = ("_Z1f" + "P" * (length - 5) + "i" for length in (LONGEST_NAME, LONGEST_NAME + 1))
    demangler = Demangler()
    shown = demangler.demangled([longest, longer])
    assert (shown[0][:6], shown[1]) == ("f(int*", longer)
    assert left(demangler) == [("name-left-mangled", 1)]


def test_all_names_of_a_process_together_have_a_limit(monkeypatch):
    """Each may be long, but not all of them."""
    room = demangle_child.LONGEST_RESULTS // demangle_child.LONGEST_RESULT
    names = [f"{bomb(12)}{'P' * number}i" for number in range(8 * room)]
    whole = len(Demangler().demangled(names[:1])[0])
    demangler = Demangler()
    shown = demangler.demangled(names)
    assert whole > 20_000
    assert sum(map(len, shown)) < demangle_child.LONGEST_RESULTS + sum(map(len, names))
    ((_, count),) = left(demangler)
    assert 0 < (count or 0) < len(names)


def test_without_a_child_names_stay_mangled_and_that_is_said(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    demangler = Demangler()
    assert demangler.demangled(["_Z1ai", "_Z1bi"]) == ["_Z1ai", "_Z1bi"]
    assert left(demangler) == [("name-left-mangled", 2)]


_PIECES = (
    "S_ S0_ S1_ T_ T0_ Dp DpT_ P R K M F E I N J 1a 2bc i v L Li1E X sp sr dt cv fl pl Z Ul vE_ Dn DT A A9_ C1 D0 _"
)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(_PIECES.split()), min_size=1, max_size=300).map("".join), min_size=1, max_size=30)
)
def test_whatever_the_name_the_process_lives_and_its_text_is_bounded(tails):
    names = [f"_Z1f{tail}" for tail in tails]
    shown = Demangler().demangled([*names, "_Z1ai"])
    assert len(shown) == len(names) + 1
    assert max(map(len, shown)) <= demangle_child.LONGEST_RESULT


_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdin=sys.stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
"""


@pytest.mark.parametrize(
    "name", [bomb(25), bomb(34), "_Z1f" + "P" * 200_000 + "i", "_Z1fIJ" + "i" * 99 + "EEv" + "Dp" * 9 + "T_"]
)
def test_a_name_takes_little_memory_and_time(name):
    """Far below the needs of the bombs without limits (3.9 GB, 150 s), on any machine."""
    packages = str(Path(pycxxfilt.__file__).parent.parent)
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-I", "-S", demangle_child.__file__, packages]
    done = subprocess.run(command, input=f"{name}\n", capture_output=True, text=True, check=True)
    kilobytes, seconds = map(float, done.stdout.split())
    assert kilobytes * 1024 < demangle_child.MOST_MEMORY + (64 << 20)
    assert seconds < 10 * demangle_child.MOST_SECONDS
