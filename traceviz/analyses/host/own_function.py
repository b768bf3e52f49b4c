"""The function of the program that takes most of the steps without training: a plot, a metric, a monitor.

Its time divides into many kinds: Python, libraries, files, waits. No kind alone shows the possible gain. So the
function is reported as a whole, with all that it calls::

    main > train_step > backward        trains: no candidate, nor is what calls it
    main > log_plots                    the candidate, with all below it
             > savefig > draw               Python
             > savefig > write              input and output
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import having, intervals
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.run_parts.main_process import is_own
from traceviz.analyses.derived.stacks.functions import placed
from traceviz.analyses.derived.stacks.kinds import frame_text
from traceviz.analyses.derived.stacks.trees import StackTree, stack_tree
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.analyses.host.step_samples import StepSamples, step_samples
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.arrays.nested import Mask

HOLDS_LOOP = 0.98
"""A function with this part of the steps contains the loop itself, and is no candidate."""
FREE = 0.05
"""A function counts as not training if it trains in less than this part of its time."""
FOREIGN = 0.5
"""Least part of a reported function's time outside of framework computing, which may be the model's."""
FOREIGN_OF_STEPS = 0.2
"""From this share of the steps on, that time suffices, in any part."""
_LEARNS = (
    r"^torch/(autograd/|optim/)|^torch/_tensor\.py backward$|^ (\w+\.)*(run_backward|backward)$"
    r"|^(lightning|pytorch_lightning|accelerate|deepspeed|fastai)/|^transformers/trainer\.py "
    r"|^keras/src/(trainers|optimizers)/|^tensorflow/python/(eager|training)/|^jax/_src/(pjit|api|interpreters/)|^optax/"
    r"|^(xgboost|lightgbm|catboost)/.* (train|update|boost|fit|__boost\w*|_train)$|^ (\w+\.)*_LIB\."
    r"|^sklearn/.* (fit|partial_fit|fit_transform|_?fit_\w+)$"
)
"""Frames in which a model learns: backward passes, optimizers, whole steps, rounds of boosting."""
_TRAINS = (
    rf"{_LEARNS}|^torch/(nn/modules/module\.py |nn/parallel/|amp/|_functorch/|_dynamo/)"
    r"|^keras/src/(layers|models|backend)/|^(flax|haiku|equinox)/|^(xgboost|lightgbm|catboost)/.* predict$"
)
"""Frames of training: these, and forward passes."""
_MODEL = (
    r"^torch/(autograd/|optim/|nn/)|^torch/_tensor\.py backward$|^ (\w+\.)*(run_backward|backward)$"
    r"|^keras/src/(layers|models|optimizers|backend)/|^(flax|haiku|equinox|optax)/|^jax/_src/"
)
"""Frames of a model. Functions of the program that these call are parts of the model."""
_FRAMEWORK = (
    r"^(torch|torchvision|torchaudio|tensorflow|keras|jax|jaxlib|flax|optax|haiku|equinox|transformers"
    r"|xgboost|lightgbm|catboost)/"
)
"""Packages that train."""
UNSEEN_PYTHON = 0.15
"""If samples see this much more of the steps compute than operators were recorded in, their shares are not used."""
_COMPUTES = ("compute", "device_wait")
_OF_OTHER_FINDINGS = ("input", "import", "compilation", "collective")
"""Kinds that other findings cover."""


ONE_KIND = 0.8
"""A function is of one kind if that has this part of its time."""


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A function of the program in its steps, with all that it calls.

    Args:
        location: Its line with most of the time: ``train.py:41 log_plots``.
        time_ns: Its time in the steps.
        share: That as a share of the steps.
        samples: Samples that it rests on.
        by_group: Its time by subject of findings (``io, lock, python, compute, ...``), the largest first.
        inner: A line of the innermost function of the program that has nearly all of its time; may be empty.
    """

    location: str
    time_ns: int
    share: float
    samples: float | None
    by_group: dict[str, int]
    inner: str = ""

    @property
    def words(self) -> str:
        """Its name for readers: ``log_plots (train.py:41)``."""
        return placed(self.location)

    @property
    def kind(self) -> str:
        """The subject of findings with most of its time."""
        return next(iter(self.by_group))

    def is_at(self, location: str, *, inner: bool = False) -> bool:
        """Return whether a line lies in this function, or in the inner one."""
        return _without_line(location) == _without_line(self.inner if inner else self.location)

    def is_mostly(self, group: str) -> bool:
        """Return whether nearly all of its time is of one kind."""
        return self.by_group.get(group, 0) >= ONE_KIND * self.time_ns

    def has_most_of(self, group: str, time_ns: int) -> bool:
        """Return whether at least half of ``time_ns``, the time of a group in the steps, is in this function."""
        return 2 * self.by_group.get(group, 0) >= time_ns


