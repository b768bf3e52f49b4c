"""xprof: the bottleneck of its overview page, which judges input, kernel launches, collectives and all other time.

Parts of a step that it calls *moderate* (above 3 to 4 % of the step) are not counted as its verdict, only those that it
calls *high*.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.other_tools.adapters.protocol import Statement, serve

PARTS = ("kernel_launch", "device_collectives", "all_other")
"""Parts of a step that the overview judges, besides input."""

HIGH = 0.15
"""Share of time from which xprof calls launches and other time *high*."""


def main() -> None:
    """Serve requests."""
    from xprof.convert import raw_to_tool_data  # type: ignore[import-not-found, unused-ignore]

    def answer(paths: list[str]) -> list[Statement]:
        # It leaves caches next to its input.
        with tempfile.TemporaryDirectory() as folder:
            copies = [shutil.copy(path, Path(folder, Path(path).name)) for path in paths]
            data, _ = raw_to_tool_data.xspace_to_tool_data(copies, "overview_page", {"use_saved_result": False})
        return statements(properties(json.loads(data)))

    serve(answer)


def properties(tables: list[dict[str, Any]]) -> dict[str, str]:
    """Return the properties of all tables of an answer."""
    return {key: value for table in tables for key, value in table.get("p", {}).items()}


def statements(overview: dict[str, str]) -> list[Statement]:
    """Return the bottlenecks of the overview, input first as on the page."""
    found = []
    conclusion = overview.get("input_conclusion", "") or overview.get("statement", "")
    if re.search(r"(MODERATELY|HIGHLY) input-bound", conclusion):
        found.append(Statement("input", share_in(conclusion), conclusion))
    elif "POTENTIALLY input-bound" in conclusion and (share_in(conclusion) or 0.0) >= HIGH:
        found.append(Statement("potentially input", share_in(conclusion), conclusion))
    for part in PARTS:
        if overview.get(f"{part}_bottleneck", "") == "high":
            text = overview.get(f"{part}_statement", "")
            found.append(Statement(part, share_in(text), text))
    found.sort(key=lambda statement: ("input" not in statement.kind, -(statement.share or 0.0)))
    return found


def share_in(text: str) -> float | None:
    """Return the first percentage of a text as a share."""
    number = re.search(r"([\d.]+) ?%", text)
    return float(number[1]) / 100 if number else None


if __name__ == "__main__":
    main()
