"""The processes that record: the one that trains, for any kind of start; and the report if none was reached."""

import pytest

from tests.collectors.inject.bench import LOOP, Bench
from traceviz.collectors.base import Window
from traceviz.collectors.frameworks.profilers import TensorFlowCollector

WINDOW = Window(first_step=5, steps=10)
STEPS = list(range(5, 15))
TRAINING = LOOP.replace("STEPS", "30")


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [(("-m", "train"), ""), (("-c", TRAINING), ""), (("-",), TRAINING)],
    ids=["-m", "-c", "stdin"],
)
def test_a_program_is_recorded_however_it_is_started(bench: Bench, arguments: tuple[str, ...], stdin: str) -> None:
    bench.script(TRAINING)
    assert bench.run(*arguments, window=WINDOW, stdin=stdin).steps == STEPS


def test_a_program_reads_its_own_stdin(bench: Bench) -> None:
    left = bench.run(bench.script(TRAINING + "print(input())"), window=WINDOW, stdin="42\n")
    assert (left.out, left.steps) == ("42\n", STEPS)


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_ignores_the_hooks_is_a_problem_with_its_remedy(bench: Bench, flag: str) -> None:
    left = bench.run(flag, "-c", "print(1)", window=WINDOW)
    (problem,) = TensorFlowCollector().harvest(left.plan).problems
    assert (left.code, left.out, problem.code) == (0, "1\n", "not-injected")
    assert flag in problem.message + problem.fix


def test_a_program_without_the_framework_is_no_problem(bench: Bench) -> None:
    left = bench.run("-c", "print(1)", window=WINDOW)
    harvest = TensorFlowCollector().harvest(left.plan)
    assert (left.out, left.err, left.statuses) == ("1\n", "", [])
    assert (harvest.sources, harvest.problems) == ((), ())


def test_a_launcher_leaves_the_recording_to_the_program_it_starts(bench: Bench) -> None:
    bench.script(TRAINING)
    launcher = "import subprocess, sys, tensorflow\nsubprocess.run([sys.executable, 'train.py'], check=True)\n"
    left = bench.run("-c", launcher, window=WINDOW)
    assert left.steps == STEPS
    assert sorted(status["state"] for status in left.statuses) == ["not-started", "saved"]
    assert TensorFlowCollector().harvest(left.plan).problems == ()


def test_ranks_record_into_folders_of_their_own(bench: Bench) -> None:
    bench.script(TRAINING)
    launcher = (
        "import os, subprocess, sys\n"
        "ranks = [subprocess.Popen([sys.executable, 'train.py'], env={**os.environ, 'RANK': str(rank)})"
        " for rank in range(3)]\n"
        "sys.exit(sum(rank.wait() for rank in ranks))\n"
    )
    left = bench.run("-c", launcher, window=WINDOW)
    folders = sorted(path.name for path in left.plan.raw("tensorflow").iterdir())
    assert folders == ["rank0", "rank1", "rank2"]
    assert len(left.traces) == 3


def test_what_a_training_process_starts_does_not_record(bench: Bench) -> None:
    (bench.folder / "other.py").write_text(TRAINING)
    starting = "    if batch == 20:\n        import subprocess, sys; subprocess.run([sys.executable, 'other.py'])\n"
    left = bench.run(bench.script(TRAINING + starting.replace("    pass\n", "")), window=WINDOW)
    assert left.steps == STEPS
    assert len(left.statuses) == 1


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_a_fork_of_a_training_process_does_not_record(bench: Bench, leave: str) -> None:
    forking = (
        f"    if batch == 22 and not os.fork():\n        for other in tf.OwnedIterator(50): pass\n        {leave}\n"
    )
    left = bench.run(bench.script("import os, sys\n" + TRAINING + forking), window=WINDOW)
    assert left.steps == STEPS
    assert len(left.statuses) == 1


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_a_fork_that_trains_by_itself_saves_what_only_its_end_closes(bench: Bench, leave: str) -> None:
    forking = (
        "import os, sys\nimport tensorflow as tf\nif not os.fork():\n"
        f"    for batch in tf.OwnedIterator(9): pass\n    {leave}\nsys.exit(os.wait()[1])\n"
    )
    left = bench.run(bench.script(forking), window=WINDOW)
    assert (left.code, left.steps) == (0, [5, 6, 7, 8])
    assert TensorFlowCollector().harvest(left.plan).problems == ()


