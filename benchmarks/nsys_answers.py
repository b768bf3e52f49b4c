"""Total time per CUDA API function, as traceviz and as NVIDIA's own `nsys stats` compute it."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path


def traceviz(python: str = sys.executable) -> str:
    """Return the command ``traceviz`` next to a Python."""
    return str(Path(python).with_name("traceviz"))


def nsys_stats(trace: Path, *, everything: bool = False) -> tuple[str, ...] | None:
    """Return the `nsys stats` command: the API summary, or all default reports; ``None`` without an installed nsys.

    The summary was renamed in 2023.
    """
    nsys = shutil.which("nsys")
    if nsys is None:
        return None
    version = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout
    year = re.search(r"(\d{4})\.", version)
    report = "cudaapisum" if year and int(year[1]) < 2023 else "cuda_api_sum"
    chosen = () if everything else ("--report", report)
    return (nsys, "stats", *chosen, "--force-overwrite", "true", str(trace))


def check_same_answer(trace: Path) -> None:
    """Exit unless our totals per API equal those of nsys, to the nanosecond."""
    command = [traceviz(), "report", str(trace), "--section", "cuda_api", "--format", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    section = next(section for section in report["sections"] if section["slug"] == "cuda_api")
    grid = next(block for block in section["blocks"] if "rows" in block)
    ours = {row["name"]: row["total_ns"] for row in grid["rows"]}
    theirs = nsys_totals(trace)
    if theirs is not None and ours != theirs:
        sys.exit(f"the totals differ: traceviz {ours}, nsys {theirs}")
    beside = "equal to nsys stats" if theirs is not None else "not compared with nsys stats"
    print(f"{len(ours)} API names, {sum(ours.values()):,} ns in total, {beside}", file=sys.stderr)


def nsys_totals(trace: Path) -> dict[str, int] | None:
    """Return the total time per API name from nsys, which leaves version suffixes of five digits in the name."""
    command = nsys_stats(trace)
    if command is None:
        return None
    text = subprocess.run([*command, "--format", "csv"], capture_output=True, text=True, check=True).stdout
    lines = text.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("Time"))
    rows = csv.DictReader(io.StringIO("\n".join(line for line in lines[header:] if line)))
    return {re.sub(r"_v\d{4,}$", "", row["Name"]): int(row["Total Time (ns)"]) for row in rows}
