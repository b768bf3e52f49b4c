"""Stacks of Python: sampled in every process of a program however it lives and ends, and nothing of it changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.collectors.inject.bench import HOOKS, LOOP, Bench
from tests.conftest import REPOSITORY
from traceviz.api import open_trace
from traceviz.collectors.base import STACKS, Plan, Window
from traceviz.collectors.frameworks.injection import injection_environment, write_injection
from traceviz.collectors.frameworks.profilers import StacksCollector

pytestmark = pytest.mark.process

WORK = (
    "import os, sys, threading, time\ndef spend(s):\n    end = time.monotonic() + s\n"
    "    while time.monotonic() < end: time.sleep(0.002)\n"
)
"""A program's function that lasts some seconds, and comes back often."""


@dataclass(frozen=True, slots=True)
class Process:
    """The output of one process, by kind of line."""

    lines: tuple[list[Any], ...]

    def of(self, kind: str) -> list[list[Any]]:
        """Return the lines of a kind, without the kind."""
        return [line[1:] for line in self.lines if line[0] == kind]

    @property
    def facts(self) -> dict[str, Any]:
        """The last word on the process."""
        facts: dict[str, Any] = self.of("process")[-1][0]
        return facts

    @property
    def rows(self) -> list[list[Any]]:
        """All rows of samples."""
        return [row for (rows,) in self.of("samples") for row in rows]

    def stack(self, number: int | None) -> list[tuple[str, str]]:
        """Return functions and files of a stack, the outermost first."""
        frames = {frame[0]: (frame[1], frame[2]) for frame in self.of("frame")}
        parents = {stack: (parent, frame) for stack, parent, frame in self.of("stack")}
        found = []
        while number is not None:
            number, frame = parents[number]
            found.append(frames[frame])
        return found[::-1]

    @property
    def functions(self) -> set[tuple[str, str]]:
        """Functions with their files in any stack."""
        return {(frame[1], frame[2]) for frame in self.of("frame")}


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str
    plan: Plan

    @property
    def processes(self) -> list[Process]:
        """By their folders' names."""
        files = sorted(self.plan.raw(STACKS).glob("*/stacks.jsonl"))
        return [Process(tuple(json.loads(line) for line in file.read_text().splitlines())) for file in files]


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def run_program(text: str, *flags: str, name: str = "train.py", packages: str = "") -> Ran:
        (tmp_path / name).write_text(text)
        plan = Plan(tmp_path / "run", (), (STACKS,), Window())
        plan.raw(STACKS).mkdir(parents=True)
        write_injection(plan)
        inherited = {"PATH": os.environ["PATH"], "PYTHONPATH": packages}
        done = subprocess.run(
            [sys.executable, *flags, name],
            env={**inherited, **injection_environment(plan, inherited)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Ran(done.returncode, done.stdout, done.stderr, plan)

    return run_program


def test_rows_of_a_thread_cover_its_time_without_a_gap_and_name_its_functions(run: Any) -> None:
    program = WORK + "threading.Thread(target=time.sleep, args=(1,), name='the loader').start()\nspend(1)\n"
    ran = run(program)
    (process,) = ran.processes
    names = {thread[0]: (thread[2], thread[3]) for thread in process.of("thread")}
    assert set(names.values()) == {("MainThread", True), ("the loader", False)}
    (main,) = [number for number, (_, is_main) in names.items() if is_main]
    rows = sorted(row for row in process.rows if row[2] == main)
    assert [row[0] + row[1] for row in rows[:-1]] == [row[0] for row in rows[1:]]
    assert any(process.stack(row[3])[:2] == [("<module>", "train.py"), ("spend", "train.py")] for row in rows)
    assert sum(row[4] for row in rows) == process.of("cost")[-1][0]["ticks"]
    assert (process.facts["role"], process.lines[-1][0]) == ("program", "end")
    trace = open_trace(next(ran.plan.raw(STACKS).glob("*/stacks.jsonl")))  # all of it is read, and nothing is amiss
    read = trace.scan("stacks").select("dur_ns", "samples").sum().collect().row(0)
    assert (trace.rows("stacks"), trace.rows("notes")) == (len(process.rows), 0)
    assert read == (sum(row[1] for row in process.rows), sum(row[4] for row in process.rows))


def test_a_process_that_ends_at_once_leaves_nothing_and_its_program_sees_one_thread(run: Any) -> None:
    ran = run("import gc, threading, warnings\nprint(threading.active_count(), gc.isenabled(), len(gc.callbacks))\n")
    assert (ran.out, ran.processes) == ("1 True 1\n", [])


def test_a_fork_writes_a_file_of_its_own(run: Any) -> None:
    program = WORK + (
        "spend(0.7)\npid = os.fork()\nif not pid: spend(0.7); os._exit(3)\nsys.exit(os.waitpid(pid, 0)[1] >> 8)\n"
    )
    ran = run(program)
    parent, child = sorted(ran.processes, key=lambda process: process.facts["ppid"] != os.getpid())
    assert ran.code == 3
    assert child.facts["ppid"] == parent.facts["pid"]
    assert [process.lines[-1][0] for process in (child, parent)] == ["end", "end"]
    assert ("spend", "train.py") in child.functions


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_no_thread_of_ours_is_there_while_a_process_forks(hook: Any, tmp_path: Path) -> None:
    sampler = hook("stacks.sampler").Sampler(
        hook("stacks.file").StackFile(str(tmp_path)), hook("stacks.frame_names").Places("/"), 100.0
    )
    threads = _threads()
    for _ in range(3):
        sampler.start()
        assert _threads() == threads + 1
        sampler.stop(ends=False)
        assert _threads() == threads


def test_a_program_that_is_killed_leaves_whole_lines_up_to_the_last_second(run: Any) -> None:
    ran = run(WORK + "spend(0.9)\nos.kill(os.getpid(), 9)\n")
    (process,) = ran.processes
    assert (ran.code, len(process.of("process")), process.of("end")) == (-signal.SIGKILL, 1, [])
    assert ("spend", "train.py") in process.functions


def test_a_program_in_the_place_of_another_has_a_second_folder(run: Any) -> None:
    program = WORK + (
        "spend(0.6)\ntry: os.execv('no such program', ['no'])\nexcept OSError: pass\n"
        "if len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, 'train.py', 'again'])\n"
    )
    ran = run(program)
    first, second = sorted(path.name for path in ran.plan.raw(STACKS).iterdir())
    assert (second, ran.code) == (f"{first}-2", 0)
    assert [process.lines[-1][0] for process in ran.processes] == ["end", "end"]


def test_an_isolated_python_is_left_alone(run: Any) -> None:
    ran = run(WORK + "spend(0.7)\nprint(5)\n", "-I")
    assert (ran.out, ran.err, ran.processes) == ("5\n", "", [])


def test_workers_are_sampled_as_workers_and_what_tidies_up_after_them_is_not(run: Any) -> None:
    program = WORK + (
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    spawning = multiprocessing.get_context('spawn')\n"
        "    lock = spawning.Lock()\n"
        "    worker = spawning.Process(target=spend, args=(0.8,), name='decoder 1')\n"
        "    worker.start(); worker.join()\n"
    )
    processes = run(program).processes
    assert sorted((process.facts["role"], process.facts["name"]) for process in processes) == [
        ("program", "train.py"),
        ("worker", "decoder 1"),
    ]


def test_patched_clocks_200_threads_and_deep_recursion_are_survived(run: Any) -> None:
    program = WORK + (
        "sys.setrecursionlimit(3000)\n"
        "def refuse(*_): raise RuntimeError('patched')\n"
        "done = threading.Event()\n"
        "threads = [threading.Thread(target=done.wait, daemon=True) for _ in range(200)]\n"
        "for thread in threads: thread.start()\n"
        "time.monotonic_ns = time.time_ns = time.clock_gettime_ns = refuse\n"
        "def deep(n):\n    if n: deep(n - 1)\n    else: spend(1)\n"
        "deep(1000)\nos._exit(0)\n"
    )
    ran = run(program)
    assert (ran.code, ran.err) == (0, "")
    (process,) = ran.processes
    depths = {len(process.stack(row[3])) for row in process.rows}
    assert len({thread[0] for thread in process.of("thread")}) == 201
    assert 128 <= max(depths) <= 129


SHORT = (
    "done = []\n"
    "def image(number):\n"
    "    time.sleep(0.002)\n"
    "    done.append(number)\n"
    "for batch in range(100):\n"
    "    threads = [threading.Thread(target=image, args=(10 * batch + at,)) for at in range(10)]\n"
    "    for thread in threads: thread.start()\n"
    "    for thread in threads: thread.join()\n"
    "    time.sleep(0.005)\n"
    "print(len(done), sum(done))\n"
)
"""1,000 threads, a few milliseconds each."""


@pytest.mark.parametrize("turn", range(5))
def test_1000_short_threads_leave_the_program_and_its_samples_intact(run: Any, turn: int) -> None:
    ran = run(WORK + SHORT)
    assert (ran.code, ran.out, ran.err) == (0, "1000 499500\n", "")
    (process,) = ran.processes
    main = sorted(row for row in process.rows if row[2] == 0)
    assert [row[0] + row[1] for row in main[:-1]] == [row[0] for row in main[1:]]  # without a gap
    assert len(process.of("thread")) > 10
    assert (process.of("stopped"), process.lines[-1][0]) == ([], "end")
    assert StacksCollector().harvest(ran.plan).problems == ()


def test_a_thread_that_ended_between_listing_and_reading_is_no_error(run: Any) -> None:
    program = WORK + (
        "ended = threading.Thread(target=time.sleep, args=(0.01,)); ended.start(); ident = ended.ident; ended.join()\n"
        "sampler = sys.modules['traceviz_inject.stacks.sampler']\n"
        "listed = sampler._stacks_of_threads\n"
        "sampler._stacks_of_threads = lambda: {**listed(), ident: sys._getframe(), 16: sys._getframe()}\n"
        "del time.pthread_getcpuclockid\n"
        "spend(1)\n"
    )
    ran = run(program)
    assert (ran.code, ran.err) == (0, "")
    (process,) = ran.processes
    times = {row[2]: row[5] for row in process.rows}
    assert (len(times), list(times.values()).count(None)) == (3, 2)  # the system does not know two of them
    assert process.of("stopped") == []


LOST = {
    "an exception": ("sampler._stacks_of_threads = refuse", "RuntimeError: taken away"),
    "the end of all threads": ("sampler._stacks_of_threads = sys.exit", "SystemExit"),
    "what cannot be written": ("sampler.quoted = refuse", "RuntimeError: taken away"),
    "a full disk": ("limit(resource.RLIMIT_FSIZE, (3000, 3000))", "File too large"),
}


@pytest.mark.parametrize("how", LOST)
def test_a_sampler_that_ends_early_says_why_and_the_program_goes_on(run: Any, how: str) -> None:
    fault, reason = LOST[how]
    program = WORK + (
        "import resource\n"
        "def refuse(*_): raise RuntimeError('taken away')\n"
        "limit, sampler = resource.setrlimit, sys.modules['traceviz_inject.stacks.sampler']\n"
        "recording = sys.modules['traceviz_inject.stacks.recording']\n"
        "spend(0.8)\n"
        f"{fault}\n"
        "for number in range(30):\n"
        "    recording.note_phase('step', 'x' * 150, time.monotonic_ns(), time.monotonic_ns(), number)\n"
        "    spend(0.1)\n"
        "print('done')\n"
    )
    ran = run(program)
    assert (ran.code, ran.out) == (0, "done\n")
    assert reason in ran.err
    harvest = StacksCollector().harvest(ran.plan)
    assert [problem.code for problem in harvest.problems] == ["stacks-stopped"]
    assert reason in harvest.problems[0].message
    (path,) = ran.plan.raw(STACKS).glob("*/stacks.jsonl")
    (unsampled,) = open_trace(path).scan("phases").filter(kind="unsampled").collect().to_dicts()
    if how in {"an exception", "the end of all threads"}:  # what hooks note is still written
        (process,) = ran.processes
        assert [phase[2] for phase in process.of("phase") if phase[0] == "step"] == list(range(30))
        assert (len(process.of("stopped")), process.lines[-1][0]) == (1, "end")
        assert 1.5e9 < unsampled["dur_ns"] < 1e10


def test_where_no_thread_can_be_started_the_collector_says_so(run: Any) -> None:
    program = WORK + (
        "sampler = sys.modules['traceviz_inject.stacks.sampler']\n"
        'def refuse(*_): raise RuntimeError("can\'t start new thread")\n'
        "sampler.start_new_thread = refuse\n"
        "pid = os.fork()\n"
        "if not pid: os._exit(0)\n"
        "os.waitpid(pid, 0); spend(0.7)\n"
    )
    ran = run(program)
    assert (ran.code, ran.err.count("can't start new thread")) == (0, 2)  # of the program and its child
    codes = {problem.code for problem in StacksCollector().harvest(ran.plan).problems}
    assert codes == {"stacks-stopped"}


def test_steps_are_told_with_their_numbers_from_the_first_to_the_last(run: Any, tmp_path: Path) -> None:
    program = WORK + LOOP.replace("STEPS", "30").replace("pass", "spend(0.03)")
    (process,) = run(program, packages=str(Bench(tmp_path).packages)).processes
    steps = [(name, number) for kind, name, number, *_ in process.of("phase") if kind == "step"]
    assert steps == [("tf_iterator", number) for number in range(30)]


def test_a_loop_without_a_framework_has_steps_once_stacks_show_what_ends_them(run: Any) -> None:
    program = WORK + (
        "class Descent:\n    def update(self): spend(0.03)\n"
        "descent = Descent()\nfor _ in range(30):\n    spend(0.01)\n    descent.update()\n"
    )
    (process,) = run(program).processes
    steps = [(name, number) for kind, name, number, *_ in process.of("phase") if kind == "step"]
    assert {name for name, _ in steps} == {"found_update Descent.update"}
    assert 15 <= len(steps) <= 28


def test_steps_that_a_program_without_a_framework_declares_are_counted(run: Any) -> None:
    program = WORK + (
        "import traceviz\nfor number in range(20):\n    spend(0.01)\n"
        "    with traceviz.step_range(number): spend(0.03)\n"
    )
    (process,) = run(program, packages=str(REPOSITORY)).processes
    lasted = [length for kind, name, _, _, length, _ in process.of("phase") if (kind, name) == ("step", "program_step")]
    assert len(lasted) == 20
    assert min(lasted) >= 30_000_000


def test_long_collections_of_garbage_are_told(run: Any) -> None:
    program = WORK + "import gc\nkept = [[[]] for _ in range(300_000)]\ngc.collect()\nspend(0.6)\n"
    (process,) = run(program).processes
    assert ["collection", "generation 2", None] in [phase[:3] for phase in process.of("phase")]


def test_the_harvest_has_each_process_and_what_sampling_cost(run: Any) -> None:
    ran = run(WORK + "spend(0.8)\n")
    harvest = StacksCollector().harvest(ran.plan)
    (process,) = harvest.facts["processes"]
    assert [path.name for path in harvest.sources] == [str(ran.processes[0].facts["pid"])]
    assert (harvest.facts["rate_hz"], process["state"], harvest.problems) == (100, "saved", ())
    assert 0 < harvest.facts["cpu_ns"] == process["cpu_ns"]


@pytest.mark.parametrize(
    ("path", "module", "named"),
    [
        ("/home/eve/work/src/data.py", "src.data", ("src/data.py", "program")),
        (
            "/opt/v/lib/python3.11/site-packages/torch/optim/adam.py",
            "torch.optim.adam",
            ("torch/optim/adam.py", "library"),
        ),
        (json.__file__, "json", ("json/__init__.py", "standard")),
        ("/srv/eve/secret/models/net.py", "models.net", ("models/net.py", "program")),
        ("/srv/eve/secret/models/__init__.py", "models", ("models/__init__.py", "program")),
        ("/srv/eve/secret/train.py", "__main__", ("train.py", "program")),
        ("./lib/../train.py", "__main__", ("lib/train.py", "program")),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap", ("<frozen importlib._bootstrap>", "standard")),
        (
            "/tmp/x/__autograph_generated_filez8.py",
            "__autograph_generated_filez8",
            ("__autograph_generated_file", "program"),
        ),
        (f"{HOOKS}/traceviz_inject/hooks.py", "traceviz_inject.hooks", None),
    ],
)
def test_a_file_is_named_by_what_tells_code_apart(hook: Any, path: str, module: str, named: Any) -> None:
    assert hook("stacks.frame_names").Places("/home/eve/work").name(path, module) == named


def test_equal_stacks_have_one_number_and_a_new_line_another(hook: Any) -> None:
    lines: list[str] = []
    interning = hook("stacks.interning").Interning(lines, hook("stacks.frame_names").Places("/"))

    def here() -> int:
        number: int = interning.number(sys._getframe())
        return number

    numbers = [here() for _ in range(3)]
    numbers.append(here())
    assert (len(set(numbers[:3])), numbers[3] != numbers[0]) == (1, True)
    assert sum(line.startswith('["stack"') for line in lines) == len(
        {line for line in lines if line.startswith('["stack"')}
    )


def test_what_a_library_does_for_a_hook_of_ours_is_not_the_program_s(hook: Any) -> None:
    interning = hook("stacks.interning").Interning([], hook("stacks.frame_names").Places("/"))

    def save() -> int:
        number: int = interning.number(sys._getframe())
        return number

    def of_program() -> int:
        return save()

    assert of_program() >= 0
    assert hook("status").guarded(of_program)() == -1


def test_the_function_that_records_a_part_works_for_the_program_only_within_the_part(hook: Any) -> None:
    interning = hook("stacks.interning").Interning([], hook("stacks.frame_names").Places("/"))

    def work() -> int:
        number: int = interning.number(sys._getframe())
        return number

    def runs(function: Any) -> int:
        found: int = function()
        return found

    def records() -> tuple[int, int]:
        return work(), runs(work)  # before the part, where traceviz writes its manifest, and in it

    interning.outside, interning.around = runs.__code__, records.__code__
    before, within = runs(records)  # a notebook runs the cell with the magic in the same way
    assert (before, within >= 0, work() >= 0) == (-1, True, True)


@dataclass
class Timed:
    native: int | None = None
    used_ns: int | None = 0
    ran_lately: bool = True


@pytest.mark.parametrize(
    ("used_ns", "ran_lately", "place", "plain", "first", "state"),
    [
        (None, True, "", False, False, "null"),
        (600, True, "", False, False, '"running"'),
        (0, False, "0x7", True, False, '"waiting"'),
        (100, True, "0x9", False, False, '"waiting"'),  # asleep at a call, elsewhere than at the lock
        (100, True, "running", False, False, '"running"'),  # another program has its core
        (100, True, "0x7", True, False, '"gil"'),
        (100, True, "0x7", True, True, '"running"'),  # it gave the lock to the sampler
    ],
)
def test_the_state_of_a_thread_by_its_time_and_where_it_sleeps(  # noqa: PLR0917
    hook: Any,
    monkeypatch: pytest.MonkeyPatch,
    used_ns: int | None,
    ran_lately: bool,  # noqa: FBT001
    place: str,
    plain: bool,  # noqa: FBT001
    first: bool,  # noqa: FBT001
    state: str,
) -> None:
    module: ModuleType = hook("stacks.threads")
    monkeypatch.setattr(module, "_sleeps_at", lambda _: place)
    monkeypatch.setattr(module.States, "_is_plain", lambda *_: plain)
    states = module.States()
    states.load()
    assert states.state(Timed(1, used_ns, ran_lately), sys._getframe(), 1000, is_first=first) == state


def test_a_thread_at_a_call_that_sleeps_where_others_wait_for_the_lock_waits_for_it(
    hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: ModuleType = hook("stacks.threads")
    plain = [True, False]
    monkeypatch.setattr(module, "_sleeps_at", lambda _: "0x7f52")
    monkeypatch.setattr(module.States, "_is_plain", lambda *_: plain.pop(0))
    states = module.States()
    states.load()
    seen = [states.state(Timed(1, 9), sys._getframe(), 1000, is_first=False) for _ in range(2)]
    assert seen == ['"gil"', '"gil"']


def test_after_50000_steps_ten_are_one(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module: ModuleType = hook("stacks.recording")
    noted: list[int] = []
    monkeypatch.setattr(module, "note_phase", lambda *phase: noted.append(phase[4]))
    steps = module.Steps()
    for number in range(50_030):
        steps.begin(number)
        steps.end("keras", number)
    assert noted[-4:] == [49_999, 50_009, 50_019, 50_029]
