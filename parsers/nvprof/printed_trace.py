"""Rows of ``--print-gpu-trace`` and ``--print-api-trace`` as event tables of the contract.

The columns show the kind of a row. A row with a grid is a kernel. A name in brackets means a copy, a fill or an event
of unified memory. Otherwise, a row with the name of a CUDA function is an API call.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc_csv

from traceviz.parsers.nvprof.demangle import Demangler
from traceviz.parsers.nvprof.printed_text import COUNTS, ROW, SIZES, TIMES, Section
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.columns import recoded, table
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.plausible import LONGEST_NS, Window, note_durations, note_times, plausible_durations

_QUANTITY = r"^\s*(?P<number>[0-9]+(?:\.[0-9]*)?)\s*(?P<unit>[A-Za-z]*)\s*$"
_LARGEST = 2.0**62


def parse_quantities(values: Array, factors: Mapping[str, float], unit: str = "") -> Array:
    """Return printed ``values`` as whole numbers of the base unit; null for other texts.

    Text has the unit behind each number, ``133.81ms``; CSV has a row of units above the numbers.

    Six decimals of milliseconds are exact to the nanosecond, and of kilobytes to the byte; larger units are exact only
    to their printed digits. The product itself is exact below 2**53.

    Args:
        values: Strings.
        factors: The units that may follow a number, with the base units in each.
        unit: The unit of numbers without one.
    """
    parts = pc.extract_regex(values, _QUANTITY)
    number, stated = (pc.struct_field(parts, [index]) for index in (0, 1))
    of_unit = pa.array([factors.get(unit or "", np.nan), *factors.values()])
    place = pc.fill_null(pc.index_in(stated, value_set=pa.array(list(factors), pa.string())), -1)
    known = of_unit.take(pc.if_else(pc.equal(stated, ""), 0, pc.add(place, 1)))
    foreign = pc.and_(pc.not_equal(stated, ""), pc.equal(place, -1))
    product = pc.multiply(pc.cast(number, pa.float64()), known)
    usable = pc.and_(pc.less(product, _LARGEST), pc.invert(foreign))  # comparisons with "not a number" are false
    return pc.cast(pc.round(pc.if_else(usable, product, pa.scalar(None, pa.float64()))), pa.int64())


_DEVICE = re.compile(r"^(?P<name>.*\S)\s*\((?P<ordinal>\d{1,4})\)$")
_TRIPLE = r"^\((?P<x>\d+) (?P<y>\d+) (?P<z>\d+)\)$"
_KINDS = {
    "HtoD": "h2d",
    "HtoA": "h2d",
    "DtoH": "d2h",
    "AtoH": "d2h",
    "HtoH": "h2h",
    "PtoP": "p2p",
    "DtoD": "d2d",
    "AtoA": "d2d",
    "AtoD": "d2d",
    "DtoA": "d2d",
}
_COPY = r"^\[CUDA memcpy (?P<kind>\w+)\]"
_MIGRATION = r"^\[Unified Memory Memcpy (?P<kind>\w+)\]"
_BETWEEN = r"^\[Unified Memory (?:page|remote)"
"""Names of rows about pages of unified memory that several processors use."""
_CORRELATION = r"\[(?P<id>\d{1,18})\]\)?$"
_LAUNCHED = r" \(.*$"  # cudaLaunchKernel (kernel(float*) [128])
_NUMBERED = r" \[\d+\]$"
_INT32_MAX = 2**31 - 1

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Device:
    """A device as it is printed, ``TITAN Xp (0)``: product and, since CUDA 5, its number."""

    name: str
    ordinal: int | None

    @classmethod
    def of(cls, printed: str) -> Device:
        """Return the device with this printed name."""
        match = _DEVICE.match(printed)
        return cls(match["name"], int(match["ordinal"])) if match else cls(printed, None)


@dataclass(frozen=True, slots=True, eq=False)
class TraceRows:
    """The rows of one section, as columns.

    Args:
        section: The section.
        table: Its rows, columns of strings.
        starts: Starts in nanoseconds, on nvprof's clock.
        durations: Durations in nanoseconds; null if none is printed.
        damaged: Number of rows that could not be read.
    """

    section: Section
    table: pa.Table
    starts: Array
    durations: Array
    damaged: int

    @classmethod
    def of(cls, section: Section) -> TraceRows:
        """Read the rows of ``section``; those without a start are damaged."""
        lines: Array = pa.array(section.body.split(b"\n"), pa.binary())
        lines = lines.filter(pc.match_substring_regex(lines, ROW["trace", section.is_csv]))
        try:
            lines = lines.cast(pa.string())
        except pa.ArrowInvalid:
            lines = pa.array([line.decode("utf-8", "replace") for line in lines.to_pylist()])
        lines = pc.utf8_trim_whitespace(lines)
        table, damaged = _from_csv(section, lines) if section.is_csv else _from_text(section, lines)
        starts = parse_quantities(_column(table, "Start"), TIMES, section.unit("Start"))
        timed = starts.is_valid()
        kept = table.filter(timed)
        durations = parse_quantities(_column(kept, "Duration"), TIMES, section.unit("Duration"))
        return cls(section, kept, starts.filter(timed), durations, damaged + table.num_rows - kept.num_rows)

    def plausible(self, window: Window | None, notes: Notes) -> TraceRows:
        """Return the rows at plausible times; impossible durations become null."""
        longest = pc.max(self.durations).as_py()
        if window is None and (longest is None or longest <= LONGEST_NS):
            return self
        starts = self.starts.to_numpy()
        inside = window.has(starts) if window is not None else np.ones(starts.size, np.bool_)
        kept = _rows_at(self, inside)
        too_long = kept.durations.filter(pc.greater(kept.durations, LONGEST_NS))
        note_times(notes, "events", starts[~inside])
        note_durations(notes, "events", too_long.to_numpy())
        return replace(kept, durations=plausible_durations(kept.durations), damaged=self.damaged)

    @property
    def has_devices(self) -> bool:
        """True if rows may be work of a device."""
        return "Device" in self.section.labels

    def devices(self) -> list[str]:
        """Return printed devices. Rows on pages that move between processors name several: ``CPU, TITAN Xp (``."""
        printed = _column(self.table, "Device").filter(pa.array(~_matches(_column(self.table, "Name"), _BETWEEN)))
        return sorted({name for name in pc.unique(printed).to_pylist() if name})

    def bounds(self) -> tuple[int, int] | None:
        """Return first start and last end; ``None`` without rows."""
        if not len(self.starts):
            return None
        ends = pc.add(self.starts, pc.fill_null(self.durations, 0))
        return pc.min(self.starts).as_py(), pc.max(ends).as_py()


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Destination of the rows of one section.

    Args:
        zero_ns: Time that is zero on the trace's clock.
        process: Surrogate id of the process, and of the one thread that shows all its calls.
        devices: Surrogate ids of devices as they are printed.
    """

    zero_ns: int
    process: int
    devices: Mapping[str, int]


@dataclass(slots=True)
class Tables:
    """Collects the parts of event tables."""

    parts: dict[str, list[pa.Table]] = field(default_factory=dict)

    def add(self, name: str, columns: Mapping[str, Array]) -> None:
        """Add rows; columns that are missing become null."""
        self.parts.setdefault(name, []).append(table(name, columns))

    def table(self, name: str) -> pa.Table:
        """Return all parts of the table ``name`` together."""
        empty = schema.table(name).empty()
        return pa.concat_tables([empty, *self.parts.get(name, [])]).unify_dictionaries()


def sort_rows(rows: TraceRows, place: Place, demangler: Demangler, tables: Tables, notes: Notes) -> None:
    """Add the rows of a section to the event tables; note the rows that belong to none."""
    names = _column(rows.table, "Name")
    is_kernel = _not_empty(rows.table, "Grid X") | _not_empty(rows.table, "Grid Size")
    is_copy, is_fill = _matches(names, _COPY), _matches(names, r"^\[CUDA memset\]")
    is_migration = _matches(names, _MIGRATION)
    on_device = _not_empty(rows.table, "Device")
    is_call = _matches(names, r"^cu[A-Z_a-z]\w*(?: \(|$| \[)") & ~is_kernel & ~on_device
    work = (
        ("kernels", is_kernel, partial(_kernels, demangler)),
        ("memcpy", is_copy, _copies),
        ("memset", is_fill, _fills),
        ("memcpy", is_migration, _migrations),
    )
    for name, mask, columns_of in work if rows.has_devices else ():
        part = _rows_at(rows, mask & on_device)
        tables.add(name, {**_times(part, place), **_on_device(part, place), **columns_of(part)})
    if is_call.any() or not rows.has_devices:
        part = _rows_at(rows, is_call)
        functions = pc.replace_substring_regex(_column(part.table, "Name"), f"{_LAUNCHED}|{_NUMBERED}", "")
        calls = {
            "thread_id": pa.array(np.full(len(part.starts), place.process, np.int32)),
            "name": functions.dictionary_encode(),
            "domain": pc.if_else(pc.starts_with(functions, "cuda"), "runtime", "driver").dictionary_encode(),
        }
        tables.add("cuda_api", {**_times(part, place), **calls})
    taken = (is_kernel | is_copy | is_fill | is_migration) & on_device | is_call
    faults = _matches(names, r"^\[Unified Memory .*(?:fault|[Tt]hrash|[Tt]hrottl)") & ~taken
    notes.add("unified-memory", "info", "Rows of page faults and the like of unified memory.", int(faults.sum()))
    ranges = _matches(names, r"^\[(?:Range|Marker)") & ~taken
    message = "NVTX ranges and marks are printed without their threads and were left out: record with nvprof -o FILE."
    notes.add("ranges-left-out", "info", message, int(ranges.sum()))
    unknown = ~(taken | faults | ranges)
    notes.add(
        "row-unknown", "warning", "Rows that are no kind of event that traceviz knows, left out.", int(unknown.sum())
    )


def _rows_at(rows: TraceRows, flags: Flags) -> TraceRows:
    mask = pa.array(flags)
    table = rows.table.filter(mask)
    return TraceRows(rows.section, table, rows.starts.filter(mask), rows.durations.filter(mask), 0)


def _times(rows: TraceRows, place: Place) -> dict[str, Array]:
    stated = parse_quantities(_column(rows.table, "Correlation_ID"), COUNTS)
    shown = pc.struct_field(pc.extract_regex(_column(rows.table, "Name"), _CORRELATION), [0])
    correlations = pc.coalesce(stated, pc.cast(shown, pa.int64()))
    return {
        "start_ns": pc.subtract(rows.starts, place.zero_ns),
        "dur_ns": rows.durations,
        "process_id": pa.array(np.full(len(rows.starts), place.process, np.int32)),
        "correlation_id": correlations,
    }


def _on_device(rows: TraceRows, place: Place) -> dict[str, Array]:
    printed = _column(rows.table, "Device")
    positions = pc.index_in(printed, value_set=pa.array(list(place.devices), pa.string()))
    return {
        "device_id": pa.array(list(place.devices.values()), pa.int16()).take(positions),
        "stream": parse_quantities(_column(rows.table, "Stream"), COUNTS),
        "context_id": _narrow(parse_quantities(_column(rows.table, "Context"), COUNTS)),
    }


def _kernels(demangler: Demangler, rows: TraceRows) -> dict[str, Array]:
    table, section = rows.table, rows.section
    names = pc.replace_substring_regex(_column(table, "Name"), _NUMBERED, "").dictionary_encode()
    sizes = {
        "static_shared_bytes": _first(table, ("Static SMem", "SSMem*")),
        "dynamic_shared_bytes": _first(table, ("Dynamic SMem", "DSMem*")),
    }
    return {
        "name": recoded(demangler.demangled(names.dictionary.to_pylist()), names.indices),
        **_extent(table, "Grid"),
        **_extent(table, "Block"),
        "registers_per_thread": _narrow(
            parse_quantities(_column(table, _first(table, ("Registers Per Thread", "Regs*"))), COUNTS)
        ),
        **{
            name: _narrow(parse_quantities(_column(table, label), SIZES, section.unit(label)))
            for name, label in sizes.items()
        },
    }


def _extent(table: pa.Table, label: str) -> dict[str, Array]:
    """Return extents from three columns ``Grid X`` in CSV, or one ``Grid Size`` of the form ``(20 10 1)`` in text."""
    if f"{label} Size" in table.column_names:
        triples = pc.extract_regex(_column(table, f"{label} Size"), _TRIPLE)
        parts = [pc.struct_field(triples, [index]) for index in range(3)]
    else:
        parts = [_column(table, f"{label} {axis}") for axis in "XYZ"]
    return {
        f"{label.lower()}_{axis}": _narrow(parse_quantities(part, COUNTS))
        for axis, part in zip("xyz", parts, strict=True)
    }


def _copies(rows: TraceRows) -> dict[str, Array]:
    return {
        "kind": _words(rows, _COPY),
        "src_memory": _memory(rows, "SrcMemType"),
        "dst_memory": _memory(rows, "DstMemType"),
        "bytes": parse_quantities(_column(rows.table, "Size"), SIZES, rows.section.unit("Size")),
    }


def _migrations(rows: TraceRows) -> dict[str, Array]:
    managed = pa.array(["managed"] * len(rows.starts), pa.string()).dictionary_encode()
    size = parse_quantities(_column(rows.table, "Unified Memory"), SIZES, rows.section.unit("Unified Memory") or "B")
    return {"kind": _words(rows, _MIGRATION), "src_memory": managed, "dst_memory": managed, "bytes": size}


def _fills(rows: TraceRows) -> dict[str, Array]:
    size = parse_quantities(_column(rows.table, "Size"), SIZES, rows.section.unit("Size"))
    return {"memory": _memory(rows, "SrcMemType"), "bytes": size}


def _words(rows: TraceRows, pattern: str) -> Array:
    """Return kinds of copies from the names of rows."""
    kinds = pc.struct_field(pc.extract_regex(_column(rows.table, "Name"), pattern), [0]).dictionary_encode()
    return recoded([_KINDS.get(kind, "unknown") for kind in kinds.dictionary.to_pylist()], kinds.indices)


def _memory(rows: TraceRows, label: str) -> Array:
    printed = _column(rows.table, label).dictionary_encode()
    kinds = [str(kind).lower() for kind in printed.dictionary.to_pylist()]
    return recoded([kind if kind in schema.MEMORY_KINDS else "unknown" for kind in kinds], printed.indices)


def _column(table: pa.Table, label: str) -> Array:
    """Return a column of strings in one piece; empty strings if the section does not have it."""
    if label in table.column_names:
        return table[label].combine_chunks()
    return pa.repeat(pa.scalar("", pa.string()), table.num_rows)


def _first(table: pa.Table, labels: tuple[str, ...]) -> str:
    return next((label for label in labels if label in table.column_names), labels[0])


def _not_empty(table: pa.Table, label: str) -> Flags:
    flags: Flags = pc.not_equal(_column(table, label), "").to_numpy(zero_copy_only=False)
    return flags


def _matches(names: Array, pattern: str) -> Flags:
    flags: Flags = pc.match_substring_regex(names, pattern).to_numpy(zero_copy_only=False)
    return flags


def _narrow(values: Array) -> Array:
    """Return numbers of 32 bits; null for larger ones."""
    fits = pc.less_equal(values, _INT32_MAX)
    return pc.cast(pc.if_else(fits, values, pa.scalar(None, pa.int64())), pa.int32())


def _from_csv(section: Section, lines: Array) -> tuple[pa.Table, int]:
    empty = pa.schema([(label, pa.string()) for label in section.labels]).empty_table()
    if not len(lines):
        return empty, 0
    text = "\n".join(lines.to_pylist()).encode()
    damaged = 0

    def skip(_: pc_csv.InvalidRow) -> Literal["skip"]:
        nonlocal damaged
        damaged += 1
        return "skip"

    table = pc_csv.read_csv(
        io.BytesIO(text),
        pc_csv.ReadOptions(
            column_names=list(section.labels), block_size=max(len(text) + 1, 1 << 16), use_threads=False
        ),
        pc_csv.ParseOptions(invalid_row_handler=skip),
        pc_csv.ConvertOptions(column_types=dict.fromkeys(section.labels, pa.string()), strings_can_be_null=False),
    )
    return table, damaged


def _from_text(section: Section, lines: Array) -> tuple[pa.Table, int]:
    """Return rows and damaged rows. Columns are at least two spaces apart; the name is last and may contain some."""
    cells = pc.split_pattern_regex(lines, r"\s{2,}", max_splits=len(section.labels) - 1)
    whole = pc.equal(pc.list_value_length(cells), len(section.labels))
    rows = cells.filter(whole)
    arrays = [pc.list_element(rows, index) for index in range(len(section.labels))]
    plain = [pc.if_else(pc.equal(values, "-"), "", values) for values in arrays]
    return pa.table(plain, names=list(section.labels)), len(cells) - len(rows)
