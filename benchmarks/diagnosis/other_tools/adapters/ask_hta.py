"""HolisticTraceAnalysis: classes of device time of all ranks, and the classes of its idle time.

It gives tables and no verdict. Its three classes (compute, other work, idle) become statements: idle time by its
greatest category, other work as communication or as the copy that takes longest.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.diagnosis.other_tools.adapters.protocol import Statement, by_share, serve

Rows = list[dict[str, Any]]


def main() -> None:
    """Serve requests."""
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found, unused-ignore]

    def answer(paths: list[str]) -> list[Statement]:
        # Without the first argument's ranks it would need ``distributedInfo``, which captures of one rank lack.
        traces = TraceAnalysis(trace_files=dict(enumerate(paths)), trace_dir="/", include_last_profiler_step=True)
        classes = traces.get_temporal_breakdown(visualize=False)
        idle, _ = traces.get_idle_time_breakdown(ranks=list(range(len(paths))), visualize=False)
        _, kernels = traces.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True)
        return statements(classes.to_dict("records"), idle.to_dict("records"), kernels.to_dict("records"))

    serve(answer)


def statements(classes: Rows, idle: Rows, kernels: Rows) -> list[Statement]:
    """Return the classes of device time, as shares of all ranks' time, without compute.

    Args:
        classes: Rows of ``get_temporal_breakdown``, one for each rank.
        idle: Rows of ``get_idle_time_breakdown``, for each rank, stream and category.
        kernels: The second table of ``get_gpu_kernel_breakdown``.
    """
    found = []
    idle_share = sum(row["idle_time_pctg"] for row in classes) / len(classes) / 100
    categories: Counter[str] = Counter()
    for row in idle:
        categories[row["idle_category"]] += row["idle_time"]
    if categories:
        category = categories.most_common(1)[0][0]
        found.append(Statement(f"idle: {category}", idle_share, f"idle {idle_share:.1%}, most of it {category}"))
    other_share = sum(row["non_compute_time_pctg"] for row in classes) / len(classes) / 100
    sums: Counter[str] = Counter()
    for row in kernels:
        if row["kernel_type"] == "MEMORY":
            sums[row["name"]] += row["sum (us)"]
        elif row["kernel_type"] == "COMMUNICATION":
            sums["communication"] += row["sum (us)"]
    total = sum(sums.values())
    for name, time in sums.items():
        share = other_share * time / total if total else 0.0
        kind = name if name == "communication" else f"memory: {direction(name)}"
        found.append(Statement(kind, share, f"{name} {share:.1%}"))
    return by_share(found)


def direction(name: str) -> str:
    """Return the direction of a copy, such as ``HtoD``, from the name of its kernel; ``Memset`` for one."""
    return next((word for word in ("HtoD", "DtoH", "DtoD", "Memset") if word in name), "other")


if __name__ == "__main__":
    main()
