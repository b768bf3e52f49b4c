"""Names of nodes without the parts that differ between runs, so that calls of one kind share a node."""

from __future__ import annotations

import re

import polars as pl

from traceviz.analyses.derived.calls.short_names import function_of
from traceviz.analyses.derived.stacks.sampled import main_thread
from traceviz.analyses.derived.steps.search import NO_THREAD, training_thread
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.sanitize import bounded
from traceviz.trace.names.cuda_names import ApiKind, api_kind
from traceviz.trace.names.kernel_names import UNKNOWN as UNKNOWN_KERNEL
from traceviz.trace.names.op_families import UNKNOWN, op_family, op_type

_ARGUMENTS = re.compile(r"(?s)#\w+=.*$")
"""Suffix that TensorFlow's profiler adds to names: ``#id=7,is_eager=0#``."""
_TYPED = re.compile(r"(?P<name>[^:]+):(?P<type>[A-Z_][A-Za-z0-9_.>]*)$")
_RUNNING_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![\w.])\d+(?:\.\d+)?(?![\w.])|(?<=[_#])\d+$")
"""Numbers that are replaced, as in the section on ranges."""
_DIGITS = re.compile(r"\d+")
TRAINING_THREAD = "training thread"
OTHER_THREADS = "other threads"
_MOST_THREADS = 24

_OF_CATEGORY = {
    "step": "step",
    "input": "input",
    "pipeline": "input",
    "transfer": "copy",
    "compile": "compilation",
    "python": "python",
    "annotation": "range",
}
_OF_API: dict[ApiKind, str] = {
    "launch": "launch_call",
    "async_copy": "launch_call",
    "blocking_copy": "sync_call",
    "synchronisation": "sync_call",
    "allocation": "memory_call",
    "pool_allocation": "memory_call",
    "stream": "memory_call",
    "compilation": "compilation",
    "other": "api_call",
}


def without_numbers(name: str) -> str:
    """Replace numbers that count instances with ``N``: ``ProfilerStep#N``."""
    return _RUNNING_NUMBER.sub("N", bounded(name))


def operation_name(name: str, category: str) -> str:
    """Return the name of a host operation's node."""
    plain = _ARGUMENTS.sub("", bounded(name)) or bounded(name)
    return without_numbers(plain) if category in {"step", "annotation"} else plain


def operation_group(name: str, category: str) -> tuple[str, str]:
    """Split a TensorFlow operation, ``dense/MatMul:MatMul``, into its name and its type; the type is empty if equal."""
    plain = operation_name(name, category)
    match = _TYPED.match(plain) if category in {"op", "input"} else None
    if match is None:
        return plain, ""
    return match["name"], match["type"] if match["type"] != match["name"] else ""


def operation_family(name: str, category: str) -> str:
    """Return the colour of a host operation's node; an operator's colour depends on what it computes."""
    if category != "op":
        return _OF_CATEGORY.get(category, "other")
    family = op_family(op_type(name))
    return "op" if family == UNKNOWN else family


def api_family(name: str) -> str:
    """Return the colour of the node of a device API call."""
    return _OF_API[api_kind(name)]


def kernel_family(family: str) -> str:
    """Return the colour of the node of a kernel of this family (:mod:`traceviz.trace.names.kernel_names`)."""
    return {UNKNOWN_KERNEL: "device_compute", "communication": "collective"}.get(family, family)


def kernel_name(name: str) -> str:
    """Return the name of a kernel's node: its function, without types and arguments."""
    return bounded(function_of(bounded(name)))


@once_per_trace
def thread_labels(trace: TraceView) -> pl.DataFrame:
    """Return ``thread_id, label`` of each thread; the label names its kind and is stable between runs."""
    training = {_training_thread(trace, rank) for rank in trace.ranks}
    labels: dict[int, str] = {}
    known_threads = trace.frame("threads", "thread_id", "process_id", pl.col("name").cast(pl.String))
    for thread, process, name in known_threads.iter_rows():
        plain = _kind_of_thread(name) if name else OTHER_THREADS
        whose = "" if process in trace.ranks else "worker process: "
        labels[thread] = TRAINING_THREAD if thread in training else f"{whose}{plain}"
    kinds = list(dict.fromkeys(labels.values()))
    known = {TRAINING_THREAD, *kinds[:_MOST_THREADS]}
    rows = [(thread, label if label in known else OTHER_THREADS) for thread, label in labels.items()]
    return pl.DataFrame(rows, {"thread_id": pl.Int64, "label": pl.String}, orient="row")


def _kind_of_thread(name: str) -> str:
    """Return a name shared by threads that differ only in a number."""
    plain = _DIGITS.sub("N", bounded(name))
    return plain if "thread" in plain.lower() else f"thread {plain}"


def _training_thread(trace: TraceView, rank: int) -> int | None:
    """Return the training thread; if no event identifies it, the thread that runs the program's main code."""
    known = training_thread(trace, rank)
    return main_thread(trace, rank) if known == NO_THREAD else known
