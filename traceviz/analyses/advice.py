"""Advice that fits the program: lines for other frameworks and other profilers are left out.

A line of advice may have parts that begin with their addressee, behind a sentence for everybody::

    Let the input run ahead. TensorFlow: .prefetch(tf.data.AUTOTUNE); PyTorch: more workers; JAX: a thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from traceviz.analyses.derived.frameworks import FRAMEWORKS, frameworks_in
from traceviz.report import Finding

NSIGHT = "Nsight Systems"
_NAMES = "|".join((*FRAMEWORKS, NSIGHT))
_BORDER = re.compile(rf"(?:; |(?<=\.) )(?=(?:{_NAMES}): )")
_ADDRESSEE = re.compile(rf"^({_NAMES}): ")


def inapplicable(framework: str | None, producer: str | None) -> frozenset[str]:
    """Frameworks and profilers that advice may address, and that have no part in a trace.

    Args:
        framework: The framework of the program; where it is unknown, advice for each of them is kept.
        producer: The program that recorded the trace; where it is unknown, advice for any profiler is kept.
    """
    known = frameworks_in(framework)
    others = {name for name in FRAMEWORKS if known and name.lower() not in known}
    return frozenset(others | ({NSIGHT} if producer and "nsight" not in producer.lower() else set()))


def fit_advice(finding: Finding, others: Collection[str]) -> Finding:
    """``finding`` without the parts of its advice that address ``others``; unchanged where nothing would be left."""
    kept = tuple(line for step in finding.advice if (line := _without(step, others)))
    return replace(finding, advice=kept or finding.advice)


def _without(step: str, others: Collection[str]) -> str:
    """``step`` without the parts that address ``others``; empty where it addresses nobody else."""
    parts = _BORDER.split(step)
    kept = [part for part in parts if (addressee := _ADDRESSEE.match(part)) is None or addressee[1] not in others]
    if len(kept) == len(parts):
        return step
    first, *rest = kept or [""]
    text = f"{first} {'; '.join(rest)}" if rest and first.endswith(".") else "; ".join(kept)
    return f"{text}." if text and not text.endswith(".") else text
