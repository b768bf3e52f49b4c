"""Advice to leave out: the program follows it already, or the capture contradicts it.

Each :class:`Habit` names a behaviour of the program and the words of advice that it makes pointless. Environment
settings need no entry: ``NAME=value`` in a line of advice is compared with the environment of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.samples import machine
from traceviz.analyses.input.dataloader import LOADERS, LoaderKind, loader_kind
from traceviz.analyses.input.tfdata_settings import PipelineSettings, pipeline_settings

_IDLE_CORES = frozenset({"TV601", "TV602"})
"""Codes of findings that report idle cores."""
_COMPILED_TORCH = r"Torch-Compiled Region|CompiledFxGraph|CompiledFunction"
_COMPILED_TENSORFLOW = r"__inference_"
_FUSED_OPTIMIZER = r"aten::_fused_(adam|adamw|sgd|adagrad)"


@dataclass(frozen=True, slots=True)
class Seen:
    """Habits of the program that a trace shows.

    Args:
        settings: Settings by key.
        threads: Threads of one operation, as the framework or the environment states them.
        full_speed: Number of cores at which arithmetic runs at full speed.
        pipeline: The program's tf.data pipeline.
        loaders: Places where the DataLoaders work that the program takes batches from.
        operations: Predicate: true if the name of an operation of the host matches the given pattern.
        has_stacks: True if stacks of Python were sampled or recorded.
        codes: Codes of all findings.
    """

    settings: dict[str, str]
    threads: int | None
    full_speed: float | None
    pipeline: PipelineSettings
    loaders: frozenset[LoaderKind]
    operations: Callable[[str], bool]
    has_stacks: bool
    codes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Habit:
    """A behaviour of a program, and the advice that it makes pointless.

    Args:
        name: Text that names the behaviour.
        needless: Pattern of a sentence or clause of advice.
        is_seen: Predicate: true if the trace shows the behaviour.
    """

    name: str
    needless: str
    is_seen: Callable[[Seen], bool]


HABITS: tuple[Habit, ...] = (
    Habit(
        "computes with one thread",
        r"torch\.set_num_threads\(1\)|OMP_NUM_THREADS for each rank",
        lambda seen: seen.threads == 1,
    ),
    Habit(
        "has a thread for each core",
        r"[Tt]hreads: as many as physical cores|as many threads per operation as there are physical cores",
        lambda seen: None not in (seen.threads, seen.full_speed) and seen.threads == round(seen.full_speed or 0),
    ),
    Habit(
        "prefetches",
        r"^(TensorFlow|tf\.data): (let the input run ahead by |add )?\.prefetch\(",
        lambda seen: seen.pipeline.prefetches,
    ),
    Habit(
        "maps in parallel",
        r"^TensorFlow: num_parallel_calls=|^This map runs one example after the other",
        lambda seen: seen.pipeline.maps_in_parallel,
    ),
    Habit(
        "has cores to spare",
        r"^Give the host more cores",
        lambda seen: bool(_IDLE_CORES & seen.codes),
    ),
    Habit("has no loader workers", r"^Fewer loader workers", lambda seen: seen.loaders == {"single-process"}),
    Habit(
        "has loader workers",
        r"^PyTorch: (set num_workers > 0|num_workers of the DataLoader$)",
        lambda seen: seen.loaders == {"multi-process"},
    ),
    Habit("compiles with torch", r"torch\.compile", lambda seen: seen.operations(_COMPILED_TORCH)),
    Habit(
        "compiles with TensorFlow",
        r"^TensorFlow: tf\.function$|^Decorate the training step with @tf\.function",
        lambda seen: seen.operations(_COMPILED_TENSORFLOW),
    ),
    Habit("fuses its optimizer", r"optimizers with fused=True", lambda seen: seen.operations(_FUSED_OPTIMIZER)),
    Habit(
        "was recorded with its stacks",
        r"py-spy top|with_stack=True|python_tracer_level=1|^Record more of it",
        lambda seen: seen.has_stacks,
    ),
    Habit(
        "has no CPU limit",
        r"^In a container, set thread numbers",
        lambda seen: "machine.cores" in seen.settings and "machine.cpu_limit" not in seen.settings,
    ),
)
"""All habits of programs for which advice is left out."""


def followed(trace: TraceView, codes: Collection[str] = ()) -> tuple[re.Pattern[str], ...]:
    """Return patterns of advice that the program of ``trace`` follows already, or that the trace contradicts.

    Args:
        trace: The trace.
        codes: Codes of all findings.
    """
    seen = _seen(trace, frozenset(codes))
    needless = [habit.needless for habit in HABITS if habit.is_seen(seen)]
    needless += [
        _assignment(key.removeprefix("env."), value)
        for key, value in [(key, value) for key, value in seen.settings.items() if key.startswith("env.") and value]
    ]
    return tuple(_compiled(pattern) for pattern in needless)


def _seen(trace: TraceView, codes: frozenset[str]) -> Seen:
    host, names = machine(trace), trace.host_names["name"]
    some = names.filter(names.str.contains_any(list(LOADERS)))  # few names out of some ten thousand
    loaders = {kind for name in some.to_list() if (kind := loader_kind(name)) is not None}
    settings = dict(host.settings)
    return Seen(
        settings=settings,
        threads=_threads(settings),
        full_speed=host.full_speed,
        pipeline=pipeline_settings(trace),
        loaders=frozenset(loaders),
        operations=lambda pattern: bool(names.cast(pl.String).str.contains(pattern).any()),
        has_stacks="stacks" in trace.tables or "python" in trace.host_names["category"],
        codes=codes,
    )


_THREADS = ("collector.torch.threads.intra_op", "collector.tensorflow.threads.intra_op", "env.OMP_NUM_THREADS")
"""Settings of the threads of one operation, the most trusted first."""


def _threads(settings: dict[str, str]) -> int | None:
    stated = (settings[key] for key in _THREADS if settings.get(key, "").isdecimal())
    return next((int(value) for value in stated if int(value)), None)


def _assignment(name: str, value: str) -> str:
    """Return the pattern of advice to set a variable to its present value."""
    return rf"\b{re.escape(name)}={re.escape(value)}(?![\w.])"


@lru_cache(maxsize=1 << 8)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
