"""Steps of an engine that serves a language model, by the annotations of vLLM, SGLang and TensorRT-LLM.

An engine works in steps, each of them one forward pass for the requests that are scheduled: *prefill* reads prompts,
*decode* generates a token for each request, *mixed* does both. The engines say so in the names of their annotations::

    vLLM          execute_context_1(888)_generation_2(2)
                  execute_5_context_1(sq888sk888sqsq788544sqsk788544)_generation_2(sq2sk300sqsq2sqsk300)
    SGLang        step[DECODE bs=32], step[EXTEND bs=2 toks=512], step[MIXED bs=3]
    TensorRT-LLM  [Executor] _forward_step 7: 1 ctx reqs, 888 ctx tokens, 2 gen reqs

A serving program trains on nothing: nothing is said of its input pipeline.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Phase = Literal["prefill", "decode", "mixed", "idle"]

SERVING_NAME = (
    r"^(?:execute_(?:\d+_)?context_\d+\(|step\[[A-Z_]+ bs=\d+"
    r"|(?:\[Executor\] _forward_step|executeStep\b).*ctx reqs)"
)
"""Names of the annotations around an engine's steps; :func:`engine_step` reads them."""

_LONGEST = 400
"""Characters of a name that are looked at: a bound on time."""
_VLLM = re.compile(
    r"execute_(?:\d+_)?context_(?P<prompts>\d+)\((?:sq)?(?P<prompt_tokens>\d+)[^()]*\)"
    r"_generation_(?P<running>\d+)\((?:sq)?(?P<new_tokens>\d+)[^()]*\)"
)
_SGLANG = re.compile(r"step\[(?P<mode>[A-Z_]+)(?: bs=(?P<requests>\d+))?(?: toks=(?P<tokens>\d+))?[^\[\]]*\]")
_TENSORRT = re.compile(
    r"(?:\[Executor\] _forward_step \d+|executeStep): (?P<prompts>\d+) ctx reqs, "
    r"(?:(?P<prompt_tokens>\d+) ctx tokens, )?(?P<running>\d+) gen(?:eration)? reqs"
)
_SGLANG_PHASES: dict[str, Phase] = {"DECODE": "decode", "EXTEND": "prefill", "MIXED": "mixed", "IDLE": "idle"}


@dataclass(frozen=True, slots=True)
class EngineStep:
    """What the name of an annotation says of one step of an engine.

    Args:
        engine: ``vLLM``, ``SGLang`` or ``TensorRT-LLM``.
        phase: What it does.
        prompts: Requests whose prompts it reads; ``None`` where the name does not say.
        running: Requests for which it generates; ``None`` where the name does not say.
        prompt_tokens: Tokens of prompts that it reads; ``None`` where the name does not say.
        new_tokens: Tokens that it generates; ``None`` where the name does not say.
    """

    engine: str
    phase: Phase
    prompts: int | None
    running: int | None
    prompt_tokens: int | None
    new_tokens: int | None


def engine_step(name: str) -> EngineStep | None:
    """What the annotation ``name`` says of a step of an engine; ``None`` where it is none."""
    text = name[:_LONGEST]
    if match := _VLLM.match(text):
        prompts, tokens, running, new = (int(part) for part in match.groups())
        return EngineStep("vLLM", _phase(prompts, running), prompts, running, tokens, new)
    if match := _TENSORRT.match(text):
        prompts, running = int(match["prompts"]), int(match["running"])
        stated = None if match["prompt_tokens"] is None else int(match["prompt_tokens"])
        return EngineStep("TensorRT-LLM", _phase(prompts, running), prompts, running, stated, running)
    if (match := _SGLANG.match(text)) and match["mode"] in _SGLANG_PHASES:
        return _of_sglang(match)
    return None


def _of_sglang(match: re.Match[str]) -> EngineStep:
    """SGLang says how many requests a step is for, and of those that read prompts, how many tokens."""
    phase = _SGLANG_PHASES[match["mode"]]
    requests = None if match["requests"] is None else int(match["requests"])
    tokens = None if match["tokens"] is None else int(match["tokens"])
    if phase == "decode":
        return EngineStep("SGLang", phase, 0, requests, 0, requests)
    if phase == "prefill":
        return EngineStep("SGLang", phase, requests, 0, tokens, 0)
    return EngineStep("SGLang", phase, None, None, None, None)


def _phase(prompts: int, running: int) -> Phase:
    if prompts and running:
        return "mixed"
    if prompts:
        return "prefill"
    return "decode" if running else "idle"
