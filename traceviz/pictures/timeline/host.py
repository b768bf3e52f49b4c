"""Lanes of threads: operators, ranges, calls of CUDA and of the operating system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from traceviz.core.arrays.nested import Codes
from traceviz.pictures.timeline.names import always
from traceviz.pictures.timeline.sources import Lanes, Making, Source, by_group, numbers, spans_of
from traceviz.pictures.timeline.spans import Seat
from traceviz.report.pictures.values import Family, LaneKind
from traceviz.trace.names.cuda_names import ApiKind, api_kind, in_words_of_hip, is_of_hip
from traceviz.trace.names.op_families import UNKNOWN, op_family, op_family_label, op_type

_LAUNCH = Family("launch_call", "Launch calls")
_SYNC = Family("sync_call", "Calls that wait")
_MEMORY = Family("memory_call", "Memory calls")
_OTHER_CALL = Family("api_call", "Other calls of the device's API")
_API: dict[ApiKind, Family] = {
    "launch": _LAUNCH,
    "synchronisation": _SYNC,
    **dict.fromkeys(("async_copy", "blocking_copy", "allocation", "pool_allocation"), _MEMORY),
}
_OS = Family("os_call", "Calls of the operating system")
_RANGE = Family("range", "Ranges")
_MODULE = Family("module", "Modules")
_CATEGORIES = {
    "step": Family("step", "Steps"),
    **dict.fromkeys(("input", "pipeline"), Family("input", "Input")),
    "op": Family("op", "Operators"),
    "transfer": Family("copy", "Transfers"),
    "compile": Family("compilation", "Compilation"),
    "python": Family("python", "Python"),
    "annotation": _RANGE,
}
_OTHER_WORK = Family("host_compute", "Other host work")
_MODULE_CALL = "nn.Module: "
"""Prefix of torch.profiler for calls of modules among Python frames."""
_OF_ONE_CALL = re.compile(r", (op_id|seq) = .*$", re.DOTALL)
_ON_THREADS = ("start_ns", "dur_ns", "process_id", "thread_id")
_KINDS: dict[str, tuple[LaneKind, str]] = {
    "nvtx": ("ranges", "ranges"),
    "host_ops": ("ops", "operators"),
    "cuda_api": ("api", "CUDA API"),
    "os_calls": ("os", "system calls"),
}


def host_sources(making: Making) -> Iterator[Source]:
    """Return one source per table, with a lane for each thread."""
    for table in _KINDS:
        if making.trace.tables.rows(table):
            yield _source(making, table)


def _source(making: Making, table: str) -> Source:
    frame = making.trace.frame(table, *_ON_THREADS)
    return Source.of(table, [frame], lambda first: _threads(making, table, frame, first))


def _threads(making: Making, table: str, frame: pl.DataFrame, first: int) -> Lanes:
    kind, words = _KINDS[table]
    if table == "cuda_api" and is_of_hip(str(making.trace.frame(table, "name")["name"][0])):
        words = in_words_of_hip(words)
    spans = spans_of(frame, _names(making, table), first)
    for (process, thread), own in by_group(spans, [numbers(frame["process_id"]), numbers(frame["thread_id"])]):
        label = f"{making.owners.thread(thread)} {words}"
        yield Seat(f"{kind}-{process}-{thread}", label, kind, process, thread), own


def _names(making: Making, table: str) -> Codes:
    if table == "host_ops":
        texts = making.trace.host_names
        pairs = zip(texts["name"], texts["category"], strict=True)
        found = [making.names.number(name, _operation(name, category)) for name, category in pairs]
        return pl.Series(found, dtype=pl.Int32).to_numpy()[making.trace.host_name_rows]
    names = making.trace.frame(table, "name")["name"]
    if table == "nvtx":
        return making.names.of_column(names, always(_RANGE), _without_number)
    return making.names.of_column(names, _api_families if table == "cuda_api" else always(_OS))


def _without_number(name: str) -> str:
    """Remove the numbers that PyTorch adds to each call of a range; otherwise no two calls would share a name."""
    return _OF_ONE_CALL.sub("", name)


def _operation(name: str, category: str) -> Family:
    """Return the family of a call; operators get the family of their computation, with the colours of its kernels."""
    if name.startswith(_MODULE_CALL):
        return _MODULE
    family = op_family(op_type(name)) if category == "op" else UNKNOWN
    return _CATEGORIES.get(category, _OTHER_WORK) if family == UNKNOWN else Family(family, op_family_label(family))


def _api_families(names: Sequence[str]) -> list[Family]:
    return [_API.get(api_kind(name), _OTHER_CALL) for name in names]
