"""Getting our hooks into the program: two environment variables and one file; see ``collectors/inject``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, ClassVar

from traceviz.collectors.base import STACKS, Availability, Collector, Plan
from traceviz.core.errors import UsageError

VARIABLE = "TRACEVIZ_INJECT"
"""Environment variable with the path of the settings that the hooks read."""

OWNER = "TRACEVIZ_INJECT_OWNER"
"""Environment variable in which a process that records tells its children to stay out."""

FOLDER = Path(__file__).parent.with_name("inject")
"""The folder that goes on the program's PYTHONPATH: its ``sitecustomize`` runs at the start of every Python."""

STACKS_RATE = "TRACEVIZ_INJECT_STACKS"
"""Environment variable with the samples of stacks per second; empty where none are asked for."""

_HOOKS = "traceviz_inject"

INJECTED = ("tensorflow", "jax", "torch", "nvtx", STACKS)
"""Collectors that work inside the program."""


class InjectedCollector(Collector):
    """A collector whose work is done by the hooks inside the program.

    It is always ready: whether there is a framework is the program's matter, whose Python may be another one.
    """

    needs: ClassVar[str] = ""
    """What the program has to train with."""

    def availability(self) -> Availability:
        """Ready, and for which programs."""
        return Availability("ready", f"records if the program trains with {self.needs}")

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
        """The hooks."""
        return injection_environment(plan, inherited)


def injection_environment(plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that put the hooks into every Python that the program starts.

    Args:
        plan: What records.
        inherited: The environment that the program would have had; its PYTHONPATH stays, behind ours.
    """
    return {
        "PYTHONPATH": _with_our_folder(inherited.get("PYTHONPATH", "")),
        VARIABLE: str(_settings_file(plan)),
        STACKS_RATE: f"{plan.stacks_hz:g}" if STACKS in plan.collectors else "",
        OWNER: "",  # a traceviz that runs within a recorded program starts afresh
    }


def _with_our_folder(python_path: str) -> str:
    """``python_path`` behind our folder. An empty entry means the current folder: none may arise, and none may go."""
    if not python_path:
        return str(FOLDER)
    if python_path.split(os.pathsep, maxsplit=1)[0] == str(FOLDER):
        return python_path
    return os.pathsep.join((str(FOLDER), python_path))


def write_injection(plan: Plan) -> Path:
    """Write the settings that the hooks read, before the program starts; the path of the file.

    Raises:
        OSError: the run folder cannot be written.
    """
    path = _settings_file(plan)
    path.write_text(json.dumps(injection_settings(plan), indent=1) + "\n", encoding="utf-8")
    return path


def injection_settings(plan: Plan) -> dict[str, object]:
    """The settings of the hooks as JSON holds them. No path: the file stays in the run folder, which may be shared."""
    names = [name for name in INJECTED if name in plan.collectors]
    window = plan.window
    return {
        "collectors": names,
        "window": {
            "first_step": window.first_step,
            "steps": window.steps,
            "delay_s": window.delay_s,
            "duration_s": window.duration_s,
        },
        "device_tracer": plan.device_tracer,
        "options": {name: options for name, options in plan.options.items() if name in names},
    }


def hooks_here() -> Any:
    """The hooks in this very process, for recording parts of it: :mod:`traceviz_inject.notebook`, in place.

    They go by the name that they have in recorded programs, under which ranges and figures of the program find them.

    Raises:
        UsageError: ``traceviz collect`` records this process.
    """
    if os.environ.get(VARIABLE):
        raise UsageError(
            "This process is being recorded by traceviz collect already.",
            fix="Record the whole of it, or start it without.",
        )
    if _HOOKS not in sys.modules:
        folder = FOLDER / _HOOKS
        spec = spec_from_file_location(_HOOKS, folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[_HOOKS] = module_from_spec(spec)
        spec.loader.exec_module(module)
    notebook = import_module(f"{_HOOKS}.notebook")
    notebook.install()
    return notebook


def settings_path(plan: Plan) -> str:
    """The path of the settings, as the variable holds it."""
    return str(_settings_file(plan))


def through_env(command: Sequence[str], added: Mapping[str, str], inherited: Mapping[str, str]) -> tuple[str, ...]:
    """``command`` such that ``env`` at its start does not drop the hooks: ``env PYTHONPATH=src python train.py``.

    Words of ``env`` that assign or unset one of our variables, or that empty the environment, are followed by
    assignments of ours, just before the program that it executes. The user's folders of PYTHONPATH stay, behind ours.

    Args:
        command: The user's command.
        added: Variables that the hooks need.
        inherited: The environment of the command.
    """
    if VARIABLE not in added or not command or Path(command[0]).name != "env":
        return tuple(command)
    values: dict[str, str | None] = {name: inherited.get(name) for name in _OURS}
    touched: set[str] = set()
    words = iter(enumerate(command[1:], 1))
    for place, word in words:
        name, is_assignment, value = word.partition("=")
        if word in {"-i", "-", "--ignore-environment"}:
            values = dict.fromkeys(_OURS)
            touched = {*_OURS}
        elif word in {"-u", "--unset"}:
            name = next(words, (0, ""))[1]
            values[name] = None
            touched.add(name)
        elif word.startswith("--unset="):
            values[value] = None
            touched.add(value)
        elif word in {"-C", "--chdir"}:
            next(words, None)
        elif word in {"--", "-v", "--debug"} or word.startswith("--chdir="):
            continue
        elif word.startswith("-"):  # an option that this does not know
            return tuple(command)
        elif is_assignment:
            values[name] = value
            touched.add(name)
        else:
            ours = {**added, "PYTHONPATH": _with_our_folder(values["PYTHONPATH"] or "")}
            again = [f"{name}={ours[name]}" for name in _OURS if name in touched]
            return (*command[:place], *again, *command[place:])
    return tuple(command)


_OURS = ("PYTHONPATH", VARIABLE, STACKS_RATE, OWNER)
"""Variables through which the hooks come into a program."""


def _settings_file(plan: Plan) -> Path:
    return (plan.folder / "inject.json").absolute()
