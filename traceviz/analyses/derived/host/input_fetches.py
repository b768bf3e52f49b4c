"""Events in which the program takes its next batch: NVTX ranges by name, framework operations by category.

Host time in which the framework prepares device work is certainly not a wait for input::

    thread   |--aten::linear-----|  |--own code, or a loader--|  |--aten::relu--|
                  |launch|                                          |launch|
             |-----dispatch------|                               |---dispatch---|

An operation that launches something works for the device from its start to its end. So does a module of the model, or
an annotation named like a part of training. An operation that launches nothing computes on the host, and may belong to
a loader. Without a device nothing is launched, so only operations named like a part of training are excluded as input.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.calls.host_calls import annotated_calls
from traceviz.analyses.derived.frames import bounds, having, intervals, of_process, outermost, parts_by
from traceviz.analyses.derived.patterns import matches, matching
from traceviz.analyses.derived.steps.search import training_thread
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet

INPUT_NAME = (
    r"(?i)(^|[^a-z])(data[ _-]?(load|fetch|read|wait)|dataload"
    r"|(load|fetch|read|get|next)[ _-]?(the[ _-]?)?(next[ _-]?)?(data|batch|input|sample|example|image)"
    r"|input[ _-]?(pipeline|wait|data|batch)?($|[^a-z])|data($|[^a-z])"
    r"|prefetch|preprocess|augment|decode[ _-]?(image|jpeg|batch)|iteratorgetnext|iterator::)|dataloader"
)
"""Names of ranges or categories in which input is loaded."""

MODEL_PART = r"(sub_?module|param(eter)?|weight|layer|expert|block|adapter|lora|kv)s?"
"""Words for parts of a model: a range that fetches one of them takes no batch."""

FETCHED_PART = (
    rf"(^|[^a-z])(pre)?(fetch|load|stream)(ing)?[-_ ]([a-z0-9]+[-_ ]){{0,2}}{MODEL_PART}([^a-z]|$)"
    rf"|(^|[^a-z]){MODEL_PART}[-_ ]?\d*[-_ ](pre)?(fetch|load|stream)(ing)?([^a-z]|$)"
)
"""Names of ranges that bring parts of a model to the device: ``prefetch_layers_[2, 3]``, ``stream_expert_7``."""

NOT_INPUT_NAME = (
    r"(?i)data[ _-]?(parallel|dist|transfer|ptr|type)|input[ _-]?(dist|proj|embed|layer|norm)"
    rf"|{FETCHED_PART}"
    r"|(?-i:^WAIT_FOR_(OTHER_TENSOR_)?DATA$)"  # phases of Horovod: a tensor waits for its gradient
    r"|all[ _-]?(2|to)[ _-]?all|update|to[ _-]device|copy|backward|forward|optimizer|aten::|autograd"
)
"""Names that resemble input names but mean something else."""

ANNOTATION = (
    r"(?i)^[\W_]*(\[\w+\])*[\W_]*(data[ _-]?(load(ing|er)?|fetch(ing)?|read(ing)?|wait(ing)?)"
    r"|dataload(ing|er)([/.]\w+)?"
    r"|((load|fetch|read|get|next|take)[ _-]?(the[ _-]?)?|(?-i:[Ww]ait(ing)?)[ _-]for[ _-](the[ _-]?)?)"
    r"((next|train|training)[ _-]?)?(data|batch(es)?|(input|sample|example|image)s?)"
    r"|(train|training|val|eval)[ _-]?data[ _-]?loader[ _-]?next"
    r"|(input|batch)[ _-]?(pipeline|wait|data|loading|fetch)|input|prefetch|preprocess(ing)?|augment(ation)?)"
    r"[\W_]*\d*[\W_]*$"
)
"""Complete names of annotations in which a program loads its input; events of a runtime contain such words as well.

``WAIT_FOR_DATA`` is a phase of Horovod.

