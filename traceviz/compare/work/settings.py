"""Changed settings of two sides, as far as their reports show them: precision, memory, workers, graphs, compilers.

They explain a difference of the steps. They are read from what ran, not from descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from traceviz.compare.sides.by_tags import natural
from traceviz.compare.sides.sides import Side, rows, tags, whole
from traceviz.compare.sides.units_of_work import REPEATS, is_batch
from traceviz.compare.work.amounts import batch
from traceviz.compare.work.ingredients import Ingredients, ingredients
from traceviz.compare.work.kinds import Kind
from traceviz.compare.work.parameters import parameters
from traceviz.core.units import Value, format_number, format_ratio
from traceviz.report import SETTING, Grid, Report

MUCH = 0.2
"""Smallest difference of shares that counts as a change."""
LITTLE = 0.01
"""A smaller share is omitted from the text, and does not count as use of a feature."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Changed:
    """A changed setting.

    Args:
        key: Stable name: ``precision``, ``memory``, ``workers``, ``graphs``, ``compiled``, ``attention``, ``prefetch``,
            ``parallelism``, ``batch``, ``tag.NAME``, ``setting.NAME``, ``arguments``.
        label: Display name.
        base: Value on the base.
        new: Value on the new side.
        brief: Short text of the change, shown next to the verdict; empty if the names of the sides show it already.
    """

    key: str
    label: str
    base: str
    new: str
    brief: str = ""


def settings_changed(base: Side, new: Side) -> tuple[Changed, ...]:
    """Return the changed settings, in the order of the checks."""
    return tuple(changed for check in _CHECKS for changed in check(base, new))


# Precision, memory


def _compare_precision(base: Side, new: Side) -> Iterator[Changed]:
    """Compare the precision of matrix products and convolutions, by the names of kernels."""
    before, after = (_shares(side, _of_matrices) for side in (base, new))
    main = _find_largest(before), _find_largest(after)
    if all(main) and main[0] != main[1]:
        brief = f"matrix products in {main[1]} rather than {main[0]}"
        yield Changed("precision", "precision of matrix products", _in_words(before), _in_words(after), brief)
    elif all(main) and _differ(before, after):
        brief = f"more matrix products in {_find_largest_gain(before, after)}"
        yield Changed("precision", "precision of matrix products", _in_words(before), _in_words(after), brief)


def _of_matrices(report: Report) -> Iterator[tuple[str, int]]:
    table = _with_columns(report.grids("precision"), "precision", "total_ns")
    return ((str(row["precision"]), whole(row["total_ns"])) for row in rows(table))


def _compare_memory(base: Side, new: Side) -> Iterator[Changed]:
    """Compare the host memory that copies to the device come from."""
    before, after = (_shares(side, _of_copies) for side in (base, new))
    main = _find_largest(before), _find_largest(after)
    if all(main) and _differ(before, after):
        rather = f"copies to the device from {main[1]} rather than {main[0]} memory"
        brief = (
            rather
            if main[0] != main[1]
            else f"more copies to the device from {_find_largest_gain(before, after)} memory"
        )
        yield Changed("memory", "memory of copies to the device", _in_words(before), _in_words(after), brief)


def _of_copies(report: Report) -> Iterator[tuple[str, int]]:
    table = _with_columns(report.grids("copies"), "kind", "src_memory", "bytes")
    for row in rows(table):
        if row["kind"] == "h2d" and row["src_memory"]:
            yield str(row["src_memory"]), whole(row["bytes"])


def _shares(side: Side, read: Callable[[Report], Iterator[tuple[str, int]]]) -> Mapping[str, float]:
    """Return the share of each name in a sum over all runs; empty if the sum is zero."""
    sums: dict[str, int] = {}
    for report in side.reports:
        for name, amount in read(report):
            sums[name] = sums.get(name, 0) + amount
    total = sum(sums.values())
    return {name: amount / total for name, amount in sums.items()} if total else {}


def _find_largest(shares: Mapping[str, float]) -> str:
    """Return the known name with the largest share; empty if there is none."""
    known = {name: share for name, share in shares.items() if name != UNKNOWN}
    return max(known, key=lambda name: (known[name], name)) if known else ""


