"""Steps of ``generate`` of transformers, from recorded Python calls, since it writes no annotations.

A loop (``_sample``, ``_beam_search`` ...) calls the model for the prompts, then once for each token, and prepares the
inputs before each of these calls::

    generate  |---------------------------------------------------------|
    _sample         |---------------------------------------------------|
    prepare_inputs     |-|            |-|        |-|        |-|
    steps              |--- prefill --|- decode -|- decode -|- decode --|

The first call of a loop reads the prompts, unless the recording started within the loop. Calls that were open then have
the recording's start as their start, and no call of the thread has ended before.
"""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.calls.host_calls import argument
from traceviz.analyses.derived.frames import end_ns, having, outermost
from traceviz.analyses.derived.view import TraceView

ENGINE = "transformers"

LOOP_NAME = (
    r"transformers[/\\]generation(?:[/\\]|_)utils\.py\(\d+\): "
    r"_?(?:sample|greedy_search|contrastive_search|(?:group_|constrained_)?beam_s(?:earch|ample)"
    r"|assisted_decoding|dola_decoding)$"
)
"""Names of the Python calls that generate token after token."""
PREPARE_NAME = r": prepare_inputs_for_generation$"
"""Names of the Python calls that precede each call of the model."""
_TOKENS_SHAPE = r"^\[\[\d+, *\d+\], *\[(\d+), *(\d+)\]"
"""Input shapes of an embedding: its table, then the tokens, as sequences by positions."""


def generate_calls(trace: TraceView) -> pl.DataFrame | None:
    """Return steps in loops of ``generate``: ``process_id, thread_id, start_ns, end_ns, name, engine, phase``.

    Loops within loops (a draft model proposes tokens) are part of the outer loop's steps. ``None`` if there are none.
    """
    python = having(trace.host_names, "category", "python")["name"]
    looping, preparing = (python.filter(python.str.contains(name)) for name in (LOOP_NAME, PREPARE_NAME))
    if not looping.len() or not preparing.len():
        return None
    nested = _read_calls(trace, looping)
    loops = outermost(nested).with_row_index("loop")
    prepared = outermost(_read_calls(trace, preparing))
    steps = _calls_inside(prepared[["thread_id", "start_ns"]], loops)
    inner = nested.join(loops, on=["thread_id", "start_ns", "end_ns"], how="anti").with_row_index("inner")
    if inner.height:
        of_drafts = _calls_inside(steps[["thread_id", "start_ns"]], inner.rename({"inner": "loop"}))
        steps = steps.join(of_drafts, on=["thread_id", "start_ns"], how="anti")
    first = pl.col("start_ns") == pl.col("start_ns").min().over("loop")
    prefill = first & (pl.col("loop_ns") >= pl.col("earliest_ns"))
    of_threads = pl.col("thread_id").is_in(loops["thread_id"].unique().to_list()) & (pl.col("category") == "python")
    ends = (pl.col("start_ns") + pl.col("dur_ns")).min().alias("earliest_ns")
    first_ends = trace.tables.scan("host_ops").filter(of_threads).group_by("thread_id").agg(ends).collect()
    steps = steps.sort("thread_id", "start_ns").join(first_ends, on="thread_id", maintain_order="left")
    return steps.select(
        "process_id",
        "thread_id",
        "start_ns",
        pl.col("start_ns").shift(-1).over("loop").fill_null(pl.col("loop_end_ns")).alias("end_ns"),
        "name",
        pl.lit(ENGINE).alias("engine"),
        pl.when(prefill).then(pl.lit("prefill")).otherwise(pl.lit("decode")).alias("phase"),
    )


def with_batches(trace: TraceView, steps: pl.DataFrame) -> pl.DataFrame:
    """Add requests and tokens to ``steps`` of ``generate``, if the shapes of the first embedding show them.

    Args:
        trace: The trace.
        steps: ``thread_id, call_ns, call_end_ns, phase, prompts, running, prompt_tokens, new_tokens``.
    """
    embeddings = _read_calls(trace, pl.Series(["aten::embedding"]), "op_id")
    shapes = argument(trace, "Input Dims", "text").join(embeddings, on="op_id")
    text = pl.col("text").cast(pl.String)
    size = [text.str.extract(_TOKENS_SHAPE, group).cast(pl.Int64) for group in (1, 2)]
    shaped = shapes.select("thread_id", "start_ns", size[0].alias("sequences"), size[1].alias("positions"))
    following = steps.sort("call_ns").join_asof(
        shaped.drop_nulls().sort("start_ns"),
        left_on="call_ns",
        right_on="start_ns",
        by="thread_id",
        strategy="forward",
        check_sortedness=False,
        suffix="_of_shape",
    )
    inside = pl.col("start_ns_of_shape") < pl.col("call_end_ns")
    sequences = pl.when(inside).then("sequences")
    tokens = pl.when(inside).then(pl.col("sequences") * pl.col("positions"))
    reads, nothing = pl.col("phase") == "prefill", pl.when(inside).then(pl.lit(0, pl.Int64))
    return following.with_columns(
        pl.when(reads).then(sequences).otherwise(nothing).alias("prompts"),
        pl.when(reads).then(nothing).otherwise(sequences).alias("running"),
        pl.when(reads).then(tokens).otherwise(nothing).alias("prompt_tokens"),
        pl.when(reads).then(nothing).otherwise(sequences).alias("new_tokens"),
    ).select(steps.columns)


def _read_calls(trace: TraceView, names: pl.Series, *also: str) -> pl.DataFrame:
    """Return host operations of these names with a duration, by thread and start, the outer first; names as text."""
    columns: tuple[str | pl.Expr, ...] = ("process_id", "thread_id", "start_ns", end_ns(), "name", *also)
    rows = trace.tables.scan("host_ops").filter(pl.col("name").is_in(names.to_list()) & (pl.col("dur_ns") > 0))
    calls = rows.select(columns).collect().with_columns(pl.col("name").cast(pl.String))
    return calls.sort("thread_id", "start_ns", "end_ns", descending=[False, False, True])


def _calls_inside(calls: pl.DataFrame, loops: pl.DataFrame) -> pl.DataFrame:
    """Return ``calls`` that start in one of ``loops`` (disjoint on each thread), with the columns of the loop."""
    around = loops.select(
        "loop",
        "process_id",
        "thread_id",
        "name",
        pl.col("start_ns").alias("loop_ns"),
        pl.col("end_ns").alias("loop_end_ns"),
    )
    found = calls.sort("start_ns").join_asof(
        around.sort("loop_ns"),
        left_on="start_ns",
        right_on="loop_ns",
        by="thread_id",
        strategy="backward",
        check_sortedness=False,
    )
    return found.filter(pl.col("start_ns") < pl.col("loop_end_ns"))