def _without_line(location: str) -> str:
    return re.sub(r":\d+ ", " ", location)


@once_per_trace
def working_function(trace: TraceView) -> OwnFunction | None:
    """Return the largest function in which no model learns, for sentences about programs that compute.

    ``None`` if samples see more computing than operators were recorded. The sampler waits for the interpreter, so it
    sees short functions of pure Python less often than the operators after them.
    """
    steps = step_samples(trace)
    if steps is None or not steps.is_enough:
        return None
    computes = steps.of_main.filter(pl.col("group").is_in(list(_COMPUTES)))["time_ns"].sum()
    recorded = steady_time(trace).get(steps.process_id, IntervalSet.empty())
    operators = intervals(having(trace.host_ops("op", "runtime"), "process_id", steps.process_id))
    in_operators = operators.intersect(recorded).total / recorded.total if recorded.total and len(operators) else 1.0
    if computes > (in_operators + UNSEEN_PYTHON) * steps.step_ns:
        return None
    return calling_function(trace, steps)


def calling_function(trace: TraceView, steps: StepSamples) -> OwnFunction | None:
    """Return the largest function in which no model learns, and that no model calls; it may compute for the model."""
    return _largest(trace, steps, 0.0, least_foreign=0.0, excluded=_LEARNS, callers=_MODEL)


def own_function(trace: TraceView, steps: StepSamples, least_share: float) -> OwnFunction | None:
    """Return the largest function that does not train, with ``least_share`` of the steps; ``None`` if there is none."""
    return _largest(trace, steps, least_share, least_foreign=FOREIGN, excluded=_TRAINS, callers="^$")


def _largest(
    trace: TraceView, steps: StepSamples, least_share: float, *, least_foreign: float, excluded: str, callers: str
) -> OwnFunction | None:
    tree = stack_tree(trace)
    rows = steps.of_main.filter(pl.col("stack_id").is_not_null())
    if not rows.height or not tree.frames.height:
        return None
    ids = tree.frames["stack_id"].to_numpy()
    place = np.minimum(np.searchsorted(ids, rows["stack_id"].to_numpy()), ids.size - 1)
    time = rows["time_ns"].to_numpy()
    candidate = _candidates(tree, place, time, excluded=excluded, callers=callers)
    inside = (
        rows.drop("function", "location")
        .with_columns(
            pl.Series("candidate", candidate[place]),
            pl.Series("foreign", ~(rows["group"].is_in(list(_COMPUTES)).to_numpy() & _of_framework(tree)[place])),
            (pl.col("samples") * pl.col("part")).alias("sampled"),
        )
        .filter(pl.col("candidate") >= 0)
    )
    if not inside.height:
        return None
    names = tree.frames.with_row_index("candidate").select(
        pl.col("candidate").cast(pl.Int64), "file", "function", "line"
    )
    named = inside.with_columns(pl.col("group").cast(pl.String)).join(names, on="candidate", how="left")
    sums = named.group_by("file", "function").agg(
        pl.col("time_ns").sum(), pl.col("time_ns").filter("foreign").sum().alias("foreign_ns")
    )
    large = sums.filter(
        (pl.col("time_ns") >= least_share * steps.step_ns)
        & (
            pl.col("foreign_ns")
            >= pl.min_horizontal(least_foreign * pl.col("time_ns"), FOREIGN_OF_STEPS * steps.step_ns)
        )
    ).sort("time_ns", "file", "function", descending=[True, False, False])
    for file, function in large[["file", "function"]].iter_rows():
        found = _own_function_of(named, file, function, steps)
        if 2 * sum(found.by_group.get(group, 0) for group in _OF_OTHER_FINDINGS) < found.time_ns:
            of_it = _is_function(tree, candidate[place], file, function)
            return replace(found, inner=_inner(tree, place[of_it], time[of_it], found.location))
    return None