def _differ(before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    names = (before.keys() | after.keys()) - {UNKNOWN}
    changes = (abs(after.get(name, 0.0) - before.get(name, 0.0)) for name in names)
    return bool(before) and bool(after) and max(changes, default=0.0) >= MUCH


def _find_largest_gain(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Return the name whose share grew most."""
    return max(sorted(after), key=lambda name: after[name] - before.get(name, 0.0))


def _in_words(shares: Mapping[str, float]) -> str:
    """Format ``f16 92.0 %, f32 8.0 %``."""
    largest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {format_ratio(share)}" for name, share in largest if share >= LITTLE)


# The input


_OWN_PROCESS = re.compile(r"single-process|_SingleProcess|num_workers=0")
_WORKERS = re.compile(r"multi-process|_MultiProcess")
_NAMES_OF_LOADERS = ("stage", "inside", "path")
"""Columns that name the actual data loader. Columns with advice name possible ones."""


def _compare_workers(base: Side, new: Side) -> Iterator[Changed]:
    """Compare whether worker processes load the data."""
    before, after = _find_loaders(base), _find_loaders(new)
    if before and after and before != after:
        yield Changed("workers", "data loaded by", before, after, f"data loaded by {after} rather than {before}")


def _find_loaders(side: Side) -> str:
    """Return the processes that load the data, if all runs agree; else empty."""
    found = {_loader(report) for report in side.reports}
    return found.pop() if len(found) == 1 else ""


def _loader(report: Report) -> str:
    found = (row for table in report.grids("input_pipeline") for row in rows(table))
    texts = [str(row[column]) for row in found for column in _NAMES_OF_LOADERS if row.get(column)]
    for pattern, words in ((_OWN_PROCESS, "the training process"), (_WORKERS, "worker processes")):
        if any(pattern.search(text) for text in texts):
            return words
    return ""


def _compare_prefetch(base: Side, new: Side) -> Iterator[Changed]:
    """Compare whether the pipeline of tf.data ends in a prefetch."""
    label = "prefetch at the end of the pipeline"
    yield from _compare_switch("prefetch", label, (_prefetches(side) for side in (base, new)))


def _prefetches(side: Side) -> bool | None:
    known = set(side.facts("input_pipeline", "prefetches"))
    return bool(known.pop()) if len(known) == 1 else None


def _compare_parallelism(base: Side, new: Side) -> Iterator[Changed]:
    """Compare the parallel calls in stages of tf.data."""
    before, after = (_parallel_stages(side) for side in (base, new))
    for stage in before.keys() & after.keys():
        if before[stage] != after[stage]:
            brief = f"{stage} {after[stage]}"
            yield Changed("parallelism", f"parallelism of {stage}", before[stage], after[stage], brief)


def _parallel_stages(side: Side) -> Mapping[str, str]:
    """Return the parallelism as text by stage, for stages that occur once in the first run."""
    tables = (_with_columns(report.grids("input_pipeline"), "stage", "parallelism") for report in side.reports)
    table = rows(next((found for found in tables if found), None))
    names = [str(row["stage"]) for row in table]
    return {str(row["stage"]): _parallel(row["parallelism"]) for row in table if names.count(str(row["stage"])) == 1}


def _parallel(value: Value) -> str:
    number = whole(value)
    return f"in parallel, {number} at a time" if number > 1 else "one at a time"


# The program


_GRAPH_LAUNCH = re.compile(r"^(?:cu|cuda|hip)GraphLaunch")
_COMPILED = re.compile(
    r"^(?:triton_|Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction|_?Xla(?:Run|Launch))"
)


def _compare_graphs(base: Side, new: Side) -> Iterator[Changed]:
    """Compare whether graphs launch the work of steps."""
    label = "graphs of device work"
    yield from _compare_switch("graphs", label, (_launches_graphs(side) for side in (base, new)))


def _launches_graphs(side: Side) -> bool | None:
    calls = side.events("cuda_api")
    return any(_GRAPH_LAUNCH.match(name) for name, event in calls.items() if event.calls) if calls else None


def _compare_compilers(base: Side, new: Side) -> Iterator[Changed]:
    """Compare whether a compiler made kernels or operators."""
    label = "compiled kernels (torch.compile, XLA)"
    yield from _compare_switch("compiled", label, (_compiles(side) for side in (base, new)))


def _compiles(side: Side) -> bool | None:
    kernels = side.kernels
    known = ingredients(side)
    names = [name for source in ("operators", "ops") if source in known for name in known[source].names]
    if not kernels and not names:
        return None
    return any(_COMPILED.match(name) for name in (*kernels, *names))


def _compare_attention(base: Side, new: Side) -> Iterator[Changed]:
    """Compare whether one kernel does attention, by the first source that both sides have."""
    before, after = ingredients(base), ingredients(new)
    for source in ("operators", "kernels"):
        if source in before and source in after:
            states = [_is_attention_fused(known[source]) for known in (before, after)]
            yield from _compare_switch("attention", "attention in one operator (flash, memory-efficient)", states)
            return


def _is_attention_fused(made_of: Ingredients) -> bool | None:
    """Return whether one operator does attention; ``None`` if no attention is seen, or any work may be attention."""
    if made_of.share(Kind.ATTENTION) >= LITTLE:
        return True
    if made_of.unknown >= LITTLE:
        return None
    return False if any("softmax" in name.lower() and "log" not in name.lower() for name in made_of.names) else None


def _compare_switch(key: str, label: str, states: Iterable[bool | None]) -> Iterator[Changed]:
    """Yield a setting that switched between off and on; nothing if a side does not show it."""
    before, after = states
    if before is None or after is None or before == after:
        return
    words = ("off", "on")
    yield Changed(key, label, words[before], words[after], f"{label} {words[after]}")


# User tags and amounts of work


def _compare_run_settings(base: Side, new: Side) -> Iterator[Changed]:
    """Compare numbers of threads, environment variables and arguments, as the folders of runs state them."""
    before, after = _settings(base), _settings(new)
    changed = [key for key in before | after if before and after and before.get(key) != after.get(key)]
    threads = [key for key in changed if key in _THREADS]
    for key in changed:
        was, now = before.get(key, "unset"), after.get(key, "unset")
        label = _THREADS.get(key, key)
        # A framework states the number of threads that the environment asked for: it is named once.
        is_again = key not in _THREADS and any((before.get(one), after.get(one)) == (was, now) for one in threads)
        yield Changed(f"setting.{key}", label, was, now, "" if is_again else f"{label} {now} rather than {was}")
    yield from _compare_arguments(base, new)


_THREADS = {"threads.intra_op": "threads of an operator", "threads.inter_op": "operators at once"}


def _settings(side: Side) -> dict[str, str]:
    """Return the settings on which all runs of a side agree; nothing if a run states none."""
    of_runs = [
        {one.key.removeprefix(SETTING): str(one.value) for one in report.facts("run") if one.key.startswith(SETTING)}
        for report in side.reports
    ]
    if not all(of_runs):
        return {}
    first, *others = of_runs
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _compare_arguments(base: Side, new: Side) -> Iterator[Changed]:
    """Compare the arguments of one program. Another script is another program."""
    commands = [set(side.facts("run", "command")) for side in (base, new)]
    if any(len(command) != 1 for command in commands):
        return
    before, after = (str(command.pop()).split() for command in commands)
    if [word for word in before if word.endswith(".py")] != [word for word in after if word.endswith(".py")]:
        return
    was, now = (
        " ".join(word for word in mine if word not in other) for mine, other in ((before, after), (after, before))
    )
    if was != now and max(len(was), len(now)) <= _LONGEST_ARGUMENTS:
        brief = f"arguments {now or 'none'} rather than {was or 'none'}"
        yield Changed("arguments", "arguments", was or "none", now or "none", brief)


_LONGEST_ARGUMENTS = 60
"""Characters of changed arguments that are named."""


def _compare_batches(base: Side, new: Side) -> Iterator[Changed]:
    """Compare batches as hooks recorded them, else by the shapes of inputs; skip if a tag states the batch."""
    if any(is_batch(tag) for tag in (*base.tags, *new.tags)):
        return
    seen = batch(base), batch(new)
    if seen[0] is not None and seen[1] is not None:
        if seen[0] != seen[1]:
            was, now = (", ".join(sizes.values) for sizes in seen if sizes is not None)
            yield Changed("batch", "batch", was, now, f"batch {now} rather than {was}")
        return
    before, after = parameters(base), parameters(new)
    common = before.batches.keys() & after.batches.keys() if before and after else set()
    if not before or not after or not common:
        return
    layer = max(sorted(common), key=lambda layer: before.uses[layer])
    was, now = (format_number(round(side.batches[layer], 1)) for side in (before, after))
    if was != now:
        yield Changed("batch", "batch, by the shapes of inputs", was, now, f"batch {now} rather than {was}")


def _compare_tags(base: Side, new: Side) -> Iterator[Changed]:
    """Compare the values of tags that both sides have."""
    for tag in (tag for tag in dict.fromkeys((*_every_tag(base), *_every_tag(new))) if tag.lower() not in REPEATS):
        before, after = _values(base, tag), _values(new, tag)
        if before and after and before != after:
            yield Changed(f"tag.{tag}", tag, ", ".join(before), ", ".join(after))


def _every_tag(side: Side) -> Iterable[str]:
    return dict.fromkeys(tag for report in side.reports for tag in tags(report))


def _values(side: Side, tag: str) -> list[str]:
    values = {known[tag] for report in side.reports if tag in (known := tags(report))}
    return sorted(values, key=natural)


def _with_columns(grids: Iterable[Grid], *names: str) -> Grid | None:
    """Return the first grid that has these columns."""
    return next((grid for grid in grids if {column.name for column in grid.columns} >= {*names}), None)


_CHECKS: tuple[Callable[[Side, Side], Iterator[Changed]], ...] = (
    _compare_run_settings,
    *(_compare_precision, _compare_memory, _compare_workers, _compare_graphs, _compare_compilers, _compare_attention),
    *(_compare_prefetch, _compare_parallelism, _compare_batches, _compare_tags),
)
