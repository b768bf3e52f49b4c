"""The step clock, and reports of a framework's hooks to it."""

from types import ModuleType
from typing import Any

import pytest

from tests.collectors.inject.bench import LOOP, Bench
from traceviz.collectors.base import Window
from traceviz.collectors.frameworks.profilers import TensorFlowCollector

WINDOW = Window(first_step=5, steps=10)


@pytest.fixture
def steps(hook: Any) -> ModuleType:
    """The module with the clock."""
    module: ModuleType = hook("step_clock")
    return module


class Heard(list[object]):
    """Notifications of a listener: 3 for the start of step 3, (3, True) for its end."""

    def __init__(self, clock: object) -> None:
        super().__init__()
        clock.listen(self.append, lambda number, complete: self.append((number, complete)))  # type: ignore[attr-defined]


def test_boundaries_end_one_step_and_begin_the_next(steps: ModuleType) -> None:
    clock = steps.StepClock()
    heard = Heard(clock)
    clock.begin("keras")
    clock.boundary("keras")
    clock.boundary("keras", more=False)
    assert heard == [0, (0, True), 1, (1, True)]
    assert (clock.step, clock.steps_seen) == (None, 2)


def test_a_step_that_was_none_begins_again_with_its_number(steps: ModuleType) -> None:
    clock = steps.StepClock()
    heard = Heard(clock)
    clock.begin("keras")
    clock.boundary("keras")
    clock.pause("keras")
    clock.begin("keras")
    assert heard == [0, (0, True), 1, (1, False), 1]


def test_a_better_source_takes_over_and_lesser_ones_are_not_heard(steps: ModuleType) -> None:
    clock = steps.StepClock()
    heard = Heard(clock)
    clock.begin("tf_iterator")
    clock.begin("keras")
    clock.boundary("tf_iterator")
    clock.boundary("keras")
    assert heard == [0, (0, False), 0, (0, True), 1]
    assert clock.source == "keras"


def test_a_source_that_has_no_more_steps_lets_others_drive(steps: ModuleType) -> None:
    clock = steps.StepClock()
    clock.begin("keras")
    clock.boundary("keras", more=False)
    clock.release("keras")
    clock.begin("tf_iterator")
    assert (clock.source, clock.step) == ("tf_iterator", 0)


def test_a_listener_that_fails_does_not_stop_the_others(steps: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    clock = steps.StepClock()
    clock.listen(lambda _: 1 / 0)
    heard = Heard(clock)
    clock.begin("keras")
    assert heard == [0]
    assert capsys.readouterr().err == "traceviz: a part of the recording is off: ZeroDivisionError: division by zero\n"


def test_a_profiler_hears_of_a_step_before_and_after_everybody_else(steps: ModuleType) -> None:
    clock = steps.StepClock()
    heard: list[str] = []
    clock.listen(lambda _: heard.append("range"), lambda *_: heard.append("/range"))
    clock.listen(lambda _: heard.append("profiler"), lambda *_: heard.append("/profiler"), outermost=True)
    clock.begin("keras")
    clock.pause("keras")
    assert heard == ["profiler", "range", "/range", "/profiler"]


def test_the_first_that_repeats_leads_until_others_repeat_without_it(steps: ModuleType) -> None:
    leader = steps.Leader()
    first, second = object(), object()
    assert leader.leads(first, lambda: first)
    assert [leader.leads(second, lambda: second) for _ in range(8)] == [False] * 7 + [True]


def test_two_that_alternate_keep_the_first_in_the_lead(steps: ModuleType) -> None:
    leader = steps.Leader()
    first, second = object(), object()
    led = [(leader.leads(first, lambda: first), leader.leads(second, lambda: second)) for _ in range(20)]
    assert led == [(True, False)] * 20


def test_a_peek_at_the_data_does_not_keep_the_loop_from_being_counted(bench: Bench) -> None:
    peek = "import tensorflow as tf\nkept = tf.OwnedIterator(9)\nnext(kept)\n"
    left = bench.run(bench.script(peek + LOOP, 60), window=WINDOW)
    assert left.steps == list(range(5, 15))


def test_epochs_go_on_counting_and_their_ends_are_no_steps(bench: Bench) -> None:
    epochs = "import tensorflow as tf\nfor epoch in range(5):\n    for batch in tf.OwnedIterator(4): pass\n"
    left = bench.run(bench.script(epochs), window=Window(first_step=2, steps=None))
    assert left.statuses[0]["steps_recorded"] == len(left.steps)
    assert left.steps == sorted(set(left.steps))


def test_steps_that_the_program_marks_itself_are_counted_and_not_marked_again(bench: Bench) -> None:
    marking = (
        "import tensorflow as tf\nfrom tensorflow.python.profiler.trace import Trace\n"
        "for step in range(40):\n    with Trace('train', step_num=step + 1000, _r=1): pass\n"
    )
    left = bench.run(bench.script(marking), window=WINDOW)
    assert left.steps == list(range(1005, 1015))
    assert left.statuses[0]["source"] == "tf_step"


def test_a_pass_over_the_data_is_dropped_for_the_training_that_follows(bench: Bench) -> None:
    marking = "\nfrom tensorflow.python.profiler.trace import Trace\nfor step in range(40):\n"
    text = LOOP + marking + "    with Trace('train', step_num=step + 1000, _r=1): pass\n"
    left = bench.run(bench.script(text, 40), window=WINDOW)
    assert left.steps == list(range(1005, 1015))
    assert (len(left.traces), left.statuses[0]["source"]) == (1, "tf_step")


def test_a_program_that_profiles_itself_is_left_alone(bench: Bench) -> None:
    own = "import tensorflow as tf\ntf.profiler_v2.start('own')\n"
    left = bench.run(bench.script(own + LOOP + "tf.profiler_v2.stop()\n", 40), window=WINDOW)
    (problem,) = TensorFlowCollector().harvest(left.plan).problems
    assert (left.code, problem.code) == (0, "profiler-taken")
    assert (bench.folder / "own" / "plugins").exists()


def test_a_program_that_starts_its_profiler_within_the_window_gets_it(bench: Bench) -> None:
    own = "    if batch == 50:\n        tf.profiler_v2.start('own')\ntf.profiler_v2.stop()\n"
    left = bench.run(bench.script(LOOP + own, 60), window=Window(first_step=5, steps=50))
    (problem,) = TensorFlowCollector().harvest(left.plan).problems
    assert (left.code, problem.code) == (0, "profiler-taken")
    assert left.steps == [5, 6, 7, 8]
    assert (bench.folder / "own" / "plugins").exists()


def test_the_device_tracer_is_off_where_another_tool_has_it(bench: Bench) -> None:
    levels = []
    for tracer in ("nsys", None):
        own = Bench(bench.folder / str(tracer))
        own.folder.mkdir()
        left = own.run(own.script(LOOP, 40), window=WINDOW, device_tracer=tracer)
        levels.append([event["options"]["device_tracer_level"] for event in left.traces[0] if "options" in event])
    assert levels == [[0], [1]]
