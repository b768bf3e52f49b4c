"""Generated traces of the benchmarks, each written by its own process and kept in its folder.

So the process that measures loads no NumPy: see :mod:`side_by_side`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parent / "sample_traces"
SMALL = SAMPLES / "synthetic" / "input_bound.sqlite"
SMALL_REPORT = SAMPLES / "nsys" / "nvtx_loop.nsys-rep"
RANGES = 1_000_000
"""NVTX ranges of the recorded report at scale 1: no GPU is needed to record them."""
_WRITE = (
    "import sys; from importlib import import_module; from pathlib import Path; "
    "import_module(sys.argv[1]).make(Path(sys.argv[2]), {number}(sys.argv[3]))"
)
_KINETO = (
    "import sys; from pathlib import Path; import kineto_read; kineto_read.made(Path(sys.argv[2]), float(sys.argv[3]))"
)
_RECORDED = "import nvtx\nfor _ in range({}):\n with nvtx.annotate('step', domain='benchmark'): pass"


def nsys_database(folder: Path, scale: float) -> Path:
    """Make a database with 3 M API calls and 1.5 M kernels at scale 1, 217 MB."""
    return _made(folder / f"big-{scale:g}.sqlite", _WRITE.format(number="float"), "big_nsys", scale)


def xplane_capture(folder: Path, scale: float) -> Path:
    """Make a capture with 3.7 M events at scale 1, 92 MB."""
    return _made(folder / f"big-{scale:g}.xplane.pb", _WRITE.format(number="float"), "big_xplane", scale)


def many_traces(folder: Path, count: int) -> Path:
    """Make a folder of different small traces of three formats."""
    return _made(folder / f"traces-{count}", _WRITE.format(number="int"), "archive_traces", count)


def kineto_trace(folder: Path, scale: float) -> Path:
    """Make a trace with 1.1 M events at scale 1, 347 MB."""
    place = _made(folder / f"kineto-{scale:g}", _KINETO, "kineto_read", scale, is_folder=True)
    return place / "made.pt.trace.json"


def _made(path: Path, code: str, module: str, size: float, *, is_folder: bool = False) -> Path:
    """Return ``path``, written unless it exists; complete or not at all."""
    if path.exists():
        return path
    begin = time.perf_counter()
    unfinished = path.with_name(f"unfinished-{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.unlink(missing_ok=True)
    if is_folder:
        unfinished.mkdir()
    command = [
        sys.executable,
        "-c",
        code,
        module,
        str(unfinished),
        f"{size:g}" if size != int(size) else str(int(size)),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(HERE)})
    unfinished.rename(path)
    print(f"made {path.name} in {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    return path


def nsys_report(folder: Path, scale: float) -> Path | None:
    """Record NVTX ranges with the installed nsys, and return the report; ``None`` without nsys.

    If ranges cannot be recorded, it is a small report of the samples.
    """
    nsys = shutil.which("nsys")
    if nsys is None:
        return None
    place = folder / f"recorded-{scale:g}"
    report = place / "ranges.nsys-rep"
    if report.exists():
        return report
    place.mkdir(exist_ok=True)
    if find_spec("nvtx") is not None:
        flags = ("--trace=nvtx", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "--output=ranges")
        program = (sys.executable, "-c", _RECORDED.format(max(1, round(RANGES * scale))))
        subprocess.run([nsys, "profile", *flags, *program], check=False, capture_output=True, cwd=place)
    if not report.exists():
        print("nsys records no ranges here: a small report of the samples stands for them", file=sys.stderr)
        shutil.copy(SMALL_REPORT, report)
    return report
