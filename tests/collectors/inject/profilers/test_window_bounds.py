"""A profiler's window ends by steps, by events or by time, and reports which."""

from types import ModuleType
from typing import Any

import pytest

from tests.collectors.inject.bench import LOOP, Bench, Left
from traceviz.collectors.base import Problem, Window
from traceviz.collectors.frameworks.profilers import TensorFlowCollector

DEFAULT = Window()
EVENTS_OF_A_STEP = 60_000
HEAVY = LOOP + (
    "    with tf.profiler_v2_trace.Trace('x' * (20 * EVENTS)):\n        pass\n".replace("EVENTS", str(EVENTS_OF_A_STEP))
)
"""A loop whose steps have so many events, by the size of what the profiler saves of them."""
ENDLESS = LOOP + (
    "    from tensorflow.python.profiler import profiler_v2\n"
    "    import time; end = time.monotonic() + 120\n"
    "    while profiler_v2.running and time.monotonic() < end:\n"
    "        profiler_v2.events.append('x' * 4_000)\n"
    "        sum(range(2_000))\n"
)
"""A loop whose steps make events until the profiler is stopped."""


@pytest.fixture
def bounds(hook: Any) -> ModuleType:
    """The module with the bounds."""
    module: ModuleType = hook("profilers.window")
    return module


def run(bench: Bench, text: str, window: Window = DEFAULT, steps: int = 40) -> Left:
    text = text.replace("tf.profiler_v2_trace.Trace", "tf.trace.Trace")
    return bench.run(bench.script(text, steps), window=window)


def problems(left: Left) -> tuple[Problem, ...]:
    return TensorFlowCollector().harvest(left.plan).problems


@pytest.mark.parametrize(
    ("events", "ends_after"),
    [(500, 20), (10_000, 20), (11_000, 18), (28_000, 7), (140_000, 2), (290_000, 2), (700_000, 1)],
)
def test_a_window_ends_with_the_step_at_about_200_000_events(bounds: ModuleType, events: int, ends_after: int) -> None:
    window = bounds.Bounds(bounds.Load(events, 1_000, is_step=True), Window20())
    reached = next(step for step in range(1, 21) if window.reached_after(step))
    assert reached == ends_after
    assert window.reached_after(reached) == (bounds.STEPS if ends_after == 20 else bounds.TOO_MANY)


class Window20:
    """The default window as the hooks have it."""

    steps, is_default = 20, True


def test_without_a_trial_only_steps_and_time_end_a_window(bounds: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(bounds.time, "monotonic", lambda: now[0])
    window = bounds.Bounds(None, Window20())
    assert [window.reached_after(step) for step in (1, 19, 20)] == [None, None, bounds.STEPS]
    now[0] = 61.0
    assert window.reached_after(3) == bounds.TIME


def test_time_does_not_end_a_window_that_the_user_named(bounds: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Named:
        steps, is_default = 1000, False

    now = [0.0]
    monkeypatch.setattr(bounds.time, "monotonic", lambda: now[0])
    window = bounds.Bounds(None, Named())
    now[0] = 3600.0
    assert window.reached_after(3) is None


def test_steps_of_60_000_events_are_recorded_three_times_and_a_note_says_why(bench: Bench) -> None:
    left = run(bench, HEAVY)
    assert (left.code, left.err) == (0, "")
    assert left.steps == [10, 11, 12]
    (status,) = left.statuses
    assert (status["state"], status["ended_by"], status["steps_recorded"]) == ("saved", "events", 3)
    assert status["events_per_step"] == pytest.approx(EVENTS_OF_A_STEP, rel=0.01)
    (problem,) = problems(left)
    assert problem.code == "window-shortened"
    assert problem.message.startswith("The tensorflow profiler recorded 3 steps instead of 20. A step has about 60,0")


def test_a_healthy_loop_records_all_its_steps_and_no_note_and_nothing_of_the_trial_stays(bench: Bench) -> None:
    left = run(bench, LOOP)
    assert left.steps == list(range(10, 30))
    assert problems(left) == ()
    assert left.statuses[0]["ended_by"] == "window"
    assert left.statuses[0]["trial_cost_ns"] > 0
    assert list(left.plan.raw("tensorflow").rglob("*trial*")) == []
    assert len(left.traces) == 1


def test_a_window_from_step_0_has_no_trial_and_all_its_steps(bench: Bench) -> None:
    left = run(bench, HEAVY, Window(0, 5))
    assert left.steps == [0, 1, 2, 3, 4]
    assert left.statuses[0]["trial_cost_ns"] is None


def test_a_step_that_never_ends_is_stopped_within_by_its_events(bench: Bench) -> None:
    """In the trial after a quarter of a second, in the window at about 600,000 events."""
    left = run(bench, ENDLESS, Window(1, 3), steps=3)
    assert (left.code, left.err) == (0, "")
    (status,) = left.statuses
    assert (status["ended_by"], status["steps_recorded"]) == ("events", 0)
    assert problems(left)[0].message.startswith("The tensorflow profiler recorded 0 steps instead of 3. Its steps have")


def test_a_trial_traces_no_device_and_the_window_does(bench: Bench) -> None:
    levels = (
        "import tensorflow.python.profiler.profiler_v2 as profiler\n"
        "def options(original=profiler.ProfilerOptions, **levels):\n"
        "    print(levels['device_tracer_level'])\n"
        "    return original(**levels)\n"
        "profiler.ProfilerOptions = options\n"
    )
    assert run(bench, levels + LOOP).out.split() == ["0", "1"]
