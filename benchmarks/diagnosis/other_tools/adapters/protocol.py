"""The protocol between the benchmark and an adapter: one request and one answer a line, as JSON.

Request: ``{"paths": [...]}``, the files of one capture, in the order of ranks. Answer: ``{"statements": [...]}`` with
the most important first, or ``{"error": "..."}``. An adapter that has nothing to report answers with no statements.

It uses the standard library only: it also runs in environments without traceviz.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Statement:
    """Part of the answer of a tool.

    Args:
        kind: Its class, in the words of the tool; ``meanings.py`` maps it to causes.
        share: Share of time that the tool gives it, from 0 to 1; ``None`` if the tool gives none.
        text: The tool's own words or figures.
    """

    kind: str
    share: float | None
    text: str


Answer = Callable[[list[str]], list[Statement]]
CANNOT_JUDGE = "cannot judge"
"""Kind of the statement of a tool that says itself that it cannot judge a capture."""


def by_share(statements: list[Statement]) -> list[Statement]:
    """Return statements with the greatest share first."""
    return sorted(statements, key=lambda statement: -(statement.share or 0.0))


def reply(line: str, answer: Answer) -> dict[str, Any]:
    """Return the answer to a request; an exception of the tool becomes an error."""
    try:
        return {"statements": [asdict(statement) for statement in answer(json.loads(line)["paths"])]}
    except Exception as error:  # noqa: BLE001 - any failure of a tool is its answer
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:400]}


def serve(answer: Answer) -> None:
    """Answer the requests of standard input until it ends."""
    # Tools print: only answers may reach the pipe.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(reply(line, answer)), file=answers, flush=True)
