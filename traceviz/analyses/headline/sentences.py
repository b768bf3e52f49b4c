"""Sentences of the first line about the input and about busy devices, and the limit of its length."""

from __future__ import annotations

from traceviz.analyses.derived.capture.training import ReasonCode
from traceviz.analyses.headline.choice import INPUTS, MOST, Choice, Option
from traceviz.analyses.headline.claims import base_of
from traceviz.analyses.headline.judged_time import Judged
from traceviz.analyses.input.dataloader import DATALOADER
from traceviz.analyses.input.input_pipeline import InputPipelineResult
from traceviz.analyses.input.stages import SAMPLED, UNRECORDED
from traceviz.core.units import format_ratio
from traceviz.report.verdicts import InputVerdict

LONGEST = 350
"""Most characters of the first line. The least important sentences are left to the sections."""

HARDLY = 0.045
"""Least share of a wait for input that is called small, not absent: it rounds to that of a moderately bound program."""


def describe_input_cause(pipeline: InputPipelineResult, *, gain: bool = True) -> str:
    """Return the sentence about input as the leading cause: the wait, its place, and the possible gain if asked for."""
    share = format_ratio(pipeline.at_stake_share)
    if pipeline.verdict is InputVerdict.POSSIBLY_BOUND:
        return (
            f"Possibly input-bound: in {share} of steady step time the device is idle and the host launches nothing, "
            f"mostly {pipeline.stages[0].name if pipeline.stages else UNRECORDED}. {pipeline.unranged}"
        )
    speedup = pipeline.speedup_words if gain else ""
    best = f"; {speedup} as fast without the wait" if speedup else ""
    bound = f" ({pipeline.caveat})" if pipeline.caveat else ""
    kind = pipeline.verdict.title if pipeline.verdict.is_bound else "Input-bound"
    where = f"{_name_stage(pipeline)}{_name_line(pipeline)}"
    return f"{kind}: {share} of steady step time waits for input{where}{best}{bound}."


def _name_line(pipeline: InputPipelineResult) -> str:
    """Return the few calls with most of the wait, else the function that takes its time, after the call that waits."""
    few = pipeline.loader.few_words if pipeline.loader is not None else ""
    words = few or (pipeline.lines.words if pipeline.lines is not None else "")
    if not words:
        return ""
    return f": {words}" if _name_stage(pipeline) else f", {words}"


def _name_stage(pipeline: InputPipelineResult) -> str:
    """Return the stage with half of the wait or more, after a comma; empty if there is none."""
    stage = pipeline.stages[0] if pipeline.stages else None
    if stage is None or stage.self_ns < MOST * pipeline.wait_ns:
        return ""
    if stage.kind == SAMPLED and pipeline.lines is not None and pipeline.lines.words:
        return ""
    if stage.kind == SAMPLED:
        return f", mostly in {stage.name}"
    named = f"for {stage.name} (tf.data)" if stage.path else f'in "{stage.name}"'
    return f", mostly {f'in the {stage.name}' if stage.kind == DATALOADER else named}"


def describe_input(pipeline: InputPipelineResult, lead: Option | None, *, is_alone: bool = False) -> str:
    """Return the verdict on the input as a short sentence, if the input does not lead.

    Args:
        pipeline: The result on the input.
        lead: The option that leads.
        is_alone: True if no sentence before it states the base of its share.
    """
    if pipeline.verdict is InputVerdict.CANNOT_JUDGE and pipeline.reason is not None:
        if pipeline.reason.code is ReasonCode.TRAINS_NOTHING:
            return "There is no input to judge."
        return f"Cannot judge the input pipeline: {pipeline.reason.fact}."
    if lead is not None and lead.key in INPUTS:
        return ""
    share, of = pipeline.at_stake_share, " of step time" if is_alone else ""
    if pipeline.verdict is not InputVerdict.NOT_BOUND:
        return f"{pipeline.verdict.title} ({format_ratio(share)}{of}{_name_stage(pipeline)})."
    # Just below the threshold, "not" would read as the opposite of the words just above it
    title = "Hardly input-bound" if share >= HARDLY else pipeline.verdict.title
    return f"{title} ({format_ratio(share)}{of})."


def describe_minor_cause(judged: Judged, lead: Option) -> str:
    """Return the sentence about a leading cause that is small compared to the time in which devices compute."""
    share = format_ratio(judged.compute_share)
    small = f"{lead.label} ({format_ratio(lead.share)})"
    return f"{judged.opening} computes in {share} of {judged.whole}; the largest other part: {small}."


def describe_others(choice: Choice, judged: Judged, *, is_alone: bool = False) -> str:
    """Return the sentence about options that are as large as the leading one, or also large.

    ``is_alone``: no sentence before it states the base of their shares.
    """
    words = "" if is_alone else judged.words
    ties = [_with_share(option, words) for option in choice.ties[:2] if option.key not in INPUTS]
    others = [_with_share(option, words) for option in choice.beside if option.key not in INPUTS][: 2 - len(ties)]
    said = (f"As much: {_join(ties)}." if ties else "", f"Also: {_join(others)}." if others else "")
    return " ".join(filter(None, said))


def _with_share(option: Option, words: str) -> str:
    bound = "at most " if option.certainty == "at most" else ""
    of = f" of the {option.share_of}" if words else f" {base_of(option.share_of)}"
    of = "" if option.share_of == words else of
    return f"{option.label} ({bound}{format_ratio(option.share)}{of})"


def _join(parts: list[str]) -> str:
    return " and ".join(parts)


def continue_sentence(sentence: str) -> str:
    """Return a sentence for use after a colon. Its first letter is small unless the word is a name."""
    first = sentence.partition(" ")[0].rstrip(":,")
    is_name = first == "Python" or (len(first) > 1 and not first[1:].islower())
    return sentence if is_name else f"{sentence[:1].lower()}{sentence[1:]}"


def fit_sentences(sentences: list[tuple[int, str]]) -> str:
    """Join the sentences to one line, in their order. While it is too long, drop the sentence with the highest rank.

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
