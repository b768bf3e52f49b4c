"""Quality figures: reports of frameworks, thinning of many figures, and figures that a program reports itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.collectors.inject.runs import run_under


@pytest.fixture
def metrics(hook: Any, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The module with the hooks, and its reports ``told``: name, value, step, epoch, source."""
    module, told = hook("facts.metrics"), []
    monkeypatch.setattr(module, "note_metric", lambda *given: told.append(given))
    return SimpleNamespace(module=module, told=told)


def framework(name: str, **contents: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(contents)
    return module


class Tensor(float):
    """A number as frameworks hold it."""

    @property
    def shape(self) -> tuple[int, ...]:
        return ()


def test_keras_tells_of_the_logs_of_epochs_and_of_tests_that_are_in_none(metrics: SimpleNamespace) -> None:
    class CallbackList:
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None: ...
        def on_epoch_end(self, epoch: int, logs: object = None) -> None: ...
        def on_train_end(self, logs: object = None) -> None: ...
        def on_test_end(self, logs: object = None) -> None: ...

    for _ in range(2):
        metrics.module._hook_keras(framework("keras.src.callbacks.callback_list", CallbackList=CallbackList))
    callbacks = CallbackList()
    for epoch in range(2):
        callbacks.on_epoch_begin(epoch)
        callbacks.on_test_end({"loss": 9.0})
        callbacks.on_epoch_end(epoch, {"loss": Tensor(0.5 - epoch / 4), "names": "a, b"})
    callbacks.on_train_end()
    callbacks.on_test_end({"accuracy": 0.75})
    assert metrics.told == [
        ("loss", 0.5, None, 0, "keras"),
        ("loss", 0.25, None, 1, "keras"),
        ("test_accuracy", 0.75, None, None, "keras"),
    ]


def test_lightning_tells_of_epochs_once_they_are_counted_and_of_tests(metrics: SimpleNamespace) -> None:
    class Loop:
        def __init__(self, trainer: object) -> None:
            self.trainer = trainer

        def on_advance_end(self) -> None:
            self.trainer.current_epoch += 1

        def run(self) -> str:
            return "results"

    trainer = SimpleNamespace(current_epoch=0, global_step=12, state=SimpleNamespace(fn="fit"))
    trainer.callback_metrics = {"train_loss": Tensor(0.5), "epoch": 1.0}
    metrics.module._hook_lightning(framework("pytorch_lightning.loops.fit_loop", _FitLoop=Loop))
    metrics.module._hook_lightning_evaluation(framework("loops.evaluation_loop", _EvaluationLoop=Loop))
    Loop(trainer).run()
    Loop(trainer).on_advance_end()
    trainer.state.fn, trainer.callback_metrics = "test", {"test_acc": 0.9}
    assert Loop(trainer).run() == "results"
    assert metrics.told == [("train_loss", 0.5, 12, 0, "lightning"), ("test_acc", 0.9, 12, None, "lightning")]


def test_transformers_tells_of_what_it_logs_and_not_of_speeds(metrics: SimpleNamespace) -> None:
    class Trainer:
        state = SimpleNamespace(epoch=1.0, global_step=40)

        def log(self, logs: dict[str, float], start_time: float | None = None) -> None: ...

    metrics.module._hook_transformers(framework("transformers.trainer", Trainer=Trainer))
    trainer = Trainer()
    trainer.log({"loss": 0.5, "learning_rate": 1e-4, "epoch": 1.0}, 3.0)
    trainer.state.epoch = 1.01
    trainer.log({"eval_loss": 0.25, "eval_runtime": 3.0, "eval_samples_per_second": 9.0})
    assert metrics.told == [
        ("loss", 0.5, 40, 0, "transformers"),
        ("learning_rate", 1e-4, 40, 0, "transformers"),
        ("eval_loss", 0.25, 40, 1, "transformers"),
    ]


def test_of_many_values_the_least_the_greatest_and_the_last_of_every_ten_are_kept(hook: Any) -> None:
    kept = hook("stacks.metrics")
    metrics = kept.Metrics()
    values = [float((number * 37) % 101) for number in range(2_000)] + [
        5.0,
        9.0,
        None,
        1.0,
        None,
        7.0,
        3.0,
        8.0,
        2.0,
        4.0,
    ]
    written = []
    for number, value in enumerate(values):
        written += metrics.take(("loss", value, number, None, number, "program"))
    assert [row[2] for row in written[:2_000]] == list(range(2_000))
    assert [row[1] for row in written[2_000:]] == [9.0, None, 1.0, 4.0]
    assert metrics.take(("loss", 6.0, 2_010, None, 0, "program")) == ()
    assert [row[1] for row in metrics.rest()] == [6.0]
    assert metrics.rest() == []


def test_names_without_end_are_not_recorded_beyond_500(hook: Any, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = hook("stacks.metrics").Metrics()
    written = [metrics.take((f"loss {number}", 1.0, None, None, 0, "program")) for number in range(600)]
    assert sum(map(len, written)) == 500
    assert capsys.readouterr().err.count("more than 500 names of metrics") == 1


@pytest.mark.process
def test_a_program_states_figures_however_briefly_it_runs_and_no_value_breaks_it(tmp_path: Path) -> None:
    program = (
        "import traceviz\n"
        "for step in range(3): traceviz.metric('loss', 1 / (1 + step), step)\n"
        "traceviz.metric('loss', float('inf'), 3); traceviz.metric('loss', 'low'); print('done')\n"
    )
    ran = run_under(tmp_path / "run", ["stacks"], [sys.executable, "-c", program])
    (file,) = tmp_path.glob("run/raw/stacks/*/stacks.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line[2], line[3], line[6]) for line in lines if line[0] == "metric"] == [
        (1.0, 0, "program"),
        (0.5, 1, "program"),
        (1 / 3, 2, "program"),
        (None, 3, "program"),
    ]
    assert (ran.code, ran.stdout) == (0, "done\n")
    assert ran.stderr == "traceviz: metric loss is not recorded: its value is no number, but of type str\n"
