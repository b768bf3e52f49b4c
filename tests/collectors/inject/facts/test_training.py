"""Epochs that no framework announces, and how many samples a step takes."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

S = 1_000_000_000
LOOP = ("torch", "torch_optimizer", "torch_loader", "torch_call")


@pytest.fixture
def inject(inject: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of the hooks, a clock in seconds, the epochs and facts that they reported."""
    told: list[tuple[str, float, float, int]] = []
    noted: dict[str, int] = {}
    clock = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0] * S + 1)

    def tell(_: str, name: str, begun: int, ended: int, number: int) -> None:
        told.append((name, begun // S, ended // S, number))

    for name in ("training_loop", "tf_iterators"):
        monkeypatch.setattr(getattr(inject, name), "tell", tell)

    def note(name: str, value: int, *, unless_known: bool = False) -> None:
        if not (unless_known and name in noted):
            noted[name] = value

    for name in ("facts", "training_loop", "tf_iterators"):
        monkeypatch.setattr(getattr(inject, name), "note_fact", note)
    inject.told, inject.noted, inject.passes = told, noted, lambda: clock.append(clock.pop() + 1)
    return inject


class Training:
    """A loop in torch, a second for each batch and each step."""

    def __init__(self, inject: SimpleNamespace, batch: int = 32) -> None:
        loops = inject.training_loop
        self._inject, self._loop = inject, loops.Loop(*LOOP)
        self._optimizer, self.loader = loops.Token(), loops.Token(batch)

    def one_pass(self, steps: int, *, batches: int) -> None:
        iterator = SimpleNamespace(_traceviz_loader=self.loader)
        self._loop.loader_opens(self.loader)
        for _ in range(steps):
            for _ in range(batches):
                self._inject.passes()
                self._loop.batch_ends(iterator)
            self._inject.passes()
            self._loop.optimizer_begins()
            self._loop.optimizer_ends(self._optimizer, done=True)
        self._loop.batches_end(iterator)


def test_a_step_that_takes_four_batches_takes_four_times_the_samples(inject) -> None:
    training = Training(inject, batch=8)
    training.one_pass(5, batches=4)
    assert inject.noted == {"batch": 32}


def test_the_first_iterator_of_a_fit_says_the_batch_and_not_that_of_its_validation(inject) -> None:
    class EpochIterator:
        def __init__(self, batch: int | None, each: int = 1) -> None:
            self.data_adapter, self.steps_per_execution = SimpleNamespace(batch_size=batch), each

    inject.facts._hook_keras(SimpleNamespace(EpochIterator=EpochIterator))
    with inject.phases.Phase("validation", "keras evaluate"):
        EpochIterator(500)
    assert inject.noted == {}
    EpochIterator(1000)  # it predicts
    EpochIterator(2000)
    assert inject.noted == {"batch": 1000}
    with inject.phases.Phase("train", "keras fit"):
        EpochIterator(64, each=2)
        EpochIterator(500)
    assert inject.noted == {"batch": 128}


def test_the_batch_of_a_data_set_is_that_of_its_last_transformation_that_makes_batches(inject, monkeypatch) -> None:
    constant = SimpleNamespace(constant_value=lambda size: size)
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework.tensor_util", constant)
    source = SimpleNamespace(_inputs=list)
    small = SimpleNamespace(_batch_size=2, _inputs=lambda: [source])
    large = SimpleNamespace(_batch_size=40, _inputs=lambda: [small])
    assert inject.facts.of_dataset(SimpleNamespace(_inputs=lambda: [large])) == 40
    assert inject.facts.of_dataset(SimpleNamespace(_inputs=lambda: [large, large])) is None
    assert inject.facts.of_dataset(source) is None


@pytest.mark.parametrize(("stated", "size"), [(32, 32), (0, None), (None, None), ("many", None), (2.5, None)])
def test_a_loader_that_says_no_batch_or_none_that_can_be_has_none(inject, stated, size) -> None:
    assert inject.facts.of_loader(SimpleNamespace(batch_size=stated)) == size
    sampler = SimpleNamespace(batch_size=stated)
    assert inject.facts.of_loader(SimpleNamespace(batch_size=None, batch_sampler=sampler)) == size


class Dataset:
    """A data set that a weak reference can be made to."""


class TakesFrom:
    """An iterator of tf.data."""

    def __init__(self, dataset: Dataset, batches: int) -> None:
        self._dataset, self._left = dataset, batches

    def __next__(self) -> int:
        if not self._left:
            raise StopIteration
        self._left -= 1
        return self._left


def test_passes_over_the_data_set_that_was_gone_through_first_are_epochs(inject, monkeypatch) -> None:
    monkeypatch.setattr(inject.steps.process, "claimed", lambda: True)
    taking = inject.tf_iterators._counting(TakesFrom.__next__)
    trains, validates = Dataset(), Dataset()
    for _ in range(2):
        for dataset, batches in ((trains, 3), (validates, 2)):
            iterator = TakesFrom(dataset, batches)
            for _ in range(batches):
                taking(iterator)
                inject.passes()
            with pytest.raises(StopIteration):
                taking(iterator)
    assert inject.told == [("tf.data", 0, 3, 0), ("tf.data", 5, 8, 1)]


def test_whoever_computes_gradients_learns(inject) -> None:
    jax = SimpleNamespace(
        __name__="jax._src.api", value_and_grad=lambda function: function, vjp=lambda function: function
    )
    inject.facts._hook_gradients(jax)
    assert inject.noted == {"gradients": 0}
    assert jax.value_and_grad(7) == 7
    inject.facts.none_yet()
    assert inject.noted == {"gradients": 1}
