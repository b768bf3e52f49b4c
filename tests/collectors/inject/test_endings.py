"""However a program ends, what was recorded is saved, and the program ends as it would have ended without us."""

import signal

import pytest

from tests.collectors.inject.bench import LOOP, Bench, Left
from traceviz.collectors.base import Window
from traceviz.collectors.frameworks.profilers import TensorFlowCollector

OPEN = Window(first_step=5, steps=None)
"""A window that only the end of the program closes."""

IN_STEP = LOOP + "    if batch == 90:\n        "
"""A loop with something to come in its tenth step: 4 complete ones are recorded by then."""


def run(bench: Bench, text: str, window: Window = OPEN) -> Left:
    return bench.run(bench.script(text, 100), window=window)


def test_the_window_holds_just_the_steps_asked_for(bench: Bench) -> None:
    left = run(bench, LOOP, Window(first_step=10, steps=20))
    assert (left.code, left.err) == (0, "")
    assert left.steps == list(range(10, 30))
    assert left.statuses[0]["state"] == "saved"
    assert left.statuses[0]["steps_recorded"] == 20


def test_an_open_window_ends_with_the_loop(bench: Bench) -> None:
    assert run(bench, LOOP).steps == list(range(5, 100))


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("import sys; sys.exit(3)", 3),
        ("raise ValueError('no')", 1),
        ("import os; os._exit(4)", 4),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 2)", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM),
        ("import os; os.kill(os.getpid(), 1)", -signal.SIGHUP),
    ],
)
def test_an_ending_within_the_window_saves_and_keeps_its_status(bench: Bench, ending: str, code: int) -> None:
    left = run(bench, IN_STEP + ending)
    assert left.code == code
    assert left.steps == [5, 6, 7, 8]
    assert left.statuses[0]["state"] == "saved"


def test_kill_leaves_a_status_that_says_that_it_was_recording(bench: Bench) -> None:
    left = run(bench, IN_STEP + "import os; os.kill(os.getpid(), 9)")
    assert left.code == -signal.SIGKILL
    assert left.statuses[0]["state"] == "recording"
    harvest = TensorFlowCollector().harvest(left.plan)
    assert [problem.code for problem in harvest.problems] == ["killed-while-recording"]
    assert len(harvest.sources) == 0


def test_kill_after_the_window_loses_nothing(bench: Bench) -> None:
    left = run(bench, IN_STEP + "import os; os.kill(os.getpid(), 9)", Window(first_step=2, steps=3))
    assert left.steps == [2, 3, 4]
    assert len(TensorFlowCollector().harvest(left.plan).sources) == 1


def test_a_handler_of_the_program_stays_and_its_way_out_saves(bench: Bench) -> None:
    handler = "import signal, sys\nsignal.signal(15, lambda *_: sys.exit(7))\n"
    left = run(bench, handler + IN_STEP + "import os; os.kill(os.getpid(), 15)")
    assert left.code == 7
    assert left.steps == [5, 6, 7, 8]


def test_signals_are_as_they_were_before_and_after_the_window(bench: Bench) -> None:
    tell = "\nimport signal; print(int(signal.getsignal(15)))"
    left = run(bench, tell + "\n" + LOOP + tell, Window(first_step=2, steps=3))
    assert left.out.split() == ["0", "0"]


def test_a_program_that_ends_before_the_window_says_which_window_would_do(bench: Bench) -> None:
    left = bench.run(bench.script(LOOP, 8), window=Window(first_step=10, steps=20))
    (problem,) = TensorFlowCollector().harvest(left.plan).problems
    assert left.statuses[0]["state"] == "not-started"
    assert problem.message.startswith("The tensorflow profiler recorded nothing of the program: it ended")
    assert "after 8 steps; recording begins at step 10; use --steps 4:8" in problem.message


def test_a_window_in_time_begins_and_ends_by_the_clock(bench: Bench) -> None:
    slow = LOOP + "    import time; time.sleep(0.02)\n"
    left = bench.run(bench.script(slow, 100), window=Window(0, None, delay_s=0.3, duration_s=0.7))
    assert left.code == 0
    # A step sleeps for 20 ms: the window of 0.7 s is over before the 100 steps are.
    assert left.steps == list(range(left.steps[0], left.steps[-1] + 1))
    assert 5 <= len(left.steps) <= 35
    assert left.statuses[0]["written_unix_ns"] - left.statuses[0]["started_unix_ns"] > 200_000_000


def test_a_second_signal_while_saving_does_not_enter_the_profiler_twice(bench: Bench) -> None:
    slow_stop = (
        "import tensorflow.python.profiler.profiler_v2 as profiler, os, time\n"
        "def stop(original=profiler.stop):\n"
        "    if 'trial' not in profiler.running[0]: os.kill(os.getpid(), 15)\n"
        "    time.sleep(0.2); original()\n"
        "profiler.stop = stop\n"
    )
    left = run(bench, slow_stop + LOOP, Window(first_step=2, steps=3))
    assert left.code == -signal.SIGTERM
    assert left.steps == [2, 3, 4]


def test_a_program_that_waits_is_saved_by_sigterm_from_outside(bench: Bench) -> None:
    script = bench.script(IN_STEP + "print('here', flush=True); import time; time.sleep(600)", 100)
    process, plan = bench.start(script, window=OPEN)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.terminate()
    process.communicate(timeout=120)  # long before it would end by itself
    assert Left(process.returncode, "", "", plan).steps == [5, 6, 7, 8]
    assert process.returncode == -signal.SIGTERM
