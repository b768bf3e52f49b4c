"""gpu-idle: ``analyze`` of one trace of the PyTorch profiler, which names a cause in a sentence.

It does not combine ranks ("single-node; no cross-rank reasoning"), so each rank is asked, and the rank with the least
busy device answers.
"""

from __future__ import annotations

from typing import Any

from benchmarks.diagnosis.other_tools.adapters.protocol import CANNOT_JUDGE, Statement, serve

NO_STEPS = "no ProfilerStep annotations"
"""Words of its error for a trace that it declares unfit."""


def main() -> None:
    """Serve requests."""
    from analyzer import analyze  # type: ignore[import-not-found, unused-ignore]

    def answer(paths: list[str]) -> list[Statement]:
        try:
            return statements([analyze(path) for path in paths])
        except ValueError as error:
            if NO_STEPS not in str(error):
                raise
            return [Statement(CANNOT_JUDGE, None, str(error))]

    serve(answer)


def statements(results: list[dict[str, Any]]) -> list[Statement]:
    """Return the findings of the rank whose device is least busy, in the order of the tool."""
    worst = min(results, key=lambda result: result["measurements"]["busy_pct"])
    return [Statement(finding["cause"], finding["confidence"], finding["evidence"]) for finding in worst["findings"]]


if __name__ == "__main__":
    main()
