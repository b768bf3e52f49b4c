"""Hooks inside the profiled program: they count its steps and start and stop profilers around some of them.

====================  ==================================================================================================
``config``            the settings: the file that TRACEVIZ_INJECT names
``process``           which process of the program trains; only that one records
``hooks``             run a function once a module has been imported by the program
``steps``             the one step clock; ``keras_steps``, ``tf_iterators``, ``jax_calls`` tell it, and, of what
                      ``training_loop`` sees, ``torch_steps``, ``paddle_steps``, ``mxnet_steps``
``found_loop``        the loop of a framework that no hook knows, by what stacks show
``parts``             the parts of a step; ``torch_steps`` and ``loops_keras``, which ``loops`` installs, tell of them
``frameworks``        which of the imported frameworks is at work, and with how many threads
``recorder``          a profiler's window on the clock; ``tensorflow_profiler``, ``jax_profiler``, ``torch_profiler``
``stack_recording``   the stacks of all threads from the start, and the parts of the run, of which hooks tell it:
                      ``stack_sampler``, ``stack_states``, ``stack_interning``, ``stack_names``, ``stack_file``,
                      ``stack_metrics``, ``thread_ids``
``phases``            hooks that tell of saving, validation, epochs, compilation: ``phases_compiling``, ``phases_keras``
``facts``             samples of a step, and whether something learns
``metrics``           hooks that tell of figures of quality; ``event_folders``, where TensorBoard's files are written
``versions``          versions of the frameworks that are imported
``exits``             save at exit, at SIGTERM, at ``os._exit``
``status``            what others can read of it: status.json, problems.jsonl
====================  ==================================================================================================

Standard library only, syntax of Python 3.9. Modules that are only needed once a framework was imported are imported
then: most Pythons that start below a training script are small helpers, and each pays for what is imported here.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from . import hooks, process, status

VARIABLE = "TRACEVIZ_INJECT"
"""Environment variable with the path of the settings; nothing happens where it is not set."""

STACKS = "TRACEVIZ_INJECT_STACKS"
"""Environment variable with the samples of stacks per second; empty where nobody asked for any. Sampling begins before
anything else, and most Pythons shall not load what reads the settings."""

FRAMEWORKS = ("jax", "keras", "mxnet", "nvtx", "paddle", "tensorflow", "tf_keras", "torch")
"""Packages whose import is what everything else waits for."""

STEP_SOURCES = ("steps.jax", "steps.keras", "phases.install", "steps.tensorflow")
"""Modules that tell the clock of steps; all of them, because any collector may need the steps of any framework."""

RECORDERS = {
    "jax": "profilers.jax",
    "nvtx": "profilers.nvtx_ranges",
    "stacks": "stacks.recording",
    "tensorflow": "profilers.tensorflow",
    "torch": "profilers.torch",
}
"""Collector -> module that records for it. Each of these modules has ``install(settings)``."""


def install() -> None:
    """Wait for a framework; not where an ancestor already records. Stacks are sampled in either case."""
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
        from .stacks import recording  # noqa: PLC0415 only where it is asked for

        recording.begin(run, float(os.environ[STACKS]))


def _install_all(path: str) -> None:
    """Put all hooks in place, in this order: where several are around one function, the later ones are outside."""
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
