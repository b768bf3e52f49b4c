"""Advice that fits the program. Lines for other frameworks and other profilers are left out.

A line of advice may start with a general sentence. Parts for one addressee follow; each starts with its name::

    Prefetch the input. TensorFlow: .prefetch(tf.data.AUTOTUNE); PyTorch: more workers; JAX: a thread.

Advice is also left out if the program follows it already, or if the capture contradicts it. Each :class:`Habit` names
a behaviour of the program and the words of advice that it makes pointless. Environment settings need no entry:
``NAME=value`` in a line of advice is compared with the environment of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import polars as pl

from traceviz.analyses.derived.capture.kind import capture_kind
from traceviz.analyses.derived.device.names import world_sizes
from traceviz.analyses.derived.recorded.frameworks import FRAMEWORKS
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.samples import machine
from traceviz.analyses.input.dataloader import LOADERS, LoaderKind, loader_kind
from traceviz.analyses.input.tfdata_settings import PipelineSettings, pipeline_settings
from traceviz.report import Finding

NSIGHT = "Nsight Systems"
STACKS = "with_stack=True"
"""Text that marks advice to record frames of Python."""
_RECORD_STACKS = re.compile(r" \(record with_stack=True[^()]*\)")
_NAMES = "|".join((*FRAMEWORKS, NSIGHT))
_BORDER = re.compile(rf"(?:; |(?<=\.) )(?=(?:{_NAMES}): )")
_ADDRESSEE = re.compile(rf"^({_NAMES}): ")


def inapplicable(frameworks: Collection[str], producer: str | None, *, has_frames: bool = False) -> frozenset[str]:
    """Return frameworks, profilers and things to record that advice may name but that do not apply to the trace.

    Args:
        frameworks: Frameworks that the program may use, in lower case.
        producer: The program that recorded the trace; if it is unknown, advice for any profiler is kept.
        has_frames: True if frames of Python were recorded. Advice to record them is then left out.
    """
    others = {name for name in FRAMEWORKS if name.lower() not in frameworks}
    others |= {NSIGHT} if producer and "nsight" not in producer.lower() else set()
    return frozenset(others | ({STACKS} if has_frames else set()))


def fit_advice(finding: Finding, others: Collection[str], needless: Sequence[re.Pattern[str]] = ()) -> Finding:
    """Return ``finding`` without advice for others, and without advice that the program follows already.

    Args:
        finding: The finding.
        others: Addressees to leave out. If no other advice is left, it stays.
        needless: Patterns of sentences and clauses that are always left out, even if no advice is left.
    """
    kept = tuple(line for step in finding.advice if (line := _without_others(step, others)))
    wanted = tuple(line for step in kept or finding.advice if (line := _without_needless(step, needless)))
    return replace(finding, advice=wanted)


def say_once(findings: Sequence[Finding]) -> list[Finding]:
    """Return ``findings`` without advice that an earlier one gives; one that gives no other refers to it."""
    given: dict[str, str] = {}
    kept = []
    for finding in findings:
        own = tuple(line for line in finding.advice if line not in given)
        if finding.advice and not own:
            name = finding.slug.replace("-", " ").capitalize()
            own = (f"{name}: see the advice of {given[finding.advice[0]]}.",)
        given |= dict.fromkeys(own, finding.code)
        kept.append(replace(finding, advice=own))
    return kept


def _without_needless(step: str, needless: Sequence[re.Pattern[str]]) -> str:
    """Return ``step`` without clauses that a pattern matches; empty if its opening matches or is all that is left."""
    first, *rest = _BORDER.split(step)
    opening, parts = (first, rest) if first.endswith(".") and rest else ("", [first, *rest])
    if opening and _matches_any(needless, opening):
        return ""
    kept = [part for whole in parts if (part := _wanted_clauses(whole, needless))]
    if kept == parts:
        return step
    if not kept:
        return ""
    return f"{opening} {'; '.join(kept)}".strip().rstrip(".") + "."


def _wanted_clauses(part: str, needless: Sequence[re.Pattern[str]]) -> str:
    """Return the clauses of ``part`` that no pattern matches, with its addressee."""
    addressee = match[0] if (match := _ADDRESSEE.match(part)) else ""
    clauses = [f"{addressee}{clause}" for clause in part.removeprefix(addressee).split("; ")]
    kept = [clause.removeprefix(addressee) for clause in clauses if not _matches_any(needless, clause)]
    return f"{addressee}{'; '.join(kept)}" if kept else ""


def _matches_any(patterns: Sequence[re.Pattern[str]], clause: str) -> bool:
    return any(pattern.search(clause.rstrip(".")) for pattern in patterns)


def _without_others(step: str, others: Collection[str]) -> str:
    """Return ``step`` without the parts that address ``others``; empty if it addresses no one else."""
    whole = _RECORD_STACKS.sub("", step) if STACKS in others else step
    parts = _BORDER.split(whole)
    kept = [part for part in parts if (addressee := _ADDRESSEE.match(part)) is None or addressee[1] not in others]
    if len(kept) == len(parts):
        return whole
    first, *rest = kept or [""]
    text = f"{first} {'; '.join(rest)}" if rest and first.endswith(".") else "; ".join(kept)
    return f"{text}." if text and not text.endswith(".") else text


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
        is_pinned: True if nearly all copies from and to the host use pinned memory.
        is_one_rank: True if one device works, and no rank of a larger job was recorded.
        captures_graph: True if the capture is of a graph that is being captured.
        codes: Codes of all findings.
    """

    settings: dict[str, str]
    threads: int | None
    full_speed: float | None
    pipeline: PipelineSettings
    loaders: frozenset[LoaderKind]
    operations: Callable[[str], bool]
    has_stacks: bool
    is_pinned: bool
    is_one_rank: bool
    captures_graph: bool
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
        "copies from pinned memory",
        r"(from|into|from and to) pinned memory|pin_memory=True|tensor\.pin_memory",
        lambda seen: seen.is_pinned and "TV302" not in seen.codes,
    ),
    Habit("is one rank", r"DistributedDataParallel|\bDDP\b|bf16_compress_hook", lambda seen: seen.is_one_rank),
    Habit(
        "captures a graph",
        r"torch\.compile|CUDA graphs|jit_compile|one jax\.jit|^Compile the step",
        lambda seen: seen.captures_graph,
    ),
    Habit(
        "has no CPU limit",
        r"^In a container, set thread numbers",
        lambda seen: "machine.cores" in seen.settings and "machine.cpu_limit" not in seen.settings,
    ),
)
"""All habits of programs for which advice is left out."""


