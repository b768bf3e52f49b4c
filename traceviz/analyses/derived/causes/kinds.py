"""Kinds of recorded events that explain time without device work, by their table and name.

A kind shows the remedy for the time; the event's name and place show where to apply it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from traceviz.analyses.derived.causes.places import located
from traceviz.analyses.derived.host.classes import CHILD_WAITS, DEVICE_CLASSES, FRAMEWORK_WAITS
from traceviz.analyses.derived.host.copy_purposes import PARAMETERS
from traceviz.analyses.derived.host.input_fetches import ANNOTATION, INPUT_NAME, NOT_INPUT_NAME
from traceviz.analyses.derived.patterns import matches, matching, replaced
from traceviz.analyses.derived.steps.serving import SERVING_NAME
from traceviz.trace.names.cuda_names import ApiKind, api_kind

KindKey = Literal[
    "input",
    "parameter_transfer",
    "host_collective",
    "synchronisation",
    "blocking_copy",
    "migration",
    "registration",
    "allocation",
    "stream",
    "first_launch",
    "launch",
    "launch_queue",
    "compilation",
    "device_wait",
    "optimizer",
    "operator",
    "runtime",
    "python",
    "python_wait",
    "library",
    "native",
    "saving",
    "logging",
    "serialization",
    "import",
    "io",
    "sleep",
    "lock",
    "gil",
    "wait",
    "range",
    "os_call",
    "child_process",
    "running",
    "driver",
    "profiler",
    "unexplained",
]


@dataclass(frozen=True, slots=True)
class CauseKind:
    """A kind of cause: stable key, display label, and the meaning of such an event."""

    key: KindKey
    label: str
    meaning: str


KINDS: tuple[CauseKind, ...] = (
    CauseKind("input", "input", "the program takes its next batch"),
    CauseKind("parameter_transfer", "parameter transfer", "parameters are brought to the device"),
    CauseKind("host_collective", "collective on the host", "ranks exchange data through the host (gloo, MPI)"),
    CauseKind("synchronisation", "synchronisation", "a call waits until the device is done"),
    CauseKind("blocking_copy", "blocking copy", "a copy call returns only when its copy is done"),
    CauseKind("migration", "migration of managed memory", "host or device touches pages that the other one holds"),
    CauseKind("registration", "registration of host memory", "host memory is pinned for the device, or released again"),
    CauseKind("allocation", "allocation", "memory is allocated or freed"),
    CauseKind("stream", "streams", "a stream is created or destroyed"),
    CauseKind("first_launch", "first use", "a call slow as the first: it creates a context, loads code or a library"),
    CauseKind("launch", "launch call", "a call that launches work or an asynchronous copy"),
    CauseKind("launch_queue", "launched, not begun", "work was launched and has not begun"),
    CauseKind("compilation", "compilation", "code is compiled or loaded, or a graph is captured"),
    CauseKind("device_wait", "wait for the device", "the framework waits for a result of the device"),
    CauseKind("optimizer", "optimizer", "the optimizer's step on the host"),
    CauseKind("operator", "operators", "an operator of the framework runs on the host"),
    CauseKind("runtime", "framework runtime", "the runtime of the framework prepares or runs a program"),
    CauseKind("python", "Python", "a Python function"),
    CauseKind("python_wait", "waits in Python", "a Python function that waits: sleep, a lock, a queue, a socket"),
    CauseKind("library", "library code", "a numeric library runs, in samples of the stack: what operator is not known"),
    CauseKind("native", "native code", "native code of the program or a library runs, in samples of the stack"),
    CauseKind("saving", "saving", "a checkpoint or a model is written, in samples of the stack"),
    CauseKind("logging", "logging", "messages, metrics or a progress bar are written, in samples of the stack"),
    CauseKind("serialization", "serialization", "objects become bytes or text, or back, in samples of the stack"),
    CauseKind("import", "imports", "modules are imported, in samples of the stack"),
    CauseKind("io", "input and output", "files, pipes or sockets are read or written, in samples of the stack"),
    CauseKind("sleep", "sleep", "the program sleeps, in samples of the stack"),
    CauseKind("lock", "locks and queues", "the program waits for another thread or process, in samples of the stack"),
    CauseKind(
        "gil",
        "waits for the GIL",
        "the thread waits until another one lets it run Python, in samples of the stack or by the call that waits",
    ),
    CauseKind("wait", "waits", "the thread used no processor, and nothing recorded says why"),
    CauseKind("range", "ranges", "a range that the program or a library marked, and nothing more precise"),
    CauseKind("os_call", "operating system", "a call of the operating system in which the thread waits"),
    CauseKind("child_process", "child processes", "a call of the operating system that waits for a child process"),
    CauseKind("running", "code that was not sampled", "the thread runs on a core, and nothing recorded says what"),
    CauseKind("driver", "driver", "another call of the device's API"),
    CauseKind("profiler", "profiler", "the profiler itself works"),
    CauseKind("unexplained", "unexplained", "nothing was recorded that covers the time"),
)
"""All kinds of causes."""
KIND = pl.Enum([kind.key for kind in KINDS])
"""Type of a column of kinds."""
KIND_LABELS: dict[str, str] = {kind.key: kind.label for kind in KINDS}

HOST_WORK: frozenset[KindKey] = frozenset(
    {
        "operator",
        "optimizer",
        "parameter_transfer",
        "runtime",
        "python",
        "library",
        "native",
        "range",
        "running",
        "driver",
        "launch",
    }
)
"""Kinds in which the host itself works and the device waits for the result."""
HOST = "host"
"""Part of the judged time in which the host itself works. Launches have a part of their own."""
PART_OF_KIND: dict[KindKey, str] = {
    **dict.fromkeys(("python_wait", "wait"), "waiting"),
    **dict.fromkeys(HOST_WORK, HOST),
    "launch": "kernel_launch",
}
"""Part for kinds of causes that have no part of their own."""

OPTIMIZER = r"(?i)^(optimizer[.]step|## optimizer ##|optimizer([ _]step)?$)"
"""Names of the optimizer's step."""
COLLECTIVE = r"^gloo:|^c10d::|^mpi:|^P?MPI_[A-Z]"
"""Names of operations and ranges in which a rank exchanges data through the host, or waits for others to."""

