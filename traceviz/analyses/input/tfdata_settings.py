"""Settings of a tf.data pipeline that its own trace states: parallelism, buffers, autotuning, memory.

The runtime writes these figures with every call of an iterator, for example an empty buffer, or a map that uses two of
eight cores. No profile page shows them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.base import known
from traceviz.analyses.derived.frames import codes, having, taken
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.analyses.input.recorded_stages import forest_of, op_args
from traceviz.analyses.input.tfdata import fused_from, stage_path
from traceviz.analyses.input.tfdata_tree import ITERATES
from traceviz.core.arrays.nested import alike
from traceviz.core.units import counted, format_ratio, format_value
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, hide_columns

SETTING_KEYS = (
    *("parallelism", "autotune", "buffer_limit", "buffered_elements", "batch_size", "name"),
    *("cpu_budget", "ram_budget_megabytes", "ram_usage_megabytes"),
)
"""The properties of iterators read here."""

PARALLEL_KINDS = frozenset({"ParallelMap", "MapAndBatch", "ParallelInterleave", "ParallelBatch", "ParseExample"})
"""Stages that may use several cores."""

ONE_BY_ONE = frozenset({"Map", "Interleave", "FlatMap"})
"""Stages that call a function of the program for one element after another."""

WRAPPERS = frozenset(
    {
        *("MaxIntraOpParallelism", "PrivateThreadPool", "AssertCardinality", "Options", "AssertNext"),
        *("Take", "Skip", "Repeat"),
    }
)
"""Stages that only pass elements on."""

UNKNOWN = "unavailable"
"""Text of an iterator for a figure that it cannot read without waiting for its own lock."""

_USED_OF = r"^\s*(\d+) out of (\d+)"


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Settings of one stage; ``None`` means not recorded.

    Args:
        path: Kinds from the consumer to the stage.
        calls: Calls in steady steps.
        parallelism: Elements that it works on at once, as of the last call.
        autotune: True if the runtime may change that.
        buffer_limit: Elements that its buffer may hold, as of the last call.
        empty_share: Share of the calls in steady steps that found the buffer empty.
        batch_size: Elements per batch.
        fused: Kinds of the stages that were fused into it.
    """

    path: tuple[str, ...]
    calls: int
    parallelism: int | None = None
    autotune: bool | None = None
    buffer_limit: int | None = None
    empty_share: float | None = None
    batch_size: int | None = None
    fused: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Kind of the stage."""
        return self.path[-1]

    @property
    def is_last_prefetch(self) -> bool:
        """True if it prefetches at the end of the pipeline, next to the program."""
        return self.kind == "Prefetch" and WRAPPERS.issuperset(self.path[:-1])


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """Settings of the pipelines of a program.

    Args:
        stages: In the order from the consumer to the sources.
        cpu_budget: Cores that the runtime tunes for.
        memory_budget: Bytes that buffers may take.
        memory_used: The largest share of that in use.
    """

    stages: tuple[StageSettings, ...] = ()
    cpu_budget: int | None = None
    memory_budget: int | None = None
    memory_used: float | None = None

    @property
    def prefetches(self) -> bool:
        """True if a stage prefetches at the end of the pipeline, next to the program."""
        return any(stage.is_last_prefetch for stage in self.in_use)

    @property
    def maps_in_parallel(self) -> bool:
        """True if every stage that may work in parallel does so, on as many elements as there are cores."""
        parallel = [stage for stage in self.in_use if stage.kind in PARALLEL_KINDS]
        one_by_one = any(stage.kind in ONE_BY_ONE for stage in self.in_use)
        return bool(parallel) and not one_by_one and not any(self.leaves_cores(stage) for stage in parallel)

    def leaves_cores(self, stage: StageSettings) -> bool:
        """Return whether a stage works on fewer elements at once than there are cores, without autotuning."""
        few = stage.parallelism is not None and stage.parallelism < (self.cpu_budget or 0)
        return stage.kind in PARALLEL_KINDS and few and not stage.autotune

    def at(self, path: str) -> StageSettings | None:
        """Return the stage at ``path`` (from the stage on), if it is known."""
        return next((stage for stage in self.stages if " > ".join(reversed(stage.path)) == path), None)

    @property
    def in_use(self) -> tuple[StageSettings, ...]:
        """Stages called in steady steps, without those of a validation between epochs; all if none was called."""
        return tuple(stage for stage in self.stages if stage.calls) or self.stages


@once_per_trace
def pipeline_settings(trace: TraceView) -> PipelineSettings:
    """Return settings of all processes with steps; the most restrictive if processes, or stages of a path, differ."""
    pipelines = [settings for rank in steady_time(trace) if (settings := _settings_of(trace, rank)).stages]
    if not pipelines:
        return PipelineSettings()
    by_path: dict[tuple[str, ...], list[StageSettings]] = {}
    for stage in (stage for settings in pipelines for stage in settings.stages):
        by_path.setdefault(stage.path, []).append(stage)
    # Stages of several processes, or of several places in a pipeline (``Zip[0]``, ``Zip[1]``), become one.
    stages = [
        replace(
            parts[0],
            calls=sum(part.calls for part in parts),
            parallelism=min((p.parallelism for p in parts if p.parallelism is not None), default=None),
            autotune=min((p.autotune for p in parts if p.autotune is not None), default=None),
            buffer_limit=min((p.buffer_limit for p in parts if p.buffer_limit is not None), default=None),
            empty_share=max((p.empty_share for p in parts if p.empty_share is not None), default=None),
        )
        for _, parts in sorted(by_path.items(), key=lambda item: (len(item[0]), item[0]))
    ]
    return PipelineSettings(
        tuple(stages),
        min((p.cpu_budget for p in pipelines if p.cpu_budget), default=None),
        min((p.memory_budget for p in pipelines if p.memory_budget), default=None),
        max((p.memory_used for p in pipelines if p.memory_used is not None), default=None),
    )


def _settings_of(trace: TraceView, rank: int) -> PipelineSettings:
    iterators = having(forest_of(trace, rank).operations, "role", ITERATES)
    steady = steady_time(trace)[rank].contains(iterators["start_ns"].to_numpy())
    calls = iterators.select("op_id", "name", "start_ns").with_columns(pl.Series("steady", steady))
    calls = calls.sort("start_ns", "op_id").with_row_index("place")
    args = op_args(trace, calls, SETTING_KEYS)
    args = args.filter((pl.col("text") != UNKNOWN).fill_null(value=True))
    if not calls.height:
        return PipelineSettings()
    # The last value of each property of each stage
    order = np.argsort(args["place"].to_numpy(), kind="stable")
    group, first = alike(codes(args["name"]), codes(args["key"]))
    rows = np.empty(first.size, np.int64)
    rows[group[order]] = order  # of equal groups, the last write stays
    last = taken(args, rows).select("name", "key", "integer", "text")
    values = {(name, key): (integer, text) for name, key, integer, text in last.iter_rows()}  # once per stage and key
    judged = calls.group_by("name").agg(pl.col("steady").sum())
    buffered = args.filter((pl.col("key") == "buffered_elements") & pl.col("steady") & pl.col("integer").is_not_null())
    empty_shares = dict(buffered.group_by("name").agg((pl.col("integer") == 0).mean().alias("share")).iter_rows())
    stages = tuple(
        _stage(stage_path(name), name, count, values, empty_shares.get(name))
        for name, count in judged.sort("name").iter_rows()
        if stage_path(name)
    )
    text = having(args, "key", "ram_usage_megabytes")["text"].drop_nulls().cast(pl.String)
    parts = text.str.extract_groups(_USED_OF).struct.unnest() if text.len() else pl.DataFrame()
    numbers = parts.cast(pl.Float64, strict=False).drop_nulls() if parts.width else parts
    shares = numbers["1"] / numbers["2"] if numbers.height else pl.Series([], dtype=pl.Float64)
    highest = shares.filter(shares.is_finite()).max()
    used = float(highest) if isinstance(highest, float) else None
    budget = _largest(args, "ram_budget_megabytes")
    return PipelineSettings(stages, _largest(args, "cpu_budget"), budget and budget * 10**6, used)


def _stage(
    path: tuple[str, ...],
    name: str,
    calls: int,
    values: dict[tuple[str, str], tuple[int | None, str | None]],
    empty_share: float | None,
) -> StageSettings:
    nothing = (None, None)
    autotune = values.get((name, "autotune"), nothing)
    return StageSettings(
        path,
        calls,
        parallelism=values.get((name, "parallelism"), nothing)[0],
        autotune=None if autotune == nothing else autotune[0] == 1 or autotune[1] == "true",
        buffer_limit=values.get((name, "buffer_limit"), nothing)[0],
        empty_share=empty_share,
        batch_size=values.get((name, "batch_size"), nothing)[0],
        fused=fused_from(values.get((name, "name"), nothing)[1] or ""),
    )


def _largest(args: pl.DataFrame, key: str) -> int | None:
    value = having(args, "key", key)["integer"].max()
    return int(value) if isinstance(value, int) and value > 0 else None


def describe_settings(settings: PipelineSettings) -> list[Block]:
    """Describe the settings as facts and a table; empty if the trace has none."""
    if not settings.stages:
        return []
    shown = [s for s in settings.stages if (s.parallelism, s.buffer_limit, s.empty_share) != (None, None, None)]
    facts = (
        Fact("cpu_budget", "cores the pipeline may use", settings.cpu_budget, "count"),
        Fact("memory_budget", "memory for its buffers", settings.memory_budget, "bytes"),
        Fact("memory_used", "of which used", settings.memory_used, "ratio"),
        Fact("prefetches", "prefetch at its end", settings.prefetches, "bool"),
    )
    columns = (
        Column("stage", "Stage", "text", 0),
        Column("parallelism", "At once", "count", 0),
        Column("autotune", "Autotuned", "bool", 2),
        Column("buffer_limit", "Buffer", "count", 1),
        Column("empty_share", "Found empty", "ratio", 0, bar=True, additive=False),
        Column("batch_size", "Batch", "count", 3),
        Column("fused", "Fused from", "text", 4),
        Column("path", "Path in the pipeline", "text", 9),
    )
    rows = tuple(
        (
            *(s.kind, s.parallelism, s.autotune, s.buffer_limit, s.empty_share, s.batch_size),
            *(" and ".join(s.fused) or None, " > ".join(reversed(s.path))),
        )
        for s in shown
    )
    empty = {column.name for index, column in enumerate(columns) if all(row[index] is None for row in rows)}
    title = "Pipeline settings, from the consumer to the sources"
    grid = [Grid(hide_columns(columns, empty), rows, title)] if rows else []
    end = "ends in a prefetch" if settings.prefetches else "does not end in a prefetch"
    cores = f"may use {counted(settings.cpu_budget, 'core')}" if settings.cpu_budget else ""
    memory = f"may buffer {format_value(settings.memory_budget, 'bytes')}" if settings.memory_budget else ""
    if memory and settings.memory_used is not None:
        memory += f" ({format_ratio(settings.memory_used)} used)"
    parts = [part for part in (cores, memory, end) if part]
    sentence = f"The pipeline {', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{parts[-1]}."
    return [Facts(known(facts), audience="machine"), *grid, Prose(sentence)]
