"""Columns of the catalogue."""

from __future__ import annotations

import pyarrow as pa

from traceviz.gates.metrics import METRICS, Metric
from traceviz.trace.schema import Column

FINDING = pa.struct(
    [
        ("code", pa.string()),
        ("name", pa.string()),
        ("severity", pa.string()),
        ("share", pa.float64()),
        ("stake_ns", pa.int64()),
    ]
)

_TEXT, _COUNT, _SHARE = pa.string(), pa.int64(), pa.float64()
_TYPES = {"ns": _COUNT, "bytes": _COUNT, "count": _COUNT}


def _figure(metric: Metric) -> Column:
    """Return the column of a metric that budgets use, too."""
    unit = metric.unit or ""
    return Column(metric.name, _TYPES.get(unit, _SHARE), metric.meaning.capitalize(), unit, nullable=True)


COLUMNS: tuple[Column, ...] = (
    Column("trace_id", _TEXT, "First 16 hexadecimal digits of the SHA-256 of the source: the same bytes, the same id"),
    Column("rank", _COUNT, "Rank within the trace", nullable=True),
    Column("state", _TEXT, "`ready`: it can be queried; `quarantined`: it could not be read; or `removed`"),
    Column("error", _TEXT, "Why it was quarantined, or removed by `verify --repair`", nullable=True),
    Column("source", _TEXT, "Name of the file or folder that was added"),
    Column("source_sha256", _TEXT, "SHA-256 of the source"),
    Column("source_bytes", _COUNT, "Size of the source", "bytes", nullable=True),
    Column("format", _TEXT, "Format of the source", nullable=True),
    Column("producer", _TEXT, "Profiler that wrote it", nullable=True),
    Column("producer_version", _TEXT, "Its version", nullable=True),
    Column("framework", _TEXT, "Framework of the program", nullable=True),
    Column("framework_version", _TEXT, "Its version, where the trace states it", nullable=True),
    Column("gpu", _TEXT, "Model of the devices", nullable=True),
    Column("devices", _COUNT, "Devices that did work", nullable=True),
    Column("job", _TEXT, "Job whose rank it is", nullable=True),
    Column("tags", pa.map_(pa.string(), pa.string()), "Tags of the run", nullable=True),
    Column("recorded_ns", _COUNT, "When the recording began, Unix time", "ns", nullable=True),
    Column("added_ns", _COUNT, "When it was added first, Unix time", "ns"),
    Column("changed_ns", _COUNT, "When this row was written, Unix time; the newest counts", "ns"),
    Column("traceviz_version", _TEXT, "Version that converted and analysed it"),
    Column("private", pa.bool_(), "Whether private data was kept (`--keep-private`)", nullable=True),
    Column("span_ns", _COUNT, "Time that was recorded", "ns", nullable=True),
    Column("steps", _COUNT, "Steady steps", nullable=True),
    Column(
        "verdict",
        _TEXT,
        "Verdict of its report: `highly input-bound`, `not input-bound`, `cannot judge` ...",
        nullable=True,
    ),
    Column("sentence", _TEXT, "First sentence of its report", nullable=True),
    Column(
        "cause",
        _TEXT,
        "What leads that sentence: `input`, `host`, `launch-bound-kernels` ...; `healthy` where nothing takes long",
        nullable=True,
    ),
    *(_figure(metric) for metric in METRICS if not metric.comparing and metric.name != "findings"),
    Column(
        "launch_bound",
        _SHARE,
        "Time at stake by late launches, as a share of the judged time; 0 where it is no finding",
        "ratio",
        nullable=True,
    ),
    Column("exposed_api_ns", _COUNT, "CUDA API time while the device idled", "ns", nullable=True),
    Column("findings", pa.list_(FINDING), "Findings of its report, with the time at stake of a rank", nullable=True),
)
"""All columns, in order."""
CATALOGUE = pa.schema([pa.field(column.name, column.type, column.nullable) for column in COLUMNS])
"""The columns as an Arrow schema."""
