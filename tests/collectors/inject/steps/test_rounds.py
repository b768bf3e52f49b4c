"""Hooks on rounds of boosting and on ``partial_fit``, with classes that represent the libraries' own."""

from types import SimpleNamespace
from typing import Any

import pytest


def module_of(name: str, **classes: type) -> SimpleNamespace:
    return SimpleNamespace(__name__=name, **classes)


def booster(inject: Any, library: str) -> Any:
    """Return a model of XGBoost or LightGBM with the hooks in place; ``update`` may call one of its own."""

    class Booster:
        inner: "Booster | None" = None

        def update(self, fails: bool = False) -> None:  # noqa: FBT001, FBT002 it has one argument
            if fails:
                raise ValueError("no data")
            if self.inner is not None:
                self.inner.update()

    inject.rounds.hook_classes(module_of(library, Booster=Booster))
    return Booster


@pytest.mark.parametrize("library", ["xgboost.core", "lightgbm.basic"])
def test_24_rounds_are_24_steps_from_the_first_on(inject, library) -> None:
    model, begun = booster(inject, library)(), []
    inject.steps.CLOCK.listen(begun.append)
    for _ in range(24):
        model.update()
    assert (inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == ("boosting_round", 24)
    assert begun[0] == 0


def test_a_round_that_calls_another_model_is_1_step_and_one_that_fails_is_0(inject) -> None:
    kind = booster(inject, "xgboost.core")
    model = kind()
    model.inner = kind()
    model.update()
    with pytest.raises(ValueError, match="no data"):
        model.update(fails=True)
    assert inject.steps.CLOCK.steps_seen == 1


def test_partial_fit_is_a_step_also_behind_a_descriptor_and_other_methods_are_none(inject) -> None:
    class OnlyIf:
        def __init__(self, fn: Any) -> None:
            self.fn = fn

        def __get__(self, model: Any, _: type | None = None) -> Any:
            return lambda: self.fn(model)

    class MLPClassifier:
        @OnlyIf
        def partial_fit(self) -> None:
            pass

        def predict(self) -> None:
            pass

    inject.rounds.hook_classes(module_of("sklearn.neural_network._multilayer_perceptron", MLPClassifier=MLPClassifier))
    model = MLPClassifier()
    for _ in range(5):
        model.partial_fit()
        model.predict()
    assert (inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == ("partial_fit", 5)