PYTHON_WAITS = (
    r"^<built-in (method|function) (e?poll|select|sleep|acquire|accept|wait|join|get|recv\w*|fsync)\b"
    r"|\b(threading|queue|selectors|socket|connection|popen_fork)\.py[(:]\d+\)?:? "
    r"(wait|get|join|select|recv|_?poll|accept)\b|^\$time sleep$"
)
"""Python functions in which a program waits, without work that a device could wait for."""
COMPILES = r"(?i)compil(e|er|ing|ation)([^a-z]|program|fusion|$)|nvrtc|^ptxas"
"""Names of ranges and operations that compile code. Calls of compiled code (``CompiledFxGraph``) do not count."""
RECORDED_OPERATOR = r"^(aten|torch|prim)::|, seq = \d+|^\{'mod': '"
"""Names of operators that PyTorch records as ranges: ``emit_nvtx``, PyProf."""

PINS_MEMORY = r"^(cuda|cu|hip)(Mem)?Host(Unr|R)egister"
"""Calls that pin memory of the program for the device, or release it; libraries of MPI call them on first use."""

_OF_API: dict[ApiKind, KindKey] = {
    "launch": "launch",
    "async_copy": "launch",
    "blocking_copy": "blocking_copy",
    "synchronisation": "synchronisation",
    "allocation": "allocation",
    "pool_allocation": "allocation",
    "stream": "stream",
    "compilation": "compilation",
    "other": "driver",
}
_OF_CATEGORY: dict[str, KindKey] = {
    "input": "input",
    "pipeline": "input",
    "op": "operator",
    "transfer": "runtime",
    "compile": "compilation",
    "python": "python",
    "annotation": "range",
    "runtime": "runtime",
}
_BY_NAME: tuple[tuple[KindKey, str], ...] = (
    ("host_collective", COLLECTIVE),
    ("device_wait", FRAMEWORK_WAITS),
    ("optimizer", OPTIMIZER),
)
"""Kinds of operations and ranges of any category, by name."""
_BY_NAME_OF_RANGE: tuple[tuple[KindKey, str], ...] = (("operator", RECORDED_OPERATOR), ("compilation", COMPILES))
"""Kinds of ranges, annotations and runtime events, by name."""


