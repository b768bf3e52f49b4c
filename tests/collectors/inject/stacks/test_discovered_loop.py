"""Loops of frameworks that no hook knows: found in samples of stacks."""

import sys
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace

import pytest

PROGRAM = """
import sys

def look(watch):
    if watch:
        watch(sys._getframe())

class Optimizer:
    def update(self, watch=None):
        look(watch)

class Layer:
    def update(self, watch=None):
        look(watch)

class Trainer:
    def __init__(self, layers):
        self.layers = layers
    def train_step(self, watch=None):
        for layer in self.layers:
            layer.update()
        look(watch)

class ProgressBar:
    def update(self, watch=None):
        look(watch)

def update(watch=None):
    look(watch)
    return 7
"""


@pytest.fixture(autouse=True)
def _without_frameworks_and_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = ("cloudpickle", "concurrent.futures.process", "joblib", "multiprocessing.pool")
    for name in ("jax", "keras", "mxnet", "paddle", "tensorflow", "tf_keras", "torch", *pools):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with things that are updated."""
    (tmp_path / "numeric.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "numeric", raising=False)
    return import_module("numeric")


def watched(inject: SimpleNamespace, function, times: int = 3) -> None:
    """Call ``function`` so often, each time with a sample in it."""
    seeker = inject.found_loop.Seeker()

    def watch(frame: FrameType) -> None:
        caller = frame.f_back
        assert caller is not None
        seeker.seen(caller.f_code, frame, again=False)

    for _ in range(times):
        function(watch)


def test_calls_of_an_optimizer_that_was_sampled_three_times_are_steps(inject, program) -> None:
    optimizer = program.Optimizer()
    watched(inject, optimizer.update)
    for _ in range(10):
        optimizer.update()
    assert (inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == ("found_update", 8)  # two show that it repeats
    assert inject.found_loop.LEADING == ["Optimizer.update"]


def test_two_samples_are_not_enough(inject, program) -> None:
    optimizer = program.Optimizer()
    watched(inject, optimizer.update, times=2)
    for _ in range(10):
        optimizer.update()
    assert (inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == (None, 0)


def test_of_several_layers_that_are_updated_one_makes_the_steps(inject, program) -> None:
    layers = [program.Layer() for _ in range(4)]
    watched(inject, layers[2].update)
    for _ in range(10):
        for layer in layers:
            layer.update()
    assert inject.steps.CLOCK.steps_seen == 8


def test_what_is_called_within_a_step_makes_none_of_its_own(inject, program) -> None:
    trainer = program.Trainer([program.Layer(), program.Layer()])
    watched(inject, program.Layer().update)
    watched(inject, trainer.train_step)
    for _ in range(20):
        trainer.train_step()
    assert inject.found_loop.LEADING == ["Trainer.train_step"]
    assert inject.steps.CLOCK.steps_seen == 15  # it leads from its eighth call on


def test_a_function_is_counted_under_the_names_that_its_callers_have_for_it(inject, program) -> None:
    names = {"renew": program.update}
    exec("def caller(watch=None): return renew(watch)", names)
    watched(inject, names["caller"])
    assert [names["caller"]() for _ in range(5)] == [7] * 5
    assert [program.update() for _ in range(5)] == [7] * 5
    assert inject.steps.CLOCK.steps_seen == 8


def test_functions_that_may_be_sent_to_other_processes_stay_as_they_are(inject, program, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", ModuleType("joblib"))
    before = program.update
    watched(inject, program.update)
    assert program.update is before


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_nothing_is_looked_for_beside_a_framework_that_hooks_know(inject, program, monkeypatch, framework) -> None:
    monkeypatch.setitem(sys.modules, framework, ModuleType(framework))
    before = program.Optimizer.update
    watched(inject, program.Optimizer().update)
    assert program.Optimizer.update is before


def test_bars_and_metrics_that_are_updated_make_no_steps(inject, program) -> None:
    before = program.ProgressBar.update
    watched(inject, program.ProgressBar().update)
    assert program.ProgressBar.update is before


def test_an_error_in_a_step_reaches_the_program_and_is_no_step(inject, program) -> None:
    optimizer = program.Optimizer()
    watched(inject, optimizer.update)

    def refuse(_: object) -> None:
        raise ValueError("diverged")

    for _ in range(5):
        with pytest.raises(ValueError, match="diverged"):
            optimizer.update(refuse)
    assert inject.steps.CLOCK.steps_seen == 0
