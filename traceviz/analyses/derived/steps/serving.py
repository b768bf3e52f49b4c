"""Steps of an engine that serves a language model, by the annotations of vLLM, SGLang and TensorRT-LLM.

An engine works in steps. Each is one forward pass for the scheduled requests: *prefill* reads prompts, *decode*
generates a token for each request, *mixed* does both. The names of the engines' annotations show which::

    vLLM          execute_context_1(888)_generation_2(2)
                  execute_5_context_1(sq888sk888sqsq788544sqsk788544)_generation_2(sq2sk300sqsq2sqsk300)
                  execute_new_1_cached_2   (up to 0.11: new requests, and requests that were scheduled before)
    SGLang        step[DECODE bs=32], step[EXTEND bs=2 toks=512], step[MIXED bs=3]
    TensorRT-LLM  [Executor] _forward_step 7: 1 ctx reqs, 888 ctx tokens, 2 gen reqs

They nest: SGLang writes ``step[...]`` within annotations of vLLM's form. The outermost is the step. A serving program
does not train, so its input pipeline is not judged.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from typing import Literal

import polars as pl

from traceviz.analyses.derived.calls.host_calls import annotated_calls
from traceviz.analyses.derived.frames import having, outermost_by, parts_by
from traceviz.analyses.derived.patterns import matches, matching
from traceviz.analyses.derived.steps.generate import generate_calls
from traceviz.analyses.derived.view import TraceView, once_per_trace

Phase = Literal["prefill", "decode", "mixed", "idle"]
PHASES: tuple[Phase, ...] = ("prefill", "mixed", "decode", "idle")
"""Phases in their order in reports."""

SERVING_NAME = (
    r"^(?:execute_(?:\d+_)?context_\d+\(|execute_new_\d+_cached_\d+$|step\[[A-Z_0-9]+ bs=\d+"
    r"|(?:\[Executor\] _forward_step|executeStep\b).*ctx reqs)"
)
"""Names of the annotations around an engine's steps; :func:`engine_step` parses them."""

TRAINING_NAME = r"^(?:Optimizer\.step#|autograd::engine::evaluate_function)"
"""Names of operations that only training programs have: an engine within one generates training data."""

_LONGEST = 400
"""Maximum number of characters of a name that are parsed, to limit time."""
_VLLM = re.compile(
    r"execute_(?:\d+_)?context_(?P<prompts>\d+)\((?:sq)?(?P<prompt_tokens>\d+)[^()]*\)"
    r"_generation_(?P<running>\d+)\((?:sq)?(?P<new_tokens>\d+)[^()]*\)"
)
_VLLM_UNTIL_0_11 = re.compile(r"execute_new_(?P<new>\d+)_cached_(?P<cached>\d+)$")
_SGLANG = re.compile(r"step\[(?P<mode>[A-Z_0-9]+)(?: bs=(?P<requests>\d+))?(?: toks=(?P<tokens>\d+))?[^\[\]]*\]")
_TENSORRT = re.compile(
    r"(?:\[Executor\] _forward_step(?: \d+)?|executeStep): (?P<prompts>\d+) ctx reqs, "
    r"(?:(?P<prompt_tokens>\d+) ctx tokens, )?(?P<running>\d+) gen(?:eration)? reqs"
)
_SGLANG_PHASES: dict[str, Phase] = {
    "DECODE": "decode",
    "EXTEND": "prefill",
    "SPLIT_PREFILL": "prefill",
    "MIXED": "mixed",
    "IDLE": "idle",
    "TARGET_VERIFY": "decode",  # verifies tokens of a draft model: the number of accepted ones is not known
    "DRAFT_EXTEND": "decode",
    "DRAFT_EXTEND_V2": "decode",
}


@dataclass(frozen=True, slots=True)
class EngineStep:
    """Facts about one step of an engine, from the name of its annotation.

    Args:
        engine: ``vLLM``, ``SGLang`` or ``TensorRT-LLM``.
        phase: Its phase.
        prompts: Requests whose prompts it reads; ``None`` if the name does not show it.
        running: Requests for which it generates; ``None`` if the name does not show it.
        prompt_tokens: Tokens of prompts that it reads; ``None`` if the name does not show it.
        new_tokens: Tokens that it generates; ``None`` if the name does not show it.
    """

    engine: str
    phase: Phase
    prompts: int | None
    running: int | None
    prompt_tokens: int | None
    new_tokens: int | None


