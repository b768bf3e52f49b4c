"""Injection of our hooks into the program: two environment variables and one file; see ``collectors/inject``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, ClassVar

from traceviz.collectors.base import STACKS, Availability, Collector, Plan, Problem
from traceviz.collectors.frameworks.harvest import reached_pids
from traceviz.collectors.program.pythons import Hooks, Unhooked
from traceviz.core.errors import UsageError
from traceviz.core.units import format_ns

VARIABLE = "TRACEVIZ_INJECT"
"""Environment variable with the path of the settings that the hooks read."""

OWNER = "TRACEVIZ_INJECT_OWNER"
"""Environment variable by which a recording process keeps its children from recording."""

FOLDER = Path(__file__).parent.with_name("inject")
"""The folder that goes on the program's PYTHONPATH: its ``sitecustomize`` runs at the start of every Python."""

STACKS_RATE = "TRACEVIZ_INJECT_STACKS"
"""Environment variable with the stack samples per second; empty if stacks are not requested."""

_HOOKS = "traceviz_inject"

INJECTED = ("tensorflow", "jax", "torch", "nvtx", STACKS)
"""Collectors that work inside the program."""


class InjectedCollector(Collector):
    """A collector whose hooks work inside the program.

    It is always ready. Only the program's Python, which may be another one, decides whether the framework exists.
    """

    needs: ClassVar[str] = ""
    """The frameworks that the program may train with."""

    def availability(self) -> Availability:
        """Return ready, and the programs that it can record."""
        return Availability("ready", f"records if the program trains with {self.needs}")

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of the hooks."""
        return injection_environment(plan, inherited)


def injection_environment(plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that put the hooks into every Python that the program starts.

    Args:
        plan: The plan of the run.
        inherited: The environment that the program would have had; its PYTHONPATH stays, after our folder.
    """
    return {
        "PYTHONPATH": _with_our_folder(inherited.get("PYTHONPATH", "")),
        VARIABLE: str(Path(settings_path(plan))),
        STACKS_RATE: f"{plan.stacks_hz:g}" if STACKS in plan.collectors else "",
        OWNER: "",  # a traceviz within a recorded program starts with a clean state
    }


def _with_our_folder(python_path: str) -> str:
    """Put our folder before ``python_path``. Empty entries mean the current folder: none is added or removed."""
    if not python_path:
        return str(FOLDER)
    if python_path.split(os.pathsep, maxsplit=1)[0] == str(FOLDER):
        return python_path
    return os.pathsep.join((str(FOLDER), python_path))


def write_injection(plan: Plan) -> Path:
    """Write the settings that the hooks read, before the program starts; return the path of the file.

    Raises:
        OSError: the run folder cannot be written.
    """
    path = Path(settings_path(plan))
    path.write_text(json.dumps(injection_settings(plan), indent=1) + "\n", encoding="utf-8")
    return path


def injection_settings(plan: Plan) -> dict[str, object]:
    """Return the settings of the hooks for JSON. They hold no path, because the run folder may be shared."""
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
    """Install the hooks in this process, for recording parts of it; return :mod:`traceviz_inject.notebook`.

    They use the module name that they have in recorded programs, by which the program's ranges and figures find them.

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
    """Return the path of the settings, as the variable holds it."""
    return str((plan.folder / "inject.json").absolute())


def through_env(command: Sequence[str], added: Mapping[str, str], inherited: Mapping[str, str]) -> tuple[str, ...]:
    """Return ``command`` so that a leading ``env`` does not drop the hooks: ``env PYTHONPATH=src python train.py``.

    Some words of ``env`` assign or unset our variables, or empty the environment. Our assignments then follow, directly
    before the program that ``env`` executes. The user's folders of PYTHONPATH stay, after ours.

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
        elif word.startswith("-"):  # an unknown option
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
"""Variables that bring the hooks into a program."""


# Processes without hooks -------------------------------------------------------------------------------------

LOST = "hooks-lost"
"""Code of the problem; :mod:`traceviz.render.first_screen` shows it first."""
_LEAST_S = 0.5
"""Smallest processor time of a process that matters, if others have the hooks."""
_MOST_NAMED = 3
_WHY = {"replaced": "PYTHONPATH was replaced", "emptied": "the environment was emptied"}
_FIX = {
    "replaced": "Add to PYTHONPATH instead of replacing it: PYTHONPATH=FOLDER:$PYTHONPATH.",
    "emptied": f"Hand PYTHONPATH, {VARIABLE} and {STACKS_RATE} on, as env -i and sudo do not.",
}


def hooks_of(plan: Plan) -> Hooks | None:
    """Return how processes of a run find the hooks; ``None`` if no collector needs them."""
    if not set(INJECTED).intersection(plan.collectors):
        return None
    return Hooks(str(FOLDER), VARIABLE, settings_path(plan))


def lost_hooks(plan: Plan, seen: Iterable[tuple[int, Unhooked]]) -> tuple[Problem, ...]:
    """Return the problem that Python processes ran without hooks; nothing if none of them matters.

    Args:
        plan: The plan of the run.
        seen: Python processes without hooks, by pid.
    """
    reached = reached_pids(plan.folder / "raw")
    lost = [process for pid, process in seen if pid not in reached and (not reached or process.cpu_s >= _LEAST_S)]
    if not lost:
        return ()
    groups: dict[tuple[str, str], list[float]] = {}
    for process in sorted(lost, key=lambda process: -process.cpu_s):
        groups.setdefault((process.name, process.why), []).append(process.cpu_s)
    named = []
    for (name, why), times in groups.items():  # train.py (2 processes): PYTHONPATH was replaced, 12 s of processor time
        number = f" ({len(times)} processes)" if len(times) > 1 else ""
        used = format_ns(round(sum(times) * 1e9))
        named.append(f"{name}{number}: {_WHY.get(why, f'it runs with python {why}')}, {used} of processor time")
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    count, whose = ("A Python process", "its") if len(lost) == 1 else (f"{len(lost)} Python processes", "their")
    message = (
        f"{count} ran without hooks, so that {whose} steps and stacks were not recorded. "
        f"{'; '.join(named[:_MOST_NAMED])}{more}."
    )
    fixes = dict.fromkeys(_FIX.get(why, f"Run python without {why}.") for _, why in groups)
    return (Problem(LOST, message, " ".join(fixes)),)
