"""Parts of an Nsight Systems database that are kept, declared as data. Everything not named here is removed.

Numbers are kept, except those that identify hardware. A text is kept only if its column is listed, and then it is
cleaned. A row of a key-value table is kept only if its key is listed or its value is a plain number. A string is kept
only if a listed column refers to it. New tables and columns of later versions of Nsight Systems are thus private until
they are listed.
"""

from __future__ import annotations

import re
from enum import Enum, auto


class Treatment(Enum):
    """Treatment of the values of a column."""

    NUMBER = auto()
    """Numbers are kept. A text, which does not belong there, is removed."""
    CLEAN = auto()
    """Texts are kept without secrets and private paths."""
    MESSAGE = auto()
    """As ``CLEAN``, and all absolute paths are shortened."""
    PROGRAM = auto()
    """Only the base name is kept."""
    METRICS = auto()
    """Numeric members of a JSON object are kept. They may be written as strings."""
    IDENTITY = auto()
    """Values that identify hardware: numbers are renumbered, texts removed."""


DROPPED_TABLES = {
    "ProcessStreams": "captured output streams",
    "ANALYSIS_FILE": "captured files",
}
"""Tables whose rows are all removed, with a noun for their rows."""

SYSTEM_WIDE_TABLES = {
    "PROCESSES": ("globalPid", "processes outside the profiled tree"),
    "ThreadNames": ("globalTid", "threads outside the profiled tree"),
    "SCHED_EVENTS": ("globalTid", "scheduling events of other processes"),
    "COMPOSITE_EVENTS": ("globalTid", "samples of other processes"),
    "GPU_CONTEXT_SWITCH_EVENTS": ("globalPid", "context switches of other processes"),
    "FECS_EVENTS": ("globalPid", "context switches of other processes"),
}
"""Tables that may describe the whole machine, with the column of a row's owner and a noun for their rows."""

OWNER_TABLES = re.compile(
    r"CUPTI_ACTIVITY_|CUDA_|NVTX_EVENTS$|OSRT_API$|PROFILER_OVERHEAD$|MPI_|UCP_|OPENMP_|OPENACC_|CUDNN_|CUBLAS_|OPENGL_"
    r"|VULKAN_|NVVIDEO_|NVMEDIA_|KHR_DEBUG_"
)
"""Tables with events of the profiled program."""

_TEXTS: dict[str, dict[str, Treatment]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": {"tensorSizeMinusOneElements": Treatment.CLEAN},
    "DIAGNOSTIC_EVENT": {"text": Treatment.MESSAGE},
    "EXPORT_META_DATA": {"name": Treatment.CLEAN, "value": Treatment.MESSAGE},
    "GENERIC_EVENTS": {"data": Treatment.METRICS},
    "GENERIC_EVENT_TYPES": {"data": Treatment.CLEAN},
    "META_DATA_CAPTURE": {"name": Treatment.CLEAN, "value": Treatment.MESSAGE},
    "META_DATA_EXPORT": {"name": Treatment.CLEAN, "value": Treatment.MESSAGE},
    "NVTX_EVENTS": {"text": Treatment.CLEAN, "jsonText": Treatment.CLEAN},
    "NVTX_PAYLOAD_SCHEMAS": {"name": Treatment.CLEAN},
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": {"name": Treatment.CLEAN, "description": Treatment.CLEAN},
    "NVTX_PAYLOAD_ENUM_ENTRIES": {"name": Treatment.CLEAN},
    "PROCESSES": {"name": Treatment.PROGRAM},
    "StringIds": {"value": Treatment.CLEAN},
    "TARGET_INFO_GPU": {"name": Treatment.CLEAN, "chipName": Treatment.CLEAN, "busLocation": Treatment.CLEAN},
    "TARGET_INFO_GPU_METRICS": {
        "typeName": Treatment.CLEAN,
        "sourceId": Treatment.CLEAN,
        "metricName": Treatment.CLEAN,
        "metricDescription": Treatment.CLEAN,
    },
    "TARGET_INFO_SESSION_START_TIME": {"utcTime": Treatment.CLEAN},
    "TARGET_INFO_SYSTEM_ENV": {"name": Treatment.CLEAN, "value": Treatment.MESSAGE},
    "UnwindMethodType": {"name": Treatment.CLEAN},
}