def test_a_launcher_is_not_missed_where_what_it_started_was_killed(bench: Bench) -> None:
    bench.script(LOOP.replace("STEPS", "30") + "    if batch == 20: import os; os.kill(os.getpid(), 9)\n")
    launcher = "import subprocess, sys, tensorflow\nsubprocess.run([sys.executable, 'train.py'])\n"
    left = bench.run("-c", launcher, window=WINDOW)
    (problem,) = TensorFlowCollector().harvest(left.plan).problems
    assert (problem.code, problem.message[:22]) == ("killed-while-recording", "The program was killed")


def test_a_stderr_that_raises_neither_breaks_the_program_nor_hides_a_problem(bench: Bench) -> None:
    odd = (
        "import sys\nclass Odd:\n    def write(self, text): raise RuntimeError(text)\n    def flush(self): pass\n"
        "sys.stderr = Odd()\nimport tensorflow.python.profiler.profiler_v2 as profiler\nprofiler.start('own')\n"
    )
    left = bench.run(bench.script(odd + TRAINING), window=WINDOW)
    (problem,) = TensorFlowCollector().harvest(left.plan).problems
    assert (left.code, problem.code) == (0, "profiler-taken")


def test_programs_that_take_the_place_of_one_another_each_save_what_they_recorded(bench: Bench) -> None:
    replaced = (
        "import os, sys\n" + LOOP.replace("STEPS", "9") + "left = int(sys.argv[1])\n"
        "try: os.execv('no such program', ['no'])\nexcept OSError: pass\n"
        "if left: os.execvp(sys.executable, [sys.executable, sys.argv[0], str(left - 1)])\n"
    )
    left = bench.run(bench.script(replaced), "2", window=WINDOW)
    assert [[event["step_num"] for event in trace if event.get("_r")] for trace in left.traces] == [[5, 6, 7, 8]] * 3
    assert {status["state"] for status in left.statuses} == {"saved"}


def test_workers_that_are_terminated_in_the_window_die_at_once(bench: Bench) -> None:
    working = (
        "    if batch == 22:\n"
        "        for _ in range(50):\n"
        "            worker = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n"
        "            worker.start(); worker.terminate(); worker.join(10); ended.add(worker.exitcode)\n"
        "        print(ended)\n"
    )
    left = bench.run(bench.script("import multiprocessing, time\nended = set()\n" + TRAINING + working), window=WINDOW)
    assert (left.out, left.steps) == ("{-15}\n", STEPS)


def test_spawned_processes_record_if_they_train(bench: Bench) -> None:
    spawning = (
        "import multiprocessing\n"
        "def main():\n    import tensorflow as tf\n    for batch in tf.OwnedIterator(30): pass\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=main)\n"
        "    worker.start(); worker.join()\n"
    )
    assert bench.run(bench.script(spawning), window=WINDOW).steps == STEPS


def test_two_programs_one_after_the_other_record_both(bench: Bench) -> None:
    bench.script(TRAINING)
    twice = "import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, 'train.py'], check=True)\n"
    assert len(bench.run("-c", twice, window=WINDOW).traces) == 2


def test_a_window_in_time_leaves_helpers_alone(bench: Bench) -> None:
    helping = (
        "import multiprocessing, time\n"
        "def help():\n    import tensorflow; time.sleep(0.6)\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=help)\n"
        "    worker.start(); worker.join()\n"
    )
    left = bench.run(bench.script(helping), window=Window(0, None, delay_s=0.0, duration_s=None))
    assert (left.code, left.traces) == (0, [])


def test_a_window_in_time_begins_in_a_fork_that_trains(bench: Bench) -> None:
    forking = (
        "import os, sys, time\nimport tensorflow as tf\nif os.fork(): sys.exit(os.wait()[1])\n"
        "while time.process_time() < 20 and not os.path.exists(os.path.join(RAW, f'pid{os.getpid()}', 'plugins')):\n"
        "    for batch in tf.OwnedIterator(9): time.sleep(0.01)\n"
    )
    forking = forking.replace("RAW", repr(str(bench.folder / "run" / "raw" / "tensorflow")))
    left = bench.run(bench.script(forking), window=Window(0, None, delay_s=0.3, duration_s=0.2))
    assert left.code == 0
    assert any(trace[1:] for trace in left.traces)
