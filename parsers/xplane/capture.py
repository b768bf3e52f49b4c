"""Facts about a capture: program, versions, options, warnings, and parts that could not be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceviz.core.sanitize import without_paths
from traceviz.parsers.shared.cupti import cuda_version
from traceviz.parsers.shared.events import launch_details as details
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.xplane.decode.raw import Plane
from traceviz.parsers.xplane.decode.wire import VARINT, BrokenMessageError, read_fields
from traceviz.parsers.xplane.device import Device, EventKind
from traceviz.parsers.xplane.hosts import ENVIRONMENT, METADATA, Host, Role
from traceviz.trace.rows_to_table import rows_to_table, stated_integer

TENSORFLOW, JAX = "TensorFlow", "JAX"
_SIGNS = (
    (JAX, re.compile(r"PjitFunction\(|jit_\w+(\(|$)|pjit_|jax|\$.*\bjax\b")),
    (TENSORFLOW, re.compile(r"TFE_Py_|ExecutorState::Process|FunctionRun|EagerExecute|Iterator::|SessionRun")),
)
_VERSIONED = re.compile(r"^(?P<program>jax|jaxlib|cuda|cudnn|tensorflow|tf|libtpu|driver|cuda_driver)_version$")

_OPTIONS = {
    1: "include_dataset_ops",
    2: "host_tracer_level",
    3: "device_tracer_level",
    4: "python_tracer_level",
    5: "version",
    6: "device_type",
    7: "enable_hlo_proto",
    8: "start_timestamp_ns",
    9: "duration_ms",
}
"""Fields of ``ProfileOptions`` that are numbers; others are texts that may name paths and hosts."""
_SECRET = re.compile(r"path|dir$|directory|hostname|user|command|argv|address", re.IGNORECASE)
_DEVICE_FACTS = frozenset(
    {"gpu_device_name", "device_type_string", "device_vendor", "core_count", "clock_rate", "memory_size"}
    | {"memory_bandwidth", "compute_cap_major", "compute_cap_minor"}
)
"""Properties that are columns of table ``devices``."""

_READ_STATS = frozenset(
    {"correlation_id", "context_id", "tf_op", "hlo_op", "annotation", "hlo_module", "run_id"}
    | {"cuda_graph_id", "cuda_graph_exec_id", "cuda_graph_node_id"}
    | {"kernel_details", "memcpy_details", "Memset_details", "memset_details", "memalloc_details", "MemFree_details"}
    | {"MemAlloc_details", "MemoryResidency_details", "theoretical_occupancy_pct", "group_id", "step_name"}
    | {"occupancy_min_grid_size", "occupancy_suggested_block_size", "is_eager", "flow", "program_id"}
    | {"_ct", "_c", "_pt", "_p", "_a", "device_offset_ps", "device_duration_ps"}
)
"""Stats of device events that are read, or that repeat others."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin and time of the tables.

    Args:
        format: Identifier of the format.
        route: Reader and scanner.
        span_ns: Time from the first event to the end of the last.
        t0_unix_ns: Time of day at zero.
    """

    format: str
    route: str
    span_ns: int
    t0_unix_ns: int | None


def run(hosts: Sequence[Host], origin: Origin, notes: Notes, *, keep_private: bool) -> pa.Table:
    """Return table ``run``."""
    framework = framework_of(hosts)
    versions = {
        match["program"].replace("tf", "tensorflow"): value
        for host in hosts
        for plane in host.space.planes
        for key, value in plane.properties.items()
        if (match := _VERSIONED.match(key)) and isinstance(value, str) and value
    }
    names = sorted({name for host in hosts for name in host.space.hostnames} or {host.name for host in hosts})
    cuda = versions.get("cuda")
    number = stated_integer(cuda)
    row = {
        "format": origin.format,
        "producer": f"{framework} profiler" if framework else "XLA profiler",
        "producer_version": versions.get("jax" if framework == JAX else "tensorflow"),
        "framework": " ".join(filter(None, (framework, versions.get(framework.lower())))) if framework else None,
        "driver_version": versions.get("driver", versions.get("cuda_driver")),
        "cuda_version": cuda_version(number) if number and number >= 1000 else cuda,  # 12090 is 12.9
        "host": ", ".join(names) if keep_private else None,
        "t0_unix_ns": origin.t0_unix_ns,
        "span_ns": origin.span_ns,
        "reader": origin.route,
    }
    return rows_to_table("run", [row], notes)


def framework_of(hosts: Sequence[Host]) -> str | None:
    """Return the framework whose own names are in the capture; JAX programs may read their input with TensorFlow."""
    if any("jax_version" in plane.properties for host in hosts for plane in host.space.planes):
        return JAX
    names = [name for host in hosts for plane in host.space.planes for name in plane.names if not name.startswith("$")]
    return next((framework for framework, sign in _SIGNS if any(map(sign.match, names))), None)


def settings(hosts: Sequence[Host], notes: Notes, *, keep_private: bool) -> pa.Table:
    """Return table ``settings``: properties of the planes, and the options of the profiler."""
    rows = [
        {"process_id": host.process_id, "key": key, "value": value}
        for host in hosts
        for plane in host.space.planes
        for key, value in _settings(plane)
        if keep_private or not _SECRET.search(key)
    ]
    return rows_to_table("settings", rows, notes)


def _settings(plane: Plane) -> Iterator[tuple[str, str]]:
    prefix = "" if plane.name in (ENVIRONMENT, METADATA) or plane.name.startswith("/host:") else f"{plane.name} "
    for key, value in plane.properties.items():
        if key == "profile_options" and isinstance(value, bytes):
            yield from _options(value)
        elif key not in _DEVICE_FACTS and not isinstance(value, bytes):
            yield prefix + key, f"{value:g}" if isinstance(value, float) else str(value)


def _options(message: bytes) -> Iterator[tuple[str, str]]:
    """Yield the numbers in a serialised ``ProfileOptions``; of a damaged one, those before the damage."""
    with suppress(BrokenMessageError):
        for number, wire, value, _ in read_fields(message, 0, len(message)):
            if wire == VARINT and number in _OPTIONS:
                yield _OPTIONS[number], str(value)


def note_captures(hosts: Sequence[Host], notes: Notes) -> None:
    """Note messages of the profiler, damage, and planes that are not read, over all hosts."""
    for severity, texts in (
        ("error", (text for host in hosts for text in host.space.errors)),
        ("warning", (text for host in hosts for text in host.space.warnings)),
    ):
        for text, count in Counter(map(_without_hosts(hosts), texts)).items():
            notes.add("profiler-diagnostic", severity, f"The profiler: {text}", count)
    for damage, count in Counter((damage.where, damage.what) for host in hosts for damage in host.space.damage).items():
        notes.add("damaged", "warning", ": ".join(filter(None, damage)), count)
    if any(host.space.scanner == "protobuf" for host in hosts):
        notes.add("slow-reader", "info", SLOW)
    aggregated = sum(plane.aggregated for host in hosts for plane in host.space.planes)
    notes.add("aggregated-events", "info", AGGREGATED, aggregated)
    unknown = Counter[str]()
    for host in hosts:
        for _, plane in host.planes(Role.OTHER):
            unknown.update({plane.name: len(plane.events)} if len(plane.events) else {})
    notes.add("unknown-planes", "info", _not_read("planes", unknown), sum(unknown.values()))


AGGREGATED = "Events that stand for many executions have no time and are left out."
SLOW = (
    "Read through the protobuf library, which takes many times as long: traceviz was installed without its compiled "
    "scanner. Install it again on a machine with a C compiler."
)


def _without_hosts(hosts: Sequence[Host]) -> Callable[[str], str]:
    """Return a function that replaces the names of hosts, which are private, and paths in a text.

    Files are also named after hosts, unless renamed: if the file states its host, a plain word such as ``events`` is
    not one.
    """
    known = {name for host in hosts for name in host.space.hostnames if name}
    known |= {host.name for host in hosts if not (host.space.hostnames and host.name.isalpha())} - {""}
    listed = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    named = re.compile(rf"(?<!\w)(?:{listed or '(?!)'})(?!\w)")
    return lambda text: without_paths(named.sub("[host]", text))


def _not_read(kind: str, counts: Counter[str]) -> str:
    shown = ", ".join(f"{name or 'without a name'} ({count:,})" for name, count in counts.most_common(5))
    return f"Events of {kind} that traceviz does not read: {shown}{', ...' if len(counts) > 5 else ''}."


def note_devices(devices: Sequence[Device], notes: Notes) -> None:
    """Note lines and stats of device planes that were not read, and implausible values."""
    lines, stats, implausible = Counter[str](), Counter[str](), 0
    for device in devices:
        plane = device.plane
        counts = np.bincount(plane.events.line[device.kinds == EventKind.UNKNOWN], minlength=len(plane.lines))
        by_line = zip(plane.lines, counts.tolist(), strict=True)
        lines.update({line.name: count for line, count in by_line if count})
        work = np.isin(device.kinds, (EventKind.KERNEL, EventKind.COPY, EventKind.FILL, EventKind.GRAPH))
        counts = np.bincount(plane.stats.key[work[plane.stats.event]], minlength=len(plane.texts))
        by_key = {plane.texts[key]: int(counts[key]) for key in np.flatnonzero(counts).tolist()}
        stats.update({key: count for key, count in by_key.items() if key not in _READ_STATS})
        texts = enumerate(plane.texts)
        wrong = [place for place, text in texts if "regs:" in text and not details.is_plausible(text)]
        implausible += int(np.isin(plane.stats_of("kernel_details").value, wrong).sum())
    notes.add("unknown-lines", "info", _not_read("lines", lines), sum(lines.values()))
    notes.add("unread-stats", "info", _not_read("stats", stats).replace("Events", "Values", 1), sum(stats.values()))
    graphs = sum(device.rows(EventKind.GRAPH).size for device in devices)
    hidden = "CUDA graphs were recorded as a whole: which kernels they ran is not known."
    notes.add("graph-kernels-hidden", "warning", hidden, graphs)
    notes.add("implausible-registers", "warning", IMPLAUSIBLE, implausible)


IMPLAUSIBLE = "Kernels with numbers of registers that no GPU has: registers and static shared memory are left out."


ANNOTATED = (
    "Steps come from annotations with a step number that xprof does not take for steps: it finds none in this capture."
)


def note_events(hosts: Sequence[Host], notes: Notes) -> None:
    """Note durations below zero, and steps from more markers than xprof uses, for the basis that imitates xprof."""
    negative = sum(int((plane.events.dur_ps < 0).sum()) for host in hosts for plane in host.space.planes)
    notes.add("negative-durations", "warning", "Events that end before they start are taken as instants.", negative)
    if any(host.groups is not None and host.groups.added for host in hosts):
        from traceviz.trace.tables import ANNOTATED_STEPS_NOTE  # noqa: PLC0415 (polars takes half a second to load)

        notes.add(ANNOTATED_STEPS_NOTE, "info", ANNOTATED)