def engine_step(name: str) -> EngineStep | None:
    """Parse the annotation ``name`` of an engine's step; return ``None`` if it is not one."""
    text = name[:_LONGEST]
    if match := _VLLM.match(text):
        prompts, tokens, running, new = (int(part) for part in match.groups())
        return EngineStep("vLLM", _phase_of(prompts, running), prompts, running, tokens, new)
    if match := _VLLM_UNTIL_0_11.match(text):
        new, cached = int(match["new"]), int(match["cached"])
        return EngineStep("vLLM", _phase_of(new, cached), new, cached, None if new else 0, None if cached else 0)
    if match := _TENSORRT.match(text):
        prompts, running = int(match["prompts"]), int(match["running"])
        stated = match["prompt_tokens"] if prompts else 0
        read = None if stated is None else int(stated)
        return EngineStep("TensorRT-LLM", _phase_of(prompts, running), prompts, running, read, running)
    if (match := _SGLANG.match(text)) and match["mode"] in _SGLANG_PHASES:
        phase = _SGLANG_PHASES[match["mode"]]
        count, size = (None if match[key] is None else int(match[key]) for key in ("requests", "tokens"))
        if phase == "decode":
            return EngineStep("SGLang", phase, 0, count, 0, count if match["mode"] == "DECODE" else None)
        if phase == "prefill":
            return EngineStep("SGLang", phase, count, 0, size, 0)
        return EngineStep("SGLang", phase, None, None, None, None)
    return None


def _phase_of(prompts: int, running: int) -> Phase:
    if prompts and running:
        return "mixed"
    if prompts:
        return "prefill"
    return "decode" if running else "idle"


ENGINE_CALLS = {
    "process_id": pl.Int32,
    "thread_id": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "name": pl.String,
    "engine": pl.String,
    "phase": pl.String,
    "prompts": pl.Int64,
    "running": pl.Int64,
    "prompt_tokens": pl.Int64,
    "new_tokens": pl.Int64,
}
"""Columns of :func:`engine_calls`."""


@once_per_trace
def engine_calls(trace: TraceView) -> pl.DataFrame:
    """Return the outermost annotations of an engine's steps, from each process's thread with the most time in them.

    If there are none, use the steps of ``generate`` of transformers (:mod:`traceviz.analyses.derived.steps.generate`).

    Returns:
        The columns of :data:`ENGINE_CALLS`, sorted by process and start. The engine is that of the innermost
        annotation. Empty if the trace has none, or if the program trains.
    """
    if matching(trace.host_names["name"], TRAINING_NAME).any():
        return pl.DataFrame(schema=ENGINE_CALLS)
    calls = _find_annotations(trace)
    if not calls.height and (generated := generate_calls(trace)) is not None:
        unknown = [pl.lit(None).alias(name) for name in ENGINE_CALLS if name not in generated.columns]
        calls = generated.with_columns(*unknown).select(pl.col(name).cast(kind) for name, kind in ENGINE_CALLS.items())
    parts = [calls.head(0)]
    for of_process in parts_by(calls, "process_id").values():
        spent = of_process.group_by("thread_id").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("spent"))
        thread = spent.sort("spent", "thread_id", descending=[True, False])["thread_id"][0]
        parts.append(having(of_process, "thread_id", thread).sort("start_ns"))
    return pl.concat(parts)


def _find_annotations(trace: TraceView) -> pl.DataFrame:
    """Return the outermost annotations of engines on all threads."""
    nothing = pl.DataFrame(schema=ENGINE_CALLS)
    where = ("process_id", "thread_id", "start_ns", "end_ns", "name")
    ranges = trace.ranges.filter(matches(pl.col("name"), SERVING_NAME)).select(where)
    calls = pl.concat([annotated_calls(trace, SERVING_NAME).select(where), ranges])
    if not calls.height:
        return nothing
    read = {name: engine_step(name) for name in calls["name"].unique()}
    fields = [(name, *astuple(step)) for name, step in read.items() if step is not None]
    columns = {name: kind for name, kind in ENGINE_CALLS.items() if name not in where[:4]}
    meanings = pl.DataFrame(fields, schema=columns, orient="row")
    known = calls.join(meanings, on="name").select(pl.col(name).cast(kind) for name, kind in ENGINE_CALLS.items())
    if not known.height:
        return nothing
    known = known.sort("thread_id", "start_ns", "end_ns", descending=[False, False, True])
    outer = outermost_by(known, "thread_id")
    return known.with_columns(pl.col("engine").last().over(outer.cum_sum())).filter(outer)
