"""Sentences of the first line: about the input, about how busy the device is, and the length of all."""

from __future__ import annotations

import re

from traceviz.analyses.headline.choice import Choice
from traceviz.analyses.headline.judged import Judged
from traceviz.analyses.headline.options import INPUTS, Option
from traceviz.analyses.input.dataloader import DATALOADER
from traceviz.analyses.input.input_pipeline import NO_INPUT, InputPipelineResult
from traceviz.analyses.input.stages import SAMPLED, UNRECORDED
from traceviz.core.units import format_ratio

LONGEST = 350
"""Characters of the first line; what matters least is left to the sections beyond it."""


def input_cause(pipeline: InputPipelineResult) -> str:
    """The input as the cause that leads: how long it is waited for, where, and what would be gained at best."""
    share = format_ratio(pipeline.at_stake_ns / pipeline.step_ns)
    if pipeline.verdict == "possibly input-bound":
        return (
            f"Possibly input-bound: in {share} of steady step time the device is idle and the host launches nothing, "
            f"mostly {pipeline.stages[0].name if pipeline.stages else UNRECORDED}. {pipeline.unranged}"
        )
    speedup = pipeline.best_case_speedup
    best = f"; at best {speedup:.1f}× as fast without the wait" if speedup else ""
    bound = f" ({pipeline.caveat})" if pipeline.caveat else ""
    kind = pipeline.verdict.capitalize() if "input-bound" in pipeline.verdict else "Input"
    kind = "Input-bound" if pipeline.verdict == "not input-bound" else kind
    where = f"{_mostly(pipeline)}{_line(pipeline)}"
    return f"{kind}: {share} of steady step time waits for input{where}{best}{bound}."


def _line(pipeline: InputPipelineResult) -> str:
    """The function that takes the time of the input, after what it is waited in."""
    words = pipeline.lines.words if pipeline.lines is not None else ""
    if not words:
        return ""
    return f": {words}" if _mostly(pipeline) else f", {words}"


def _mostly(pipeline: InputPipelineResult) -> str:
    stage = pipeline.stages[0] if pipeline.stages else None
    if stage is None or (stage.kind == SAMPLED and pipeline.lines is not None and pipeline.lines.words):
        return ""
    if stage.kind == SAMPLED:
        return f", mostly in {stage.name}"
    named = f"for {stage.name} (tf.data)" if stage.path else f'in "{stage.name}"'
    return f", mostly {f'in the {stage.name}' if stage.kind == DATALOADER else named}"


def about_input(pipeline: InputPipelineResult, lead: Option | None) -> str:
    """The verdict on the input in few words, where it is not what leads."""
    if pipeline.verdict == "cannot judge":
        if pipeline.reason.startswith(NO_INPUT):
            return "It has no input to judge."
        reason = pipeline.reason.partition(", so ")[0]
        return f"Cannot judge the input pipeline: {reason}."
    if lead is not None and lead.key in INPUTS:
        return ""
    share = format_ratio(pipeline.at_stake_ns / pipeline.step_ns)
    where = "" if pipeline.verdict == "not input-bound" else _mostly(pipeline)
    return f"{pipeline.verdict.capitalize()} ({share}{where})."


def short_remedy(remedy: str) -> str:
    """The first way out of several."""
    first = re.split(r"[;,] or name ", remedy, maxsplit=1)[0].rstrip(".")
    return f"{first}." if first else ""


def mildly(judged: Judged, lead: Option) -> str:
    """A cause that leads and yet is small, beside what the device computes."""
    share = format_ratio(judged.compute_share)
    small = f"{lead.label} ({format_ratio(lead.share)})"
    return f"{judged.opening} computes in {share} of {judged.whole}; the largest other part: {small}."


def beside(choice: Choice, judged: Judged) -> str:
    """What takes as much, or much as well."""
    ties = [_shared(option, judged) for option in choice.ties[:2] if option.key not in INPUTS]
    others = [_shared(option, judged) for option in choice.beside if option.key not in INPUTS][: 2 - len(ties)]
    said = (f"As much: {_listed(ties)}." if ties else "", f"Also: {_listed(others)}." if others else "")
    return " ".join(filter(None, said))


def _shared(option: Option, judged: Judged) -> str:
    bound = "at most " if option.certainty == "at most" else ""
    of = "" if option.share_of == judged.words else f" of the {option.share_of}"
    return f"{option.label} ({bound}{format_ratio(option.share)}{of})"


def _listed(parts: list[str]) -> str:
    return " and ".join(parts)


def fitting(sentences: list[tuple[int, str]]) -> str:
    """The sentences as one line, in their order; while it is too long, that with the highest rank is left out.

    Args:
        sentences: Rank and text of each; rank 0 always stays.
    """
    kept = [(rank, text) for rank, text in sentences if text]
    while len(line := " ".join(text for _, text in kept)) > LONGEST:
        worst = max(rank for rank, _ in kept)
        if not worst:
            break
        kept.remove(next(item for item in reversed(kept) if item[0] == worst))
    return line