Decoration around a name is ignored: ``## data_load ##``, ``[pl][profile]train_dataloader_next``.
"""

FUNCTION = (
    r"(?i)(\.py\(\d+\): |^\$[^ ]+:\d+ )_*((load|fetch|read|get|next|take)_?(the_)?((next|train|training)_?)?"
    r"(data|batch(es)?|samples?|examples?|images?)|data_?load(ing|er)?)$"
)
"""Python functions that take a batch. Those of libraries (:data:`LIBRARY`) may serve the program or a loader."""

LIBRARY = (
    r"site-packages/|dist-packages/|/lib/python\d|^(torch|torchvision|transformers|jax|tensorflow|keras|numpy)/|^\$<"
)
"""Python functions that are not part of the program."""

HOOKS, RECORDED = "traceviz", "program"
"""NVTX domains: of the ranges that ``traceviz collect`` puts around parts of a step, and of ``traceviz.record``."""

SAME_SHARE = 0.5
"""Operations record the same waits as such ranges if they cover this share of the ranges that contain any."""


_ANNOTATIONS = ("annotation", "runtime")
"""Categories of the program's annotations: some traces put them with the runtime's events."""


def input_ranges(trace: TraceView, process_id: int, takes: pl.DataFrame) -> pl.DataFrame:
    """Return data-loading ranges on the training thread of a process, by name, category or the user's pattern.

    A wait that both NVTX and a framework's profiler recorded counts once. The framework's events are more specific, so
    they replace the range that a traceviz hook put around them. They also replace a range of ``traceviz.record``, which
    gives the framework the same name. The program's own ranges stay.

    Args:
        trace: The trace.
        process_id: The process.
        takes: The process's operations that take a batch (:func:`input_ops`).
    """
    thread = training_thread(trace, process_id)
    own = trace.ranges.filter((pl.col("process_id") == process_id) & (pl.col("thread_id") == thread))
    ranges = own.filter(is_input(trace.options.input_range))
    if trace.options.input_range is None:
        ranges = ranges.filter(~pl.col("name").is_in(list(parameter_fetches(trace))))
    if trace.options.input_range is not None or not takes.height:
        return ranges
    ours = having(ranges, "domain", HOOKS)
    recorded = having(ranges, "domain", RECORDED).partition_by("name")
    loops = [(ours, takes), *((part, having(takes, "name", part["name"][0])) for part in recorded)]
    again = pl.concat([part.filter(_is_covered(part, operations)) for part, operations in loops])
    return ranges.join(again, on="range_id", how="anti", maintain_order="left")


@once_per_trace
def parameter_fetches(trace: TraceView) -> frozenset[str]:
    """Return names of ranges that look like input and lie within a range that fetches parts of the model.

    ::

        prefetch_layer_3   |-------------------------------|
        prefetch_wq            |--|                            no input: a part of the layer
        prefetch_wk                  |--|
    """
    names = trace.ranges["name"].unique()
    parts = names.filter(matching(names, FETCHED_PART))
    if not parts.len():
        return frozenset()
    like_input = names.filter(matching(names, INPUT_NAME))
    columns = ("start_ns", "end_ns", "thread_id", "name")
    among = pl.col("depth").is_not_null() & pl.col("name").is_in([*parts, *like_input])
    tree = CallTree.of(trace.ranges.filter(among).select(columns).with_row_index("op_id"), ("name",))
    inside = tree.topmost(tree.calls["name"].is_in(parts.implode()).to_numpy()) >= 0
    return frozenset(tree.calls["name"].filter(pl.Series(inside)).unique().to_list())


def _is_covered(ranges: pl.DataFrame, operations: pl.DataFrame) -> pl.Series:
    """Return which ranges ``operations`` record as well: those that contain any, if most of their time is covered.

    All ranges of a loop are returned, or none. Otherwise a remainder would form a stage: in short waits, the hook takes
    most of the time.
    """
    starts, ends = bounds(ranges)
    covered = intervals(operations).overlap(starts, ends)
    holds = covered > 0
    return pl.Series(holds & (covered.sum() >= SAME_SHARE * (ends - starts)[holds].sum()), dtype=pl.Boolean)


def is_input(pattern: str | None) -> pl.Expr:
    """Return which rows of :attr:`TraceView.ranges` load input, by ``pattern`` if given, else by name or category."""
    if pattern is not None:
        return pl.col("name").str.contains(pattern)
    filed = matches(pl.col("category").fill_null(""), INPUT_NAME)
    named = matches(pl.col("name"), INPUT_NAME) & ~matches(pl.col("name"), NOT_INPUT_NAME)
    return named | filed


def input_ops(trace: TraceView, process_id: int) -> pl.DataFrame:
    """Return host operations in which a process waits for its next batch: rows of :meth:`TraceView.host_ops`.

    These are the operations in category ``input``, and annotations of the training thread with input names. If there
    are none, they are the thread's Python functions with such names. If the user gave a pattern, they are the thread's
    operations that match it. An operation that the framework runs on another thread counts only if it belongs to an
    event group of the training thread, or of a step. In a trace without groups, it counts if the training thread takes
    no batches itself. A pipeline that prefetches in the background makes no thread wait.
    """
    thread = training_thread(trace, process_id)
    own = pl.col("process_id") == process_id
    if trace.options.input_range is not None:
        return annotated_calls(trace, trace.options.input_range).filter(own & (pl.col("thread_id") == thread))
    filed = trace.host_ops("input").filter(own)
    away = filed.filter(pl.col("thread_id") != thread)
    if away.height:
        filed = filed.filter((pl.col("thread_id") == thread) | _is_of_program(trace, process_id))
    free = pl.col("category").is_in(_ANNOTATIONS)
    known = trace.host_names.filter(free & matches(pl.col("name"), ANNOTATION))
    calls = trace.host_ops(*_ANNOTATIONS) if known.height else trace.host_ops()
    calls = calls.with_columns(pl.col("name", "category").cast(pl.String))
    annotations = calls.filter(pl.col("name").is_in(known["name"].to_list()))
    named = annotations.filter(own & (pl.col("thread_id") == thread))
    takes = pl.concat([filed.with_columns(pl.col("name", "category").cast(pl.String)), named])
    return (takes if takes.height else _find_functions(trace, process_id, thread)).sort("start_ns", "op_id")


def _find_functions(trace: TraceView, process_id: int, thread: int) -> pl.DataFrame:
    """Return the outermost calls on a thread of Python functions that take a batch by name, if there are several.

    A single call loads data that the program needs before its steps.
    """
    named = matches(pl.col("name"), FUNCTION) & ~matches(pl.col("name"), LIBRARY)
    known = trace.host_names.filter((pl.col("category") == "python") & named)["name"].to_list()
    calls = trace.host_ops("python") if known else trace.host_ops()
    calls = calls.with_columns(pl.col("name", "category").cast(pl.String))
    of_thread = (pl.col("process_id") == process_id) & (pl.col("thread_id") == thread)
    calls = calls.filter(of_thread & pl.col("name").is_in(known))
    calls = outermost(calls.sort("start_ns", "end_ns", "op_id", descending=[False, True, False]))
    return calls if calls.height > 1 else calls.head(0)


def _is_of_program(trace: TraceView, process_id: int) -> pl.Expr:
    """Return whether a row belongs to a group of the training program.

    If the process has no groups, all rows do, unless the training thread takes batches itself.
    """
    thread = training_thread(trace, process_id)
    own = trace.tables.scan("host_ops").filter((pl.col("process_id") == process_id) & pl.col("group_id").is_not_null())
    if not own.select(pl.len()).collect(engine=trace.tables.engine).item():
        takes = having(trace.host_ops("input"), "thread_id", thread)
        return pl.lit(value=not takes.height)
    groups = (
        own.filter(pl.col("thread_id") == thread)
        .select("group_id")
        .unique()
        .collect(engine=trace.tables.engine)["group_id"]
        .to_list()
    )
    if "steps" in trace.tables:
        declared = having(trace.frame("steps", "process_id", "group_id"), "process_id", process_id)
        groups += declared["group_id"].drop_nulls().to_list()
    return pl.col("group_id").is_in(groups).fill_null(value=False)


TRAINING_NAME = (
    r"(?i)^nn\.Module: |forward|backward|optimizer|zero_grad|(^|[^a-z])(loss|nccl|gloo|all_?reduce)([^a-z]|$)"
)
"""Names of operations, Python frames and annotations that are parts of training."""

_CATEGORIES = ("op", "annotation", "python")


def dispatching(trace: TraceView, process_id: int) -> IntervalSet:
    """Return the time in which recorded operations of a process, on any thread, prepare the work that they launch.

    Without a device, this is the time in operations that are named like parts of training.
    """
    if not trace.has_device_tables:
        own = trace.host_ops(*_CATEGORIES).filter((pl.col("process_id") == process_id) & _is_named(trace, *_CATEGORIES))
        return intervals(own)
    calls = of_process(trace.api_calls("launch", "async_copy", "blocking_copy"), process_id)
    launches = {thread: part["start_ns"].sort().to_numpy() for thread, part in parts_by(calls, "thread_id").items()}
    is_training = (pl.col("category") == "op") | _is_named(trace, "annotation", "python")
    own = trace.host_ops(*_CATEGORIES).filter((pl.col("process_id") == process_id) & is_training)
    times = []
    for thread, part in parts_by(own, "thread_id").items():
        starts, ends = bounds(part)
        moments = launches.get(thread, np.array([], dtype=np.int64))
        busy = np.searchsorted(moments, ends) > np.searchsorted(moments, starts)
        times.append(IntervalSet.of(starts[busy], ends[busy]))
    return IntervalSet.empty().union(*times)


def _is_named(trace: TraceView, *categories: str) -> pl.Expr:
    """Return whether a host operation in one of these categories is named like a part of training."""
    named = matches(pl.col("name"), TRAINING_NAME) & ~matches(pl.col("name"), ANNOTATION)
    known = trace.host_names.filter(named & pl.col("category").is_in(categories))
    return pl.col("name").cast(pl.String).is_in(known["name"].to_list())