def kinds_of(source: str, names: pl.DataFrame) -> pl.Series:
    """Return the kind (:data:`KIND`) of each distinct name. Step marks get null: they explain nothing.

    Args:
        source: The table of the names: ``cuda_api``, ``host_ops``, ``nvtx``, ``os_calls``.
        names: Text columns ``name`` and ``category`` (null except for ``host_ops``).
    """
    if source == "cuda_api":
        pins = zip(names["name"], matching(names["name"], PINS_MEMORY), strict=True)
        return pl.Series("kind", ["registration" if pin else _OF_API[api_kind(name)] for name, pin in pins], KIND)
    if source == "os_calls":
        waits = matching(names["name"], CHILD_WAITS)
        return pl.Series("kind", ["child_process" if is_wait else "os_call" for is_wait in waits], KIND)
    if not names.height:
        return pl.Series("kind", [], KIND)
    kind = _of_ranges() if source == "nvtx" else _of_operations()
    is_engine_step = matches(pl.col("name"), SERVING_NAME) & ((pl.col("category") == "annotation") | (source == "nvtx"))
    kind = pl.when(~is_engine_step.fill_null(value=False)).then(kind)
    return names.select(kind.cast(KIND).alias("kind")).to_series()


def _of_ranges() -> pl.Expr:
    """Return the kinds of NVTX ranges."""
    loads = matches(pl.col("name"), INPUT_NAME) & ~matches(pl.col("name"), NOT_INPUT_NAME)
    rules = (
        *((matches(pl.col("name"), pattern), key) for key, pattern in (*_BY_NAME, *_BY_NAME_OF_RANGE)),
        (matches(pl.col("name"), PARAMETERS), "parameter_transfer"),
        (loads | matches(pl.col("name"), ANNOTATION), "input"),
    )
    return pl.coalesce([*(pl.when(holds).then(pl.lit(key)) for holds, key in rules), pl.lit("range")])


def _of_operations() -> pl.Expr:
    """Return the kinds of host operations, by their names, else by their categories."""
    is_named = pl.col("category").fill_null("") != "step"
    is_range = pl.col("category").is_in(["annotation", "runtime"]).fill_null(value=False)
    is_python = (pl.col("category") == "python").fill_null(value=False)
    rules = (
        (is_python & matches(pl.col("name"), PYTHON_WAITS), "python_wait"),
        *((is_named & matches(pl.col("name"), pattern), key) for key, pattern in _BY_NAME),
        *((is_range & matches(pl.col("name"), pattern), key) for key, pattern in _BY_NAME_OF_RANGE),
        (is_range & matches(pl.col("name"), PARAMETERS), "parameter_transfer"),
        (is_range & matches(pl.col("name"), ANNOTATION), "input"),
    )
    of_category = pl.col("category").replace_strict(_OF_CATEGORY, default=None, return_dtype=pl.String)
    return pl.coalesce([*(pl.when(holds).then(pl.lit(key)) for holds, key in rules), of_category])


def part_of_cause() -> pl.Expr:
    """Return the exclusive part of the judged time to which a cause belongs, from its ``class`` and ``kind``."""
    of_class, is_unexplained = pl.col("class"), pl.col("kind") == "unexplained"
    return (
        pl.when(of_class == "input_wait")
        .then(pl.lit("input"))
        .when(of_class == "communication")
        .then(pl.lit("host_collective"))
        .when(of_class.is_in(DEVICE_CLASSES))
        .then(of_class)
        # The class names the part if the cause is unexplained
        .when(is_unexplained & (of_class == "host_blocked"))
        .then(pl.lit("os_call"))
        .when(is_unexplained & (of_class != "host_compute"))
        .then(of_class)
        .otherwise(pl.col("kind").replace(PART_OF_KIND))
    )


def cause_name(name: pl.Expr) -> pl.Expr:
    """Remove from event names the parts that differ per call: ``aten::add, seq = 7`` becomes ``aten::add``."""
    return located(replaced(without_id(name), r"([ _#:])\d+$", "${1}N"))


def without_id(name: pl.Expr) -> pl.Expr:
    """Remove the number of a call from the name of a range that PyTorch's ``emit_nvtx`` records."""
    return replaced(name, r", (op_id|seq) = .*$", "")