def find_needless(trace: TraceView, codes: Collection[str] = ()) -> tuple[re.Pattern[str], ...]:
    """Return patterns of advice that the program of ``trace`` follows already, or that the trace contradicts.

    Args:
        trace: The trace.
        codes: Codes of all findings.
    """
    seen = _find_habits(trace, frozenset(codes))
    needless = [habit.needless for habit in HABITS if habit.is_seen(seen)]
    for key, value in seen.settings.items():  # advice to set a variable to its present value
        if key.startswith("env.") and value:
            needless.append(rf"\b{re.escape(key.removeprefix('env.'))}={re.escape(value)}(?![\w.])")
    return tuple(_compiled(pattern) for pattern in needless)


def _find_habits(trace: TraceView, codes: frozenset[str]) -> Seen:
    host, names = machine(trace), trace.host_names["name"]
    some = names.filter(names.str.contains_any(list(LOADERS)))  # few names out of some ten thousand
    loaders = {kind for name in some.to_list() if (kind := loader_kind(name)) is not None}
    settings = dict(host.settings)
    return Seen(
        settings=settings,
        threads=_stated_threads(settings),
        full_speed=host.full_speed,
        pipeline=pipeline_settings(trace),
        loaders=frozenset(loaders),
        operations=lambda pattern: bool(names.cast(pl.String).str.contains(pattern).any()),
        has_stacks="stacks" in trace.tables or "python" in trace.host_names["category"],
        is_pinned=_copies_from_pinned_memory(trace),
        is_one_rank=len(trace.device_busy) <= 1 and max(world_sizes(trace), default=1) <= 1,
        captures_graph=capture_kind(trace).key == "graph-capture",
        codes=codes,
    )


NEARLY_ALL = 0.9
"""Least part of the copied bytes in pinned memory with which advice to pin memory is pointless."""


def _copies_from_pinned_memory(trace: TraceView) -> bool:
    copies = trace.frame("memcpy", "kind", "src_memory", "dst_memory", "bytes")
    host = pl.when(pl.col("kind") == "h2d").then("src_memory").when(pl.col("kind") == "d2h").then("dst_memory")
    sizes = copies.select(host.cast(pl.String).alias("memory"), "bytes").drop_nulls()
    known = sizes.filter(pl.col("memory").is_in(["pinned", "pageable"]))
    pinned = int(known.filter(pl.col("memory") == "pinned")["bytes"].sum())
    return pinned > 0 and pinned >= NEARLY_ALL * int(known["bytes"].sum())


_THREADS = ("collector.torch.threads.intra_op", "collector.tensorflow.threads.intra_op", "env.OMP_NUM_THREADS")
"""Settings of the threads of one operation, the most trusted first."""


def _stated_threads(settings: dict[str, str]) -> int | None:
    stated = (settings[key] for key in _THREADS if settings.get(key, "").isdecimal())
    return next((int(value) for value in stated if int(value)), None)


@lru_cache(maxsize=1 << 8)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
