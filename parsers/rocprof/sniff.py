"""Recognition of the CSV files of rocprof by their headers."""

from __future__ import annotations

HEADERS = (
    {"Kernel_Name", "Start_Timestamp", "End_Timestamp"},
    {"Function", "Start_Timestamp", "End_Timestamp"},
    {"Direction", "Start_Timestamp", "End_Timestamp"},
    {"KernelName", "BeginNs", "EndNs"},
)
"""Column names that only these files have together: kernels, calls and copies of rocprofv3, kernels of rocprof."""


def header_names(line: bytes) -> frozenset[str]:
    """Return the column names in the first line of a CSV file."""
    return frozenset(name.strip().strip('"') for name in line.decode("utf-8", "replace").strip().split(","))
