"""Advice that fits the program. Lines for other frameworks and other profilers are left out.

A line of advice may start with a general sentence. Parts for one addressee follow; each starts with its name::

    Let the input run ahead. TensorFlow: .prefetch(tf.data.AUTOTUNE); PyTorch: more workers; JAX: a thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from traceviz.analyses.derived.recorded.frameworks import FRAMEWORKS
from traceviz.report import Finding

NSIGHT = "Nsight Systems"
STACKS = "with_stack=True"
"""Text that marks advice to record frames of Python."""
_RECORD_STACKS = re.compile(r" \(record with_stack=True[^()]*\)")
_NAMES = "|".join((*FRAMEWORKS, NSIGHT))
_BORDER = re.compile(rf"(?:; |(?<=\.) )(?=(?:{_NAMES}): )")
_ADDRESSEE = re.compile(rf"^({_NAMES}): ")


def inapplicable(frameworks: Collection[str], producer: str | None, *, has_frames: bool = False) -> frozenset[str]:
    """Return frameworks, profilers and things to record that advice may name but that do not apply to the trace.

    Args:
        frameworks: Frameworks that the program may use, in lower case.
        producer: The program that recorded the trace; if it is unknown, advice for any profiler is kept.
        has_frames: True if frames of Python were recorded. Advice to record them is then left out.
    """
    others = {name for name in FRAMEWORKS if name.lower() not in frameworks}
    others |= {NSIGHT} if producer and "nsight" not in producer.lower() else set()
    return frozenset(others | ({STACKS} if has_frames else set()))


def fit_advice(finding: Finding, others: Collection[str], needless: Sequence[re.Pattern[str]] = ()) -> Finding:
    """Return ``finding`` without advice for others, and without advice that the program follows already.

    Args:
        finding: The finding.
        others: Addressees to leave out. If no other advice is left, it stays.
        needless: Patterns of sentences and clauses that are always left out, even if no advice is left.
    """
    kept = tuple(line for step in finding.advice if (line := _without(step, others)))
    wanted = tuple(line for step in kept or finding.advice if (line := _not_done(step, needless)))
    return replace(finding, advice=wanted)


def _not_done(step: str, needless: Sequence[re.Pattern[str]]) -> str:
    """Return ``step`` without clauses that a pattern matches; empty if its opening matches or is all that is left."""
    first, *rest = _BORDER.split(step)
    opening, parts = (first, rest) if first.endswith(".") and rest else ("", [first, *rest])
    if opening and _is_any(needless, opening):
        return ""
    kept = [part for whole in parts if (part := _rest_of(whole, needless))]
    if kept == parts:
        return step
    if not kept:
        return ""
    return f"{opening} {'; '.join(kept)}".strip().rstrip(".") + "."


def _rest_of(part: str, needless: Sequence[re.Pattern[str]]) -> str:
    """Return the clauses of ``part`` that no pattern matches, with its addressee."""
    addressee = match[0] if (match := _ADDRESSEE.match(part)) else ""
    clauses = [f"{addressee}{clause}" for clause in part.removeprefix(addressee).split("; ")]
    kept = [clause.removeprefix(addressee) for clause in clauses if not _is_any(needless, clause)]
    return f"{addressee}{'; '.join(kept)}" if kept else ""


def _is_any(patterns: Sequence[re.Pattern[str]], clause: str) -> bool:
    return any(pattern.search(clause.rstrip(".")) for pattern in patterns)


def _without(step: str, others: Collection[str]) -> str:
    """Return ``step`` without the parts that address ``others``; empty if it addresses no one else."""
    whole = _RECORD_STACKS.sub("", step) if STACKS in others else step
    parts = _BORDER.split(whole)
    kept = [part for part in parts if (addressee := _ADDRESSEE.match(part)) is None or addressee[1] not in others]
    if len(kept) == len(parts):
        return whole
    first, *rest = kept or [""]
    text = f"{first} {'; '.join(rest)}" if rest and first.endswith(".") else "; ".join(kept)
    return f"{text}." if text and not text.endswith(".") else text
