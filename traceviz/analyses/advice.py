"""Advice that fits the program: what is meant for another framework, or another profiler, is left out.

A line of advice may have parts that begin with whom they are meant for, behind a sentence for all::

    Let the input run ahead. TensorFlow: .prefetch(tf.data.AUTOTUNE); PyTorch: more workers; JAX: a thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from traceviz.report import Finding

FRAMEWORKS = ("TensorFlow", "PyTorch", "JAX")
NSIGHT = "Nsight Systems"
_NAMES = "|".join((*FRAMEWORKS, NSIGHT))
_BORDER = re.compile(rf"(?:; |(?<=\.) )(?=(?:{_NAMES}): )")
_WHOM = re.compile(rf"^({_NAMES}): ")


def strangers(framework: str | None, producer: str | None) -> frozenset[str]:
    """Whom advice may name that has no part in a trace.

    Args:
        framework: The framework of the program; where it is not known, advice for each of them is kept.
        producer: The program that recorded the trace; where it is not known, so is advice for any.
    """
    known = {name for name in FRAMEWORKS if name.lower() in (framework or "").lower()}
    others = set(FRAMEWORKS) - known if known else set()
    return frozenset(others | ({NSIGHT} if producer and "nsight" not in producer.lower() else set()))


def fitting(found: Finding, unwanted: Collection[str]) -> Finding:
    """The finding without the parts of its advice that are meant for ``unwanted``; all of it where none would stay."""
    kept = tuple(line for step in found.advice if (line := _without(step, unwanted)))
    return replace(found, advice=kept or found.advice)


def _without(step: str, unwanted: Collection[str]) -> str:
    """``step`` without the parts for others; empty where it was only for others."""
    parts = _BORDER.split(step)
    meant = [part for part in parts if (whom := _WHOM.match(part)) is None or whom[1] not in unwanted]
    if len(meant) == len(parts):
        return step
    first, *rest = meant or [""]
    text = f"{first} {'; '.join(rest)}" if rest and first.endswith(".") else "; ".join(meant)
    return f"{text}." if text and not text.endswith(".") else text
