"""Phases of the run: reports of hooks around functions of frameworks, their times, and functions left alone."""

import threading
import time
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

MS = 1_000_000


@pytest.fixture
def phases(hook: Any, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The module, freshly imported; ``told`` has ``kind, name, number`` of each phase; ``clock`` is in ms."""
    module = hook("phases.run_phases")
    told, lasted = [], []

    def note_phase(kind, name, begun, ended, number=None):
        told.append((kind, name, number))
        lasted.append((ended - begun) // MS)

    monkeypatch.setattr(module, "note_phase", note_phase)
    clock = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0] * MS)
    return SimpleNamespace(
        module=module, told=told, lasted=lasted, clock=clock, passes=lambda ms: clock.append(clock.pop() + ms)
    )


def framework(name: str, **contents: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(contents)
    return module


def test_a_function_tells_how_long_it_took_and_returns_what_it_did(phases) -> None:
    def save(value: int, *, more: int) -> int:
        """Writes."""
        phases.passes(30)
        return value + more

    torch = framework("torch.serialization", save=save, load=lambda: phases.passes(20))
    phases.module._hook_functions(torch)
    assert torch.save(1, more=2) == 3
    assert torch.load() is None
    assert torch.save.__doc__ == "Writes."
    assert phases.told == [("saving", "torch.save", None), ("loading", "torch.load", None)]
    assert phases.lasted == [30, 20]


def test_a_function_that_fails_tells_it_too_and_its_error_reaches_the_program(phases) -> None:
    def save() -> None:
        phases.passes(5)
        raise OSError("disk full")

    torch = framework("torch.serialization", save=save)
    phases.module._hook_functions(torch)
    with pytest.raises(OSError, match="disk full"):
        torch.save()
    assert (phases.told, phases.lasted) == ([("saving", "torch.save", None)], [5])


def test_within_a_phase_another_of_its_kind_on_the_same_thread_is_part_of_it(phases) -> None:
    keras = framework("keras.src.saving.saving_api", save_weights=lambda: phases.passes(10))

    def save_model() -> None:
        keras.save_weights()
        thread = threading.Thread(target=keras.save_weights)
        thread.start()
        thread.join()

    keras.save_model = save_model
    phases.module._hook_functions(keras)
    keras.save_model()
    keras.save_weights()
    names = [name for _, name, _ in phases.told]
    assert names == ["keras save_weights", "keras save_model", "keras save_weights"]
    assert phases.lasted == [10, 20, 10]


def test_what_is_written_within_a_millisecond_is_no_checkpoint(phases) -> None:
    torch = framework("torch.serialization", load=lambda: phases.clock.append(phases.clock.pop() + 0.5))
    phases.module._hook_functions(torch)
    torch.load()
    assert phases.told == []


def test_methods_are_hooked_once_and_versions_without_them_are_left_alone(phases) -> None:
    class Trainer:
        def evaluate(self) -> str:
            phases.passes(3)
            return "loss"

    transformers = framework("transformers.trainer", Trainer=Trainer)
    phases.module._hook_functions(transformers)
    phases.module._hook_functions(transformers)
    phases.module._hook_functions(framework("accelerate.accelerator"))
    assert Trainer().evaluate() == "loss"
    assert phases.told == [("validation", "Trainer.evaluate", None)]
    assert not hasattr(Trainer, "train")


def test_jax_tells_of_traces_and_compilations_once_they_are_done(phases) -> None:
    listeners = []
    monitoring = framework("jax._src.monitoring", register_event_duration_secs_listener=listeners.append)
    phases.clock[0] = 1_000
    for _ in range(2):
        phases.module.hook_jax(monitoring)
    (listener,) = listeners
    listener("/jax/core/compile/backend_compile_duration", 0.25, fun_name="step")
    listener("/jax/checkpoint/write/duration_sec", 0.25)
    assert (phases.told, phases.lasted) == ([("compilation", "jax.jit", None)], [250])


def test_dynamo_tells_of_the_outermost_compilation(phases) -> None:
    class CompilationCallbackHandler:
        def run_start_callbacks(self, arguments: object) -> None: ...

        def run_end_callbacks(self, arguments: object) -> None: ...

    phases.module.hook_dynamo(
        framework("torch._dynamo.callback", CompilationCallbackHandler=CompilationCallbackHandler)
    )
    handler = CompilationCallbackHandler()
    handler.run_end_callbacks(None)
    handler.run_start_callbacks(None)
    phases.passes(40)
    handler.run_end_callbacks(None)
    assert (phases.told, phases.lasted) == ([("compilation", "torch.compile", None)], [40])


def test_epochs_of_keras_have_their_numbers(phases) -> None:
    class CallbackList:
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None: ...

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            phases.passes(2)

    phases.module.hook_epochs(framework("keras.src.callbacks.callback_list", CallbackList=CallbackList))
    callbacks = CallbackList()
    for epoch in (3, 4):
        callbacks.on_epoch_begin(epoch)
        phases.passes(10)
        callbacks.on_epoch_end(epoch)
    assert (phases.told, phases.lasted) == ([("epoch", "keras", 3), ("epoch", "keras", 4)], [12, 12])


def test_every_module_that_is_waited_for_has_its_hook(phases) -> None:
    waiting = import_module("traceviz_inject.hooks")._waiting
    phases.module.install(None)
    reports = {"jax._src.monitoring", "torch._dynamo.callback", "keras.src.callbacks.callback_list"}
    assert {*phases.module.FUNCTIONS, *reports, "tf_keras.src.callbacks"} <= set(waiting)
    kinds = {kind for entries in phases.module.FUNCTIONS.values() for _, kind, _ in entries}
    assert kinds == {"train", "epoch", "validation", "saving", "loading", "compilation"}
