"""Hooks on loops of PyTorch, PaddlePaddle and MXNet, with classes that represent the frameworks' own."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def inject(inject: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of the hooks, and the phases that were reported."""
    monkeypatch.delitem(sys.modules, "paddle", raising=False)
    inject.told = []
    monkeypatch.setattr(inject.phases, "note_phase", lambda *phase: inject.told.append(phase))
    return inject


class Passing:
    """A loader's iterator, and an optimizer's base, under the names that each framework has for them."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def __next__(self) -> int:
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left

    def __iter__(self) -> Iterator[int]:
        return self  # type: ignore[return-value]


class Loader:
    """Gives passes of so many batches."""

    def __init__(self, batches: int) -> None:
        self.batches = batches

    def __iter__(self) -> Passing:
        return Passing(self.batches)


def torch_of(inject: SimpleNamespace) -> SimpleNamespace:
    """Return a loader and an optimizer as torch has them, with the hooks in place."""
    iterator = type("_BaseDataLoaderIter", (Passing,), {"__next__": Passing.__next__})
    loader = type("DataLoader", (Loader,), {"__iter__": lambda self: iterator(self.batches)})
    step = inject.training_loop.seen_optimizer(inject.torch_steps.LOOP, lambda _: None)
    inject.torch_steps.hook_dataloader(SimpleNamespace(DataLoader=loader, _BaseDataLoaderIter=iterator))
    return SimpleNamespace(loader=loader, optimizer=type("Adam", (), {"step": step}))


def epochs_of(inject: SimpleNamespace) -> list[int]:
    return [number for kind, _, _, _, number in inject.told if kind == "epoch"]


def test_passes_over_the_loader_that_trains_are_epochs_without_the_validation_between(inject) -> None:
    torch = torch_of(inject)
    training, validating, optimizer = torch.loader(4), torch.loader(7), torch.optimizer()
    ended = []
    for _ in range(3):
        for _ in training:
            optimizer.step()
        ended.append(inject.training_loop.time.monotonic_ns())
        list(validating)
    assert inject.steps.CLOCK.steps_seen == 12
    assert [phase[:2] + phase[4:] for phase in inject.told] == [("epoch", "torch", number) for number in range(3)]
    assert [end > phase[3] > phase[2] for end, phase in zip(ended, inject.told, strict=True)] == [True] * 3


def test_a_pass_that_the_program_leaves_is_an_epoch_once_the_next_begins(inject) -> None:
    torch = torch_of(inject)
    training, optimizer = torch.loader(100), torch.optimizer()
    for _ in range(3):
        for batch in training:
            optimizer.step()
            if batch == 97:
                break
    assert epochs_of(inject) == [0, 1]


def test_two_loaders_whose_batches_make_one_step_make_one_epoch(inject) -> None:
    torch = torch_of(inject)
    first, second, optimizer = torch.loader(5), torch.loader(5), torch.optimizer()
    for _ in range(2):
        for _ in zip(first, second, strict=False):
            optimizer.step()
    assert len(epochs_of(inject)) <= 2


def test_a_trainer_that_tells_of_epochs_is_not_doubled(inject) -> None:
    torch = torch_of(inject)
    optimizer = torch.optimizer()
    with inject.phases.Phase("epoch", "Lightning"):
        for _ in torch.loader(3):
            optimizer.step()
    assert [phase[1] for phase in inject.told if phase[0] == "epoch"] == ["Lightning"]


def paddle_of(inject: SimpleNamespace) -> SimpleNamespace:
    """Return optimizers as PaddlePaddle has them: classes of their own define ``step``, some in terms of another."""

    class Optimizer:
        def __init__(self) -> None:
            self.made = 0

        def step(self) -> None:
            self.made += 1

        def minimize(self, _loss: object) -> None:
            self.made += 1

    class Adam(Optimizer):
        def step(self) -> None:
            super().step()

    told = ("on_epoch_begin", "on_epoch_end", "on_batch_begin", "on_batch_end", "on_begin", "on_end")
    callbacks = type("CallbackList", (), {name: lambda *_: None for name in told})

    class Executor:
        def run(self, program: object = None) -> str:
            return f"ran {program}"

    for hook, made in (("optimizer", Optimizer), ("callbacks", callbacks), ("executor", Executor)):
        getattr(inject.paddle_steps, f"hook_{hook}")(SimpleNamespace(**{made.__name__: made}))
    return SimpleNamespace(Adam=Adam, CallbackList=callbacks, Executor=Executor)


def test_a_step_of_a_paddle_optimizer_that_calls_its_base_is_one_step(inject) -> None:
    optimizer = paddle_of(inject).Adam()
    for _ in range(5):
        optimizer.step()
    assert (optimizer.made, inject.steps.CLOCK.steps_seen, inject.frameworks.driving()) == (5, 5, "paddle")


@pytest.mark.parametrize(("is_dynamic", "steps"), [(True, 3), (False, 0)])
def test_minimize_makes_a_step_unless_it_only_builds_a_static_graph(inject, monkeypatch, is_dynamic, steps) -> None:
    module = ModuleType("paddle")
    module.in_dynamic_mode = lambda: is_dynamic  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "paddle", module)
    optimizer = paddle_of(inject).Adam()
    for _ in range(3):
        optimizer.minimize("loss")
    assert (optimizer.made, inject.steps.CLOCK.steps_seen) == (3, steps)


def test_batches_of_paddles_fit_are_steps_and_those_of_its_evaluation_are_none(inject) -> None:
    paddle = paddle_of(inject)
    callbacks, optimizer = paddle.CallbackList(), paddle.Adam()
    callbacks.on_begin("train")
    for epoch in range(2):
        callbacks.on_epoch_begin(epoch)
        for mode, batches in (("train", 4), ("eval", 3)):
            for batch in range(batches):
                callbacks.on_batch_begin(mode, batch)
                if mode == "train":
                    optimizer.step()
                callbacks.on_batch_end(mode, batch)
            if mode == "train":
                callbacks.on_epoch_end(epoch)
    assert (inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == ("paddle_fit", 8)
    callbacks.on_end("train")
    assert (epochs_of(inject), inject.steps.CLOCK.source) == ([0, 1], None)


def test_runs_of_the_program_that_repeats_are_steps_of_a_static_graph(inject) -> None:
    executor = paddle_of(inject).Executor()
    assert executor.run("startup") == "ran startup"
    for _ in range(20):
        executor.run("main")
    assert inject.steps.CLOCK.source == "paddle_call"
    assert inject.steps.CLOCK.steps_seen == 14  # it leads once it was run eight times in a row, after the first program


def test_a_generator_of_gluon_gives_its_batches_and_two_epochs_of_them(inject) -> None:
    class DataLoader:
        def __iter__(self) -> Iterator[int]:
            yield from range(6)

        def __len__(self) -> int:
            return 6

    class Trainer:
        def step(self, batch_size: int) -> None: ...

    inject.mxnet_steps.hook_dataloader(SimpleNamespace(DataLoader=DataLoader))
    inject.mxnet_steps.hook_trainer(SimpleNamespace(Trainer=Trainer))
    trainer, loader, taken = Trainer(), DataLoader(), []
    for _ in range(2):
        for batch in loader:
            taken.append(batch)
            trainer.step(32)
    assert taken == [*range(6), *range(6)]
    assert (inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == ("mxnet_optimizer", 12)
    assert (epochs_of(inject), inject.frameworks.driving()) == ([0, 1], "mxnet")


def test_backward_passes_of_paddle_are_seen_once_its_method_is_there(inject, monkeypatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(inject.training_loop, "note_fact", lambda name, value: heard.append(f"{name} {value}"))
    tensor = type("Tensor", (), {})
    core = SimpleNamespace(eager=SimpleNamespace(Tensor=tensor))
    monkeypatch.setitem(sys.modules, "paddle.base.core", core)
    module = SimpleNamespace(monkey_patch_tensor=lambda: setattr(tensor, "backward", lambda _: "gradients"))
    inject.paddle_steps.hook_tensor(module)
    module.monkey_patch_tensor()
    assert [tensor().backward() for _ in range(2)] == ["gradients"] * 2  # type: ignore[attr-defined]
    assert heard == ["gradients 1"]


def test_calls_of_a_gluon_model_are_steps_where_nothing_trains(inject) -> None:
    class Block:
        def __call__(self, rows: int) -> int:
            return self.inner(rows) + 1 if hasattr(self, "inner") else rows

    inject.mxnet_steps.hook_block(SimpleNamespace(Block=Block))
    model = Block()
    model.inner = Block()  # type: ignore[attr-defined]
    assert [model(rows) for rows in range(5)] == [1, 2, 3, 4, 5]
    assert (inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == ("mxnet_call", 5)
