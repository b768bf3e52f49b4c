"""Predicted against measured: reports on slow programs, and the step time of their repaired twins.

python scripts/what_if.py        # the table of docs/what-if.md
"""

from __future__ import annotations

from pathlib import Path

import traceviz

SAMPLES = Path(__file__).resolve().parent.parent / "sample_traces"
PAIRS = (
    ("kineto/slow.pt.trace.json.gz", "kineto/repaired.pt.trace.json.gz", "input"),
    ("kineto/workers.pt.trace.json.gz", "kineto/repaired.pt.trace.json.gz", "input"),
    ("xplane/slow_map.xplane.pb.gz", "xplane/repaired.xplane.pb", "input"),
    ("xplane/tfrecord.xplane.pb.gz", "xplane/repaired.xplane.pb", "input"),
    ("xplane/generator.xplane.pb.gz", "xplane/repaired.xplane.pb", "input"),
    ("synthetic/input_bound.sqlite", "synthetic/healthy.sqlite", "input"),
    ("synthetic/pageable_copies.sqlite", "synthetic/healthy.sqlite", "input"),
    ("synthetic/synchronisation.sqlite", "synthetic/healthy.sqlite", "synchronisation"),
    ("synthetic/allocation_churn.sqlite", "synthetic/healthy.sqlite", "allocation"),
    ("synthetic/torch_input_bound_single.pt.trace.json.gz", "synthetic/torch_healthy.pt.trace.json.gz", "input"),
)
"""A slow program, its repaired twin, and the part that the repair takes away."""


def main() -> None:
    """Print the table."""
    print("| slow | repaired | without | step | predicted | measured | inside |")
    print("|---|---|---|---|---|---|---|")
    for slow, repaired, part in PAIRS:
        before, after = (traceviz.report_on(SAMPLES / name, sections=["steps", "what_if"]) for name in (slow, repaired))
        row = next((row for row in before.rows("what_if") if row["part"] == part), None)
        mean = after.fact("steps", "mean_ns")
        if row is None or not isinstance(mean, int | float):
            print(f"| `{slow}` | `{repaired}` | {part} | | no prediction | | |")
            continue
        low, high, step = (float(row[name] or 0) / 1e6 for name in ("low_ns", "high_ns", "step_ns"))
        measured = mean / 1e6
        inside = "yes" if low <= measured <= high else "no"
        predicted = f"{low:.2f} to {high:.2f} ms" if low else f"at most {high:.2f} ms"
        cells = f"{step:.2f} ms | {predicted} | {measured:.2f} ms | {inside}"
        print(f"| `{slow}` | `{repaired}` | {part} | {cells} |")


if __name__ == "__main__":
    main()
