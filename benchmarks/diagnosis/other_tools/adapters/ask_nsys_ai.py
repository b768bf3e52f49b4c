"""nsys-ai: the findings of ``nsys-ai diagnose``, without its language model, in their order.

Its findings are ordered by the time that each could recover. Those without such a time are not ranked by the tool; of
them only the class of the critical path is read. Idle time is refined by what the skill ``root_cause_matcher``
recommends for its gaps.
"""

from __future__ import annotations

import logging
from typing import Any

from benchmarks.diagnosis.other_tools.adapters.protocol import CANNOT_JUDGE, Statement, serve

GAP_ADVICE = {
    "Critical Over-Synchronization": "synchronization",
    "Remove explicit cudaDeviceSynchronize": "synchronization",
    "CPU is not feeding": "cpu stall",
    "Gaps caused by blocking memory": "memory transfer",
    "Kernel launch overhead": "kernel launch",
}
"""Starts of recommendations of the pattern of gaps."""
GAPS = "GPU Bubbles (Pipeline Stalls)"


def main() -> None:
    """Serve requests."""
    from nsys_ai.evidence_builder import EvidenceBuilder  # type: ignore[import-not-found, unused-ignore]
    from nsys_ai.profile import Profile, select_gpu_device  # type: ignore[import-not-found, unused-ignore]
    from nsys_ai.skills.registry import get_skill  # type: ignore[import-not-found, unused-ignore]

    logging.disable(logging.ERROR)

    def answer(paths: list[str]) -> list[Statement]:
        with Profile(paths[0]) as profile:
            device = select_gpu_device(profile, None)
            report = EvidenceBuilder(profile, device=device).build().to_dict()
            patterns = get_skill("root_cause_matcher").execute(profile.query_conn(), device=device)
        return statements(report, patterns)

    serve(answer)


def statements(report: dict[str, Any], patterns: list[dict[str, Any]]) -> list[Statement]:
    """Return the findings that have a time to recover and warn, and after them the class of the critical path."""
    advice = next((row["recommendation"] for row in patterns if row.get("pattern") == GAPS), "")
    cause = next((name for start, name in GAP_ADVICE.items() if advice.startswith(start)), "")
    spans = [(finding.get("end_ns") or 0) - (finding.get("start_ns") or 0) for finding in report["findings"]]
    profile_ms = max(spans, default=0) / 1e6  # the longest finding is of the whole profile
    ranked, bounds = [], []
    for finding in report["findings"]:
        skill = finding.get("provenance", {}).get("skill", "")
        text = f"{finding['label']}. {finding.get('note', '')}"
        if skill == "critical_path":
            bounds.append(Statement(finding["label"].removeprefix("Critical path is "), None, text))
        elif finding.get("headroom_ms") and finding["severity"] != "info":
            kind = f"idle: {cause}" if skill == "gpu_idle_gaps" and cause else skill
            ranked.append(Statement(kind, finding["headroom_ms"] / profile_ms if profile_ms else None, text))
    if not (ranked or bounds) and len(report.get("skipped", [])) > len(report["findings"]):
        return [Statement(CANNOT_JUDGE, None, str(report["skipped"][0]))]
    return ranked + bounds


if __name__ == "__main__":
    main()
