"""Ranges that a program puts around its own work, under profilers made of literals, and under real ones."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from types import ModuleType, SimpleNamespace

import polars as pl
import pytest

import traceviz
from tests.conftest import REPOSITORY
from tests.support.real_nsys import recorded
from traceviz import annotate

pytestmark = pytest.mark.process

TORCH, TENSORFLOW, JAX = "torch.autograd.profiler", "tensorflow.python.profiler.trace", "jax._src.profiler"

LOOP = """
import traceviz

def train():
    for number in range(4):
        with traceviz.step_range(number):
            with traceviz.record("data loading"):
                sum(range(1000))
            work()
"""
TORCH_LOOP = f"""
import sys, torch
from torch.profiler import profile, ProfilerActivity
def work(): torch.ones(8) @ torch.ones(8)
{LOOP}
train()
with profile(activities=[ProfilerActivity.CPU]) as recorded:
    train()
recorded.export_chrome_trace(sys.argv[1] + "/steps.pt.trace.json")
"""
TENSORFLOW_LOOP = f"""
import sys, tensorflow as tf
def work(): tf.ones(8) + tf.ones(8)
{LOOP}
train()
tf.profiler.experimental.start(sys.argv[1])
train()
tf.profiler.experimental.stop()
"""
JAX_LOOP = f"""
import sys, jax
work = jax.jit(lambda: jax.numpy.ones(8) + 1)
{LOOP}
train()
with jax.profiler.trace(sys.argv[1]):
    train()
