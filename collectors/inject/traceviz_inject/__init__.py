"""Hooks inside the profiled program: they count its steps and start and stop profilers around some of them.

====================  ==================================================================================================
``config``            the settings: the file that TRACEVIZ_INJECT names
``process``           the process of the program that trains; only that one records
``hooks``             run a function once the program has imported a module
``step_clock``        the one step clock
``steps``             the sources of the clock: ``keras``, ``tensorflow``, ``jax``; ``torch``, ``paddle``, ``mxnet``,
                      which share ``loop``
``profilers``         ``window``: a profiler's window on the clock; ``tensorflow``, ``jax``, ``torch``, ``nvtx_ranges``
``stacks``            ``recording``: the stacks of all threads from the start, and the parts of the run that hooks
                      report; ``discovered_loop``: the loop of an unknown framework, found in stacks
``phases``            hooks for saving, validation, epochs, compilation; ``step_parts``: the parts of a step
``facts``             frameworks in use and their threads, versions, samples of a step, quality figures, folders of
                      TensorBoard's files
``calls``             functions of frameworks that also call a hook
``notebook``          recording parts of a process that is running already
``exits``             save at exit, at SIGTERM, at ``os._exit``
``status``            the output for other processes: status.json, problems.jsonl
====================  ==================================================================================================

Standard library only, syntax of Python 3.9. Modules that are only needed after a framework's import are imported then:
most Pythons below a training script are small helpers, and each pays for the imports here.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from . import hooks, process, status

VARIABLE = "TRACEVIZ_INJECT"
"""Environment variable with the path of the settings; without it, nothing happens."""

STACKS = "TRACEVIZ_INJECT_STACKS"
"""Environment variable with the stack samples per second; empty if sampling is not requested. Sampling starts first,
and most Pythons must not load the reader of the settings."""

FRAMEWORKS = ("jax", "keras", "mxnet", "nvtx", "paddle", "tensorflow", "tf_keras", "torch")
"""Packages whose import starts everything else."""

STEP_SOURCES = ("steps.jax", "steps.keras", "phases.install", "steps.tensorflow")
"""Modules that report steps to the clock; all of them, because any collector may need the steps of any framework."""

RECORDERS = {
    "jax": "profilers.jax",
    "nvtx": "profilers.nvtx_ranges",
    "stacks": "stacks.recording",
    "tensorflow": "profilers.tensorflow",
    "torch": "profilers.torch",
}
"""Collector -> module that records for it. Each of these modules has ``install(settings)``."""


def install() -> None:
    """Wait for a framework, unless an ancestor already records. Stacks are sampled in either case."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        return
    if os.environ.get(STACKS):
        status.guarded(_sample_stacks)(os.path.dirname(path))  # noqa: PTH120 pathlib costs start-up time
    if process.inherited_owner():
        return
    status.note_process(os.path.dirname(path))  # noqa: PTH120 pathlib costs start-up time
    hooks.before_import(FRAMEWORKS, lambda: _install_all(path))


def _sample_stacks(run: str) -> None:
    if sys.version_info >= (3, 9):  # noqa: UP036 a helper's Python, not the one that trains
        from .stacks import recording  # noqa: PLC0415 only if requested

        recording.begin(run, float(os.environ[STACKS]))


def _install_all(path: str) -> None:
    """Install all hooks in this order: if several are around one function, the later ones are outside."""
    from . import config  # noqa: PLC0415 see the end of this module's description
    from .facts import versions  # noqa: PLC0415 see the end of this module's description

    status.guarded(versions.install)(os.path.dirname(path))  # noqa: PTH120 pathlib costs start-up time
    settings = config.load(path)
    process.watch_forks()
    recorders = [RECORDERS[name] for name in settings.collectors if name in RECORDERS]
    for module in (*STEP_SOURCES, *recorders) if recorders else ():
        status.guarded(_install_one)(module, settings)


def _install_one(name: str, settings: object) -> None:
    import_module(f"{__name__}.{name}").install(settings)