def _is_function(tree: StackTree, rows: Array, file: str, function: str) -> Mask:
    """Return whether each of these rows of the tree, -1 for none, is of this function."""
    is_it = (pl.col("file").eq_missing(file) & pl.col("function").eq_missing(function)).fill_null(value=False)
    return np.asarray((rows >= 0) & tree.frames.select(is_it).to_series().to_numpy()[np.maximum(rows, 0)], dtype=bool)


def _candidates(tree: StackTree, place: Array, time: Array, *, excluded: str, callers: str) -> Array:
    """Return, per stack, the row of the outermost program function around it without ``excluded`` frames, or -1."""
    own = np.zeros(tree.parent.size, np.int64)
    np.add.at(own, place, time)
    total = tree.totals(own)
    text = tree.frames.select(frame_text(pl.col("file"), pl.col("function"))).to_series()
    nearest = tree.around(text.str.contains(excluded).fill_null(value=False).to_numpy())
    below = np.zeros(tree.parent.size, np.int64)
    np.add.at(below, nearest[nearest >= 0], own[nearest >= 0])
    trains = tree.totals(below) >= FREE * np.maximum(total, 1)
    holds_loop = _of_functions(tree, total) >= HOLDS_LOOP * max(int(time.sum()), 1)
    # Code that libraries make and run has no file
    is_made = tree.frames.select((pl.col("function") == "<module>") | pl.col("file").str.starts_with("<"))
    is_called = tree.around(text.str.contains(callers).fill_null(value=False).to_numpy()) >= 0
    is_nameless = is_made.to_series().fill_null(value=True).to_numpy()
    return tree.outermost(is_own(tree) & ~trains & ~holds_loop & ~is_nameless & ~is_called)


def _of_functions(tree: StackTree, total: Array) -> Array:
    """Return the inclusive time of the function of each row: several lines of its callers may lead to it."""
    key = tree.frames.select(pl.struct("file", "function").rank("dense")).to_series().fill_null(0).to_numpy()
    whole = np.zeros(int(key.max(initial=0)) + 1, np.int64)
    np.add.at(whole, key, np.where(tree.repeats(key), 0, total))
    of_rows: Array = whole[key]
    return of_rows


def _inner(tree: StackTree, place: Array, time: Array, outer: str) -> str:
    """Return the innermost function of the program with nearly all of ``time``; empty if that is ``outer``."""
    own = np.zeros(tree.parent.size, np.int64)
    np.add.at(own, place, time)
    whole = _of_functions(tree, tree.totals(own))
    names = tree.frames["function"].str.starts_with("<").fill_null(value=True).to_numpy()
    rows = np.flatnonzero((whole >= ONE_KIND * time.sum()) & is_own(tree) & ~names & (tree.totals(own) > 0))
    if not rows.size:
        return ""
    row = rows[np.lexsort((-tree.totals(own)[rows], -rows, whole[rows]))[0]]
    file, function, line = tree.frames.select("file", "function", "line").row(int(row))
    found = f"{file}:{line} {function}" if line is not None else f"{file} {function}"
    return "" if _without_line(found) == _without_line(outer) else found


def _of_framework(tree: StackTree) -> Mask:
    """Return stacks whose innermost library trains, or that have none, since operators have no frame of their own."""
    frames = tree.frames
    library = (frames["origin"] == "library").fill_null(value=False).to_numpy()
    nearest = tree.around(library | is_own(tree))
    trains = frames["file"].str.contains(_FRAMEWORK).fill_null(value=False).to_numpy()
    called = frames["function"].str.contains(r"^(np|numpy|scipy|cv2|pd)\.").fill_null(value=False).to_numpy()
    return np.asarray(~called & ((nearest < 0) | ~library[nearest] | trains[nearest]), dtype=bool)


def _own_function_of(named: pl.DataFrame, file: str, function: str, steps: StepSamples) -> OwnFunction:
    own = named.filter((pl.col("file") == file) & (pl.col("function") == function))
    groups = own.group_by("group").agg(pl.col("time_ns").sum()).sort("time_ns", "group", descending=[True, False])
    lines = own.group_by("line").agg(pl.col("time_ns").sum()).sort("time_ns", "line", descending=[True, False])
    line = lines["line"][0]
    where = file if line is None else f"{file}:{line}"
    time = int(own["time_ns"].sum())
    samples = None if steps.samples is None else float(own["sampled"].sum())
    return OwnFunction(f"{where} {function}", time, time / steps.step_ns, samples, dict(groups.iter_rows()))
