"""Descriptions of files that no reader recognises, with advice for their owner."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from traceviz.parsers.shared.json.stream import GZIP_MAGIC, head_text
from traceviz.parsers.shared.log_folders import SUFFIXES, looks_like_logs, no_capture


def what_it_is(head: bytes, path: Path) -> tuple[str, str]:
    """Return ``(why, fix)``: a description of the content of ``path``, and advice."""
    if path.is_dir():
        entries = sorted(entry.name for entry in path.iterdir())
        if not entries:
            return "It is an empty folder.", "Name the folder that the trace was written to."
        if looks_like_logs(path):
            return no_capture(path)
        is_tables = any(name.endswith(".parquet") for name in entries)
        again = "Convert the source again: traceviz convert TRACE -o DIR."
        if "manifest.json" in entries:
            what = "Its manifest.json is damaged, or not one of traceviz."
            return what, again if is_tables else "Name a trace inside the folder."
        if is_tables:
            return "It is a folder of Parquet files without a manifest.json, and not an export of nsys either.", again
        shown = ", ".join(entries[:5]) + (", ..." if len(entries) > 5 else "")
        return f"It is a folder without a manifest.json; it holds {shown}.", "Name a trace inside the folder."
    if head.count(_REPLACED) >= _MANY and re.search(rb"[\0-\x08]", head):
        return _COPIED_AS_TEXT
    by_name = ((SUFFIXES, _NO_XPLANE), (_PERFETTO_SUFFIXES, _PERFETTO), (_STREAM_SUFFIX, _STREAM))
    named = next((answer for suffixes, answer in by_name if head and path.name.endswith(suffixes)), None)
    return named or next(answer for applies, answer in _SIGNS if applies(head))


def _is_text(head: bytes) -> bool:
    try:
        head[:4096].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head[:4096]) - 4 and b"\0" not in head[:4096]
    return b"\0" not in head[:4096]


def _has_column_names(head: bytes, *tables: tuple[bytes, ...]) -> bool:
    """Return whether an early line of a text holds all names of one of ``tables``."""
    lines = head[:4096].splitlines()[:20]
    return any(all(name in line for name in names) for line in lines for names in tables)


def _is_json(head: bytes) -> bool:
    text = head_text(head)
    return _is_text(text) and re.match(rb"\{\s*[\"}]|\[\s*[\[{\"\]\d-]", text) is not None  # [gates] starts a TOML file


_REPLACED = "\ufffd".encode()
_MANY = 8
"""A binary file holds hardly one replacement character; one that was copied as text holds many."""
_COPIED_AS_TEXT = (
    "It is a binary file that was copied as text: bytes that are no text were replaced, and are lost.",
    "Copy the file again, as binary.",
)
_NO_XPLANE = (
    "Its name says that it is a profile of TensorFlow or JAX, but its first bytes are no XSpace message.",
    "Copy the file again, or record again.",
)

_STREAM_SUFFIX = ".qdstrm"
_STREAM = (
    "It is an unfinished recording of Nsight Systems (.qdstrm), but not in a form that traceviz can import.",
    (
        "Import it with the QdstrmImporter of the version that recorded it, in its folder host-linux-x64: "
        "QdstrmImporter -i FILE.qdstrm. It writes a report (.nsys-rep or .qdrep): name that."
    ),
)
_EXPORT = "Record with torch.profiler.profile(...) as prof, and write prof.export_chrome_trace(FILE)."
_TAKES = (
    "Name a trace of nsys, nvprof, or the profiler of PyTorch, TensorFlow or JAX, a run of traceviz collect, or a "
    "folder of traceviz convert."
)


_ROCM = (
    "traceviz reads AMD devices through the frameworks: record with torch.profiler or jax.profiler.trace, which write "
    "the kernels and HIP calls of ROCm as well."
)
_PERFETTO_SUFFIXES = (".pftrace", ".perfetto-trace")
_PERFETTO = ("It is a trace of Perfetto, as rocprofv3 and system tracers write.", _ROCM)
_ROCPROF_COLUMNS = ((b"Name", b"TotalDurationNs"), (b"Kernel_Name", b"Counter_Value"))
"""Columns of statistics and of counters, which have no times of events."""


_ASCEND = "Name trace_view.json, which torch_npu.profiler writes into the folder ASCEND_PROFILER_OUTPUT."
_ASCEND_TABLES = (b"COMPUTE_TASK_INFO", b"CANN_API", b"NPU_INFO", b"AscendTask")
_ASCEND_COLUMNS = (
    (b"Computing", b"Communication(Not Overlapped)", b"Free"),
    (b"Step Id", b"Device_id", b"Model ID", b"Task ID"),
    (b"Name", b"Accelerator Core", b"Duration(us)"),
    (b"Op Name", b"OP Type", b"Task Duration(us)"),
)
_NVIDIA_SMI = (
    (b"timestamp", b"utilization.gpu"),
    (b"timestamp", b"power.draw"),
    (b"index", b"utilization.gpu"),
    (b"# gpu", b"pwr"),
    (b"| NVIDIA-SMI ",),
)
_NSYS_STATS = (
    (b"Time (%)", b"Total Time (ns)"),
    (b"Time(%)", b"Total Time (ns)"),
    (b"Total (MB)", b"Avg (MB)", b"Operation"),
    (b"Start (ns)", b"Duration (ns)", b"CorrId"),
    (b"Start (ns)", b"Duration (ns)", b"PID", b"TID"),
)


def _is_rocprof_csv(head: bytes) -> bool:
    header = head[:4096].partition(b"\n")[0]
    return b"," in header and any(all(label in header for label in labels) for labels in _ROCPROF_COLUMNS)


def _is_pickle(head: bytes) -> bool:
    return head[:1] == b"\x80" and 2 <= head[1:2][0] <= 5 if len(head) > 1 else False


_SIGNS: tuple[tuple[Callable[[bytes], bool], tuple[str, str]], ...] = (
    (lambda head: not head, ("It is an empty file.", "Record or copy it again.")),
    (
        lambda head: head.startswith(b"version https://git-lfs.github.com/spec/"),
        ("This is a git-lfs pointer, not the trace.", "Run `git lfs pull` in its repository."),
    ),
    (
        lambda head: head.startswith(b"SQLite format 3\0") and b"rocpd_" in head,
        ("It is a database of rocpd, which rocprofv3 writes.", _ROCM),
    ),
    (
        lambda head: head.startswith(b"SQLite format 3\0") and any(name in head for name in _ASCEND_TABLES),
        ("It is a database of Ascend's profiler (msprof or torch_npu).", _ASCEND),
    ),
    (
        lambda head: head.startswith(b"SQLite format 3\0"),
        (
            "It is an SQLite database, but not one that nsys exported or nvprof wrote: no strings next to events.",
            "Export the report again: nsys export --type sqlite REPORT.",
        ),
    ),
    (lambda head: head.startswith(b"PK\x03\x04"), ("It is a zip archive.", "Unpack it first.")),
    (
        # PyTorch's ExecutionTraceObserver wrote it: which operations ran, without times
        lambda head: (
            head_text(head).startswith(b"{") and b'"schema"' in head_text(head) and b'"nodes"' in head_text(head)
        ),
        ("It is an execution trace of PyTorch: it tells which operations ran, and no times.", _EXPORT),
    ),
    (
        lambda head: head_text(head).startswith(b"{") and b'"rocprofiler-sdk-' in head_text(head)[:2000],
        ("It is JSON of rocprofv3.", _ROCM),
    ),
    (
        lambda head: head_text(head).lstrip().startswith(b"{") and b'"traceviz.' in head_text(head)[:200],
        ("It is a report that traceviz saved.", "`traceviz compare` takes it; for a report, name the trace."),
    ),
    (
        lambda head: b"speedscope.app/file-format-schema" in head_text(head),
        (
            "It is a profile of speedscope: sampled stacks of a program's threads (as py-spy writes), and no devices.",
            f"Look at it on https://www.speedscope.app. {_EXPORT}",
        ),
    ),
    (
        lambda head: re.search(rb'"memoryProfile(?:PerAllocator|Snapshots)"', head_text(head)) is not None,
        (
            "It is a memory profile of TensorFlow or JAX: the memory that allocators hold over time, and nothing else.",
            "Name the .xplane.pb or .trace.json.gz of the same run: the .xplane.pb holds the same allocations.",
        ),
    ),
    (
        _is_json,
        ("It is JSON, but no trace: there is no list of events (traceEvents) in its beginning.", _EXPORT),
    ),
    (
        lambda head: head.startswith(GZIP_MAGIC) and not head_text(head),
        ("It is a gzip file, but empty, cut off or broken in its beginning.", "Copy the file again, or record again."),
    ),
    (lambda head: head.startswith(GZIP_MAGIC), ("It is a gzip file of something else.", "Unpack it first.")),
    (lambda head: head.startswith(b"PAR1"), ("It is a Parquet file.", "Name the folder that it lies in.")),
    (
        # torch.cuda.memory._dump_snapshot wrote it: a pickled dictionary of segments and histories
        lambda head: _is_pickle(head) and (b"segments" in head[:65536] or b"device_traces" in head[:65536]),
        (
            "It is a memory snapshot of PyTorch: which blocks its allocator holds, and no times of kernels.",
            f"Look at it with https://pytorch.org/memory_viz. {_EXPORT} profile_memory=True records allocations there.",
        ),
    ),
    (_is_pickle, ("It is a Python pickle, which is not opened: that would run what is in it.", _TAKES)),
    (
        lambda head: head.startswith((b"PERFILE2", b"PERFFILE")),
        (
            "It is a recording of Linux perf: samples of processors, and nothing of devices.",
            "Look at it with perf report; for devices, record with nsys or the profiler of the framework.",
        ),
    ),
    (lambda head: head.startswith(b"QDSTRM"), _STREAM),
    (
        lambda head: head.startswith(b"NVR\0"),
        (
            "It is a report of Nsight Compute (.ncu-rep): counters of single kernels, which it ran several times.",
            "Look at it with ncu-ui, or ncu --import FILE. For a trace, record with nsys profile.",
        ),
    ),
    (
        lambda head: head.startswith((b"\xff\xfe", b"\xfe\xff")) or re.match(rb"[\[{]\0|\0[\[{]", head) is not None,
        (
            "It is text in UTF-16, as PowerShell writes with >; traces are in UTF-8.",
            "Convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW.json.",
        ),
    ),
    (
        lambda head: _has_column_names(head, *_NVIDIA_SMI),
        (
            "It is output of nvidia-smi: samples of the use, power and clocks of devices, and no events.",
            "traceviz collect records such samples next to a trace. For events, record with nsys profile.",
        ),
    ),
    (
        lambda head: _has_column_names(head, *_NSYS_STATS),
        (
            "It is a table that nsys stats printed from a report: sums, or a list of one kind of event.",
            "Name the report (.nsys-rep), or the database next to it (.sqlite).",
        ),
    ),
    (
        lambda head: _has_column_names(head, *_ASCEND_COLUMNS),
        ("It is a table of Ascend's profiler (msprof or torch_npu).", _ASCEND),
    ),
    (
        lambda head: re.match(rb"(?i)\s*(?:<\?xml[^>]*>\s*)?(?:<!doctype (?:html|svg)|<html|<svg)", head) is not None,
        ("It is a page or a picture, not the trace that it shows.", _TAKES),
    ),
    (_is_rocprof_csv, ("It is a CSV file of rocprof.", _ROCM)),
    (
        lambda head: any(
            b"== " + part in head for part in (b"Device Timing ", b"Host Timing ", b"API Timing ", b"L0 Back")
        ),
        (
            "It is what Intel's unitrace prints: totals, and no events.",
            "Record the events: unitrace --chrome-kernel-logging --chrome-call-logging, and name the JSON file.",
        ),
    ),
    (_is_text, ("It is a text file.", _TAKES)),
    (lambda _: True, ("Its first bytes are those of no format that traceviz knows.", _TAKES)),
)