KEY_VALUE_TABLES = ("META_DATA_CAPTURE", "META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_SYSTEM_ENV")
"""Tables of (name, value) whose rows are filtered by :func:`keeps_fact`."""

_IDENTITY_COLUMN = re.compile(
    r"(?:.*_)?(?:guid|uuid|luid|serial|serialnumber|mac|macaddress)$|.*(?:Guid|Uuid)$", re.IGNORECASE
)

_KEPT_FACTS = frozenset(
    {
        "CAPTURE_EVENT_TYPE",
        "COLLECTION_MODE",
        "CUDA_TRACE_SCOPE",
        "CpuArchitecture",
        "CpuDescription",
        "CudaDriverVersion",
        "DEVICE_TYPE",
        "EXPORT_ARCH",
        "EXPORT_PLATFORM",
        "EXPORT_PRODUCT_DATE",
        "EXPORT_PRODUCT_NAME",
        "EXPORT_PRODUCT_VERSION",
        "EXPORT_SCHEMA_VERSION",
        "EXPORT_SCHEMA_VERSION_CKSUM",
        "HOW_TO_ATTACH",
        "HardwarePlatform",
        "MODE",
        "NvDriverVersion",
        "OsDescription",
        "START_TRIGGER",
        "STOP_TRIGGER",
        "SoftwarePlatform",
        "Supported64BitABIs",
        "SupportedABIs",
    }
)
_PRIVATE_FACT = re.compile(
    r"ENVIRON|ARGUMENT|COMMAND|HOST|USER|UUID|SESSION|SERIAL|ADDRESS|PATH|_DIR|FILE|PACKAGE|NAME$", re.IGNORECASE
)
_PLAIN_VALUE = re.compile(rb"(?:[+-]?\d{0,18}(?:\.\d{1,17})?|true|false)(?: sec)?")

NAME_REFERENCES = frozenset(
    {
        "demangledName",
        "funcId",
        "jsonTextId",
        "kernelNameId",
        "mangledName",
        "module",
        "nameId",
        "shortName",
        "symbol",
        "textId",
        "varNameId",
    }
)
"""Columns whose numbers refer to kept strings, in any table (see :func:`refers_to_name`)."""

VOCABULARY_REFERENCES = frozenset({"demangledName", "shortName", "mangledName"})
"""Subset of :data:`NAME_REFERENCES` that refers to names of kernels."""

VOCABULARY_TABLES = frozenset({"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER", "OSRT_API"})
"""Tables whose ``nameId`` is the name of a function."""


def treatment(table: str, column: str) -> Treatment:
    """Return the treatment of the values of ``table.column``."""
    listed = _TEXTS.get(table, {}).get(column)
    if listed is not None:
        return listed
    if _IDENTITY_COLUMN.match(column):
        return Treatment.IDENTITY
    return Treatment.CLEAN if table.startswith("ENUM_") else Treatment.NUMBER


def refers_to_name(table: str, column: str) -> bool:
    """Return whether the numbers in ``table.column`` are ids of kept strings."""
    if table in DROPPED_TABLES:
        return False
    return column in NAME_REFERENCES or (table, column) == ("CUDA_GPU_MEMORY_USAGE_EVENTS", "name")


def is_vocabulary(table: str, column: str) -> bool:
    """Return whether the strings that ``table.column`` refers to are names of kernels or functions."""
    return column in VOCABULARY_REFERENCES or (table in VOCABULARY_TABLES and column == "nameId")


def keeps_fact(name: bytes, value: bytes) -> bool:
    """Return whether a row of a key-value table is kept. Prefixes such as ``PROCESS_0:`` are ignored."""
    key = name.decode("utf-8", "replace").rpartition(":")[2]
    if key in _KEPT_FACTS:
        return True
    return _PRIVATE_FACT.search(key) is None and _PLAIN_VALUE.fullmatch(value) is not None