"""


class Recorder:
    """Notes starts and ends in ``seen``."""

    def __init__(self, seen, name):
        self.seen, self.name = seen, name

    def __enter__(self):
        self.seen.append(f"+{self.name}")

    def __exit__(self, *raised):
        self.seen.append(f"-{self.name}")


@pytest.fixture
def seen():
    return []


@pytest.fixture
def loaded(monkeypatch, seen):
    """Puts a module in the place of a framework's own."""

    def load(name, **attributes):
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)

    for name in (TORCH, TENSORFLOW, JAX, "traceviz_inject.step_clock", "traceviz_inject.profilers.nvtx_ranges"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(annotate, "_HAS_TOOL", False)
    return load


@pytest.fixture
def torch(loaded, seen):
    loaded(TORCH, _is_profiler_enabled=True, record_function=lambda name: Recorder(seen, name))


@pytest.fixture
def tensorflow(loaded, seen):
    state = SimpleNamespace(is_on=True)

    def trace(name, **options):
        return Recorder(seen, f"tf {name} {options}" if options else f"tf {name}")

    loaded(TENSORFLOW, enabled=lambda: state.is_on, Trace=trace)
    return state


@pytest.fixture
def nvtx(loaded, monkeypatch, seen):
    domain = SimpleNamespace(push=lambda name: seen.append(f"push {name}"), pop=lambda: seen.append("pop"))
    monkeypatch.setattr(annotate, "_HAS_TOOL", True)
    monkeypatch.setattr(annotate, "_domain", lambda: domain)


@pytest.mark.usefixtures("torch", "tensorflow", "nvtx")
def test_one_range_reaches_three_profilers_and_ends_in_reverse(seen):
    with traceviz.record("data loading"):
        assert seen == ["+tf data loading", "+data loading", "push data loading"]
    assert seen[3:] == ["pop", "-data loading", "-tf data loading"]


@pytest.mark.usefixtures("torch", "tensorflow", "nvtx")
def test_each_profiler_gets_a_step_in_its_own_words(seen):
    with traceviz.step_range(7):
        pass
    assert seen[:3] == ["+tf step {'step_num': 7, '_r': 1}", "+ProfilerStep#7", "push step 7"]


def test_a_profiler_that_does_not_record_gets_0_ranges(loaded, tensorflow, seen):
    loaded(TORCH, _is_profiler_enabled=False)
    tensorflow.is_on = False
    with traceviz.record("data loading"), traceviz.step_range(0):
        pass
    assert seen == []


def test_under_collect_a_step_is_marked_before_recording_begins_and_torch_marks_its_own(loaded, tensorflow, seen):
    loaded(TORCH, _is_profiler_enabled=True, record_function=lambda name: Recorder(seen, name))
    loaded("traceviz_inject.step_clock", CLOCK=SimpleNamespace(step=None))
    tensorflow.is_on = False
    with traceviz.step_range(3):
        pass
    assert seen == ["+tf step {'step_num': 3, '_r': 1}", "-tf step {'step_num': 3, '_r': 1}"]


@pytest.mark.usefixtures("nvtx")
@pytest.mark.parametrize(("step", "pushed"), [(5, 0), (None, 1)])
def test_a_step_that_collect_has_marked_in_nvtx_is_not_marked_twice(loaded, seen, step, pushed):
    loaded("traceviz_inject.step_clock", CLOCK=SimpleNamespace(step=step))
    loaded("traceviz_inject.profilers.nvtx_ranges")
    with traceviz.step_range(5):
        pass
    assert seen.count("push step 5") == pushed


@pytest.mark.usefixtures("torch")
def test_calls_of_a_step_function_are_numbered_from_0_and_end_when_one_raises(seen):
    @traceviz.step
    def train(divisor):
        """Train."""
        return 6 // divisor

    assert (train(2), train.__name__, train.__doc__) == (3, "train", "Train.")
    with pytest.raises(ZeroDivisionError):
        train(0)
    assert train(divisor=3) == 2
    assert seen == [f"{sign}ProfilerStep#{number}" for number in range(3) for sign in "+-"]


@pytest.mark.usefixtures("torch")
def test_a_decorated_function_may_call_itself_2_deep(seen):
    @traceviz.record("parse")
    def parse(depth):
        return depth and parse(depth - 1)

    assert parse(1) == 0
    assert seen == ["+parse", "+parse", "-parse", "-parse"]


@pytest.mark.usefixtures("torch")
def test_a_step_of_an_async_function_lasts_until_it_has_done_its_2_parts(seen):
    @traceviz.step
    async def train(batch):
        seen.append("before")
        await asyncio.sleep(0)
        seen.append("after")
        return batch

    assert asyncio.run(train(5)) == 5
    assert seen == ["+ProfilerStep#0", "before", "after", "-ProfilerStep#0"]


@pytest.mark.parametrize("decorate", [traceviz.step, traceviz.record("load")], ids=["step", "record"])
def test_a_generator_whose_calls_do_0_work_is_refused(decorate):
    async def batches():
        yield 1

    def numbers():
        yield 1

    for generator in (batches, numbers):
        with pytest.raises(TypeError, match=f"{generator.__name__} is a generator"):
            decorate(generator)


@pytest.mark.usefixtures("tensorflow", "torch")
def test_a_range_that_cannot_begin_everywhere_ends_the_1_that_began(loaded, seen):
    def interrupted(name):
        raise KeyboardInterrupt

    loaded(TORCH, _is_profiler_enabled=True, record_function=interrupted)
    with pytest.raises(KeyboardInterrupt), traceviz.record("load"):
        pass
    assert seen == ["+tf load", "-tf load"]


@pytest.mark.usefixtures("torch")
def test_4_threads_that_share_a_decorated_step_have_a_number_for_each_of_400_calls(seen):
    @traceviz.step
    def train():
        pass

    threads = [threading.Thread(target=lambda: [train() for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name for name in seen if name[0] == "+"} == {f"+ProfilerStep#{number}" for number in range(400)}
    assert len(seen) == 800


def test_a_range_that_nobody_records_tries_none_of_the_modules_that_are_loaded(loaded, monkeypatch):
    class Name(str):
        """A program may have loaded thousands: a search for one of them elsewhere asks for its hash."""

        __slots__ = ()
        hashed = 0

        def __hash__(self):
            Name.hashed += 1
            return super().__hash__()

    loaded("json.none")
    modules = {Name(number): None for number in range(100)}
    monkeypatch.setattr(annotate, "sys", SimpleNamespace(modules=modules, exc_info=sys.exc_info))
    Name.hashed = 0
    with traceviz.record("load"):
        pass
    assert Name.hashed == 0


def test_a_figure_goes_to_whoever_records_the_program_and_to_0_others(monkeypatch):
    noted = []
    traceviz.metric("loss", 0.5)
    monkeypatch.setitem(
        sys.modules, "traceviz_inject.stacks.recording", SimpleNamespace(note_metric=lambda *given: noted.append(given))
    )
    traceviz.metric("val_loss", 0.25, step=3)
    assert noted == [("val_loss", 0.25, 3)]


def test_a_tool_that_takes_no_nvtx_leaves_0_ranges_and_no_error(loaded, monkeypatch, tmp_path):
    monkeypatch.setenv(annotate._INJECTION, str(tmp_path / "missing.so"))
    monkeypatch.setattr(annotate, "_HAS_TOOL", True)
    annotate._domain.cache_clear()
    with traceviz.record("data loading") as opened:
        marks = opened._marks
    annotate._domain.cache_clear()
    assert len(marks) == 0


def test_ranges_load_0_packages_beyond_the_standard_library():
    code = "import sys, traceviz; traceviz.record, traceviz.step; print([*sys.modules.keys() & set(sys.argv)])"
    done = run(sys.executable, code, "polars", "numpy", "pyarrow", "rich", "click")
    assert done.strip() == "[]"


def run(python, code, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [python, "-c", code, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.live
@pytest.mark.parametrize(
    ("fixture", "loop"),
    [("torch_python", TORCH_LOOP), ("oracle_python", TENSORFLOW_LOOP), ("oracle_python", JAX_LOOP)],
    ids=["torch", "tensorflow", "jax"],
)
def test_a_real_profiler_sees_the_4_steps_and_ranges_that_ran_while_it_recorded(request, tmp_path, fixture, loop):
    run(request.getfixturevalue(fixture), loop, tmp_path)
    trace = traceviz.open(tmp_path)
    steps = trace.scan("steps").sort("start_ns").collect()["step"].to_list()
    named = trace.scan("host_ops").filter(pl.col("name").cast(pl.String) == "data loading").collect()
    assert steps == [0, 1, 2, 3]
    assert named.height == 4


def test_nsys_sees_the_ranges_of_a_program_that_no_collector_runs(tmp_path):
    if shutil.which("nsys") is None:
        pytest.skip("nsys is not on PATH")
    (tmp_path / "program.py").write_text(f"def work(): pass\n{LOOP}\ntrain()")
    program = [sys.executable, tmp_path / "program.py"]
    report, said = recorded(program, tmp_path, "--trace=nvtx", env={"PYTHONPATH": str(REPOSITORY)})
    assert report is not None, said
    names = traceviz.open(report).arrow("nvtx")["name"].to_pylist()
    assert sorted(names) == ["data loading"] * 4 + [f"step {number}" for number in range(4)]
