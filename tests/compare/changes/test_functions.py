"""The function of the program with most of a change, by samples of the stack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compare.sections_of import facts, run, section, side, table
from tests.compare.sides_of import report
from traceviz.compare.changes.functions import FunctionChange, compare_functions
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document

NAMES = "function inclusive_ns self_ns own"
LIBRARIES = ("subprocess.py run", "torch/optim/adam.py step")


def recorded(label, times_ns, steps=10, step_ns=1000, spread=3):
    """Return a side whose main thread spent so much time in functions during its steps."""
    rows = [(name, time, 0, name not in LIBRARIES) for name, time in times_ns.items()]
    durations = [step_ns + index % spread for index in range(steps)]
    sections = section("host_time", facts(steps_ns=max(times_ns.values())), table("Functions", NAMES, *rows))
    plain = report(durations)
    return side(label, replace(plain, sections=(*plain.sections, sections)))


def of_job(monitor, step, **more):
    train = monitor + step
    times = {"the script job.py": train, "job.py train": train, "job.py Monitor.sample": monitor, **more}
    return {name: time for name, time in times.items() if time}


def test_a_call_that_was_removed_is_named_with_the_function_of_a_library_in_it():
    base = recorded("a", {**of_job(6_000, 4_000), "subprocess.py run": 5_900}, step_ns=999)
    new = recorded("b", of_job(0, 4_000), step_ns=399)
    found = compare_functions(base, new)
    assert isinstance(found, FunctionChange)
    assert (found.name, found.called, found.per_step) == ("job.py Monitor.sample", "subprocess.py run", True)
    assert (round(found.base_ns), found.new_ns, round(found.share, 2)) == (600, 0, 1.0)


def test_the_verdict_says_which_function_and_how_much_of_the_gain_it_is():
    base = recorded("a", of_job(6_000, 4_000), step_ns=999)
    new = recorded("b", of_job(0, 4_000), step_ns=399)
    sentence = document(compare([base, new])).verdict.sentence
    assert (
        "100 % of the gain in the main thread is job.py Monitor.sample (600 ns → none per step, by samples)."
        in sentence
    )


def test_a_function_that_takes_longer_is_named_even_if_its_share_fell():
    base = recorded("a", of_job(1_000, 9_000), step_ns=999)
    new = recorded("b", {**of_job(1_000, 19_000), "job.py augment": 18_000}, step_ns=1999)
    found = compare_functions(base, new)
    assert found is not None
    assert (found.name, round(found.new_ns)) == ("job.py augment", 1800)


@pytest.mark.parametrize("new", [of_job(6_000, 4_000), of_job(6_100, 4_200)])
def test_healthy_runs_that_take_as_long_name_no_function(new):
    assert compare_functions(recorded("a", of_job(6_000, 4_000)), recorded("b", new)) is None


def test_a_change_that_all_functions_share_names_none_that_has_less_than_half_of_it():
    parts = {f"job.py part{index}": 2_000 for index in range(5)}
    base = recorded("a", {"the script job.py": 10_000, **parts}, step_ns=999)
    new = recorded("b", {"the script job.py": 20_000, **dict.fromkeys(parts, 4000)}, step_ns=1999)
    assert compare_functions(base, new) is None


def test_a_side_without_stacks_names_no_function():
    assert compare_functions(recorded("a", of_job(6_000, 4_000)), side("b", run(10))) is None
