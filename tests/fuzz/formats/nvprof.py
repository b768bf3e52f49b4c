"""Output of nvprof: databases, CSV and text."""

from __future__ import annotations

from pathlib import Path

from nsys_database import NsysDatabase
from nvprof_files import NvprofRun
from stories import STORIES

from tests.conftest import REPOSITORY
from tests.fuzz.cases import Format
from tests.fuzz.mutations import printed, sqlite_logic
from tests.fuzz.mutations.octets import SPOIL, in_file
from tests.fuzz.oracle import examine
from tests.parsers.nvprof import test_printed as texts
from tests.parsers.nvprof.database import EPOCH, write

_STEPS = 2
_CALLS = (
    '"Start","Duration","Name","Correlation_ID"\nus,us,,\n'
    '0.000000,2.866000,"cuDeviceGetCount",1\n3.5,0.952000,"cudaLaunchKernel (f(int, float) [108])",2\n'
)


def _databases(folder: Path) -> None:
    at = [EPOCH + 100 * n for n in range(4)]
    launch = {"cbid": 211, "returnValue": 0}
    write(
        folder,
        names={1: "_Z4gemmPfi", 2: "step", 3: "void relu<float>(int)"},
        name="small.nvvp",
        RUNTIME=[{**launch, "start": t, "end": t + 9, "correlationId": n} for n, t in enumerate(at, 1)],
        CONCURRENT_KERNEL=[
            {"start": t + 20, "end": t + 70, "correlationId": n, "name": 1} for n, t in enumerate(at, 1)
        ],
        MEMCPY=[{"copyKind": 1, "srcKind": 1, "dstKind": 3, "bytes": 64, "start": at[0], "end": at[0] + 5}],
        MARKER=[{"flags": 2, "timestamp": at[0], "id": 1, "name": 2}, {"flags": 4, "timestamp": at[3], "id": 1}],
        OVERHEAD=[{"overheadKind": 1 << 16, "start": at[1], "end": at[1] + 4}],
        DEVICE=[{"id": 0, "name": 3, "numMultiprocessors": 40}],
    )
    story = NsysDatabase("fuzz")
    next(one for one in STORIES if one.name == "pageable_copies").tell(story, _STEPS)
    NvprofRun(story, "fuzz", str).save(folder / "story.nvvp")


def _texts(folder: Path) -> None:
    contents = {
        "calls.csv": _CALLS,
        "gpu.csv": texts.GPU,
        "summary.csv": texts.SUMMARY,
        "summary.txt": texts.TEXT_SUMMARY,
        "trace.txt": texts.TEXT_TRACE,
    }
    for name, content in contents.items():
        (folder / name).write_text(content)
    trace = (REPOSITORY / "sample_traces" / "synthetic" / "nvprof_trace.csv").read_text().splitlines()
    (folder / "trace.csv").write_text("\n".join(trace[:40]) + "\n")


NVPROF_SQLITE = Format(
    "nvprof-sqlite", _databases, {sqlite_logic.change: 8, sqlite_logic.spoil_page: 1, SPOIL: 1}, examine
)
NVPROF_TEXT = Format("nvprof-text", _texts, {in_file(printed.change): 8, SPOIL: 1}, examine)
