"""All formats, by name."""

from __future__ import annotations

from tests.fuzz.cases import Format
from tests.fuzz.formats.archive import ARCHIVE
from tests.fuzz.formats.kineto import KINETO, KINETO_GZ
from tests.fuzz.formats.nsys import NSYS_PARQUET, NSYS_SQLITE
from tests.fuzz.formats.nvprof import NVPROF_SQLITE, NVPROF_TEXT
from tests.fuzz.formats.ours import RUN_FOLDER, SAVED_REPORT, STACKS, TRACE_FOLDER
from tests.fuzz.formats.rocprof import ROCPROF_CSV, ROCPROF_JSON, ROCPROF_SQLITE
from tests.fuzz.formats.tf_trace import TF_TRACE
from tests.fuzz.formats.xplane import XPLANE, XPLANE_GZ

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        ARCHIVE,
        KINETO,
        KINETO_GZ,
        NSYS_PARQUET,
        NSYS_SQLITE,
        NVPROF_SQLITE,
        NVPROF_TEXT,
        ROCPROF_CSV,
        ROCPROF_JSON,
        ROCPROF_SQLITE,
        RUN_FOLDER,
        SAVED_REPORT,
        STACKS,
        TF_TRACE,
        TRACE_FOLDER,
        XPLANE,
        XPLANE_GZ,
    )
}
