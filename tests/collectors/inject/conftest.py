"""Programs under the hooks, and modules of the hooks in the process of the tests."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.inject.bench import HOOKS, Bench

PLACES = {
    "facts": "facts.training",
    "found_loop": "stacks.discovered_loop",
    "frameworks": "facts.frameworks",
    "jax_calls": "steps.jax",
    "mxnet_steps": "steps.mxnet",
    "nvtx_ranges": "profilers.nvtx_ranges",
    "paddle_steps": "steps.paddle",
    "parts": "phases.step_parts",
    "phases": "phases.run_phases",
    "recorder": "profilers.window",
    "stack_interning": "stacks.interning",
    "stack_recording": "stacks.recording",
    "steps": "step_clock",
    "tf_iterators": "steps.tensorflow",
    "torch_profiler": "profilers.torch",
    "torch_steps": "steps.torch",
    "training_loop": "steps.loop",
}
"""Modules of the hooks by their names in tests, if these differ."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Imports a module of the hooks; afterwards all are gone, and what they changed is undone. No process trains."""
    monkeypatch.syspath_prepend(HOOKS)
    monkeypatch.setenv("TRACEVIZ_INJECT_OWNER", "")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield lambda name: import_module(f"traceviz_inject.{name}")
    for name in [name for name in sys.modules if name.startswith("traceviz_inject")]:
        del sys.modules[name]


class Injected:
    """The modules of the hooks as attributes."""

    def __init__(self, hook: Callable[[str], Any]) -> None:
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        return self._hook(PLACES.get(name, name))


@pytest.fixture
def inject(hook: Callable[[str], Any]) -> Injected:
    return Injected(hook)
