"""Operations of the host: operators, annotations, input stages, and their calls of the device's API."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.frames import codes, end_ns, taken
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.nested import Codes, alike
from traceviz.core.sanitize import bounded
from traceviz.pictures.flame.calls import Called, Label, Title, device_flame, host_flame
from traceviz.pictures.flame.division import Division
from traceviz.pictures.flame.folding import Bounds
from traceviz.pictures.flame.texts import api_family, operation_family, operation_group
from traceviz.report.pictures.flame import Flame


def operator_flames(trace: TraceView, time: Division, bounds: Bounds) -> Iterator[Flame | None]:
    """Draw operators on the host and on the device.

    Python frames are not operators. They have graphs of their own.
    """
    called = called_operators(trace)
    what = "Operators" if (called.launches is None or not called.launches.all()) else "Calls of the device's API"
    if called.tree.calls.height:
        yield host_flame(trace, called, Title("operators-host", f"{what}, host time", "host"), time, bounds)
    yield device_flame(trace, called, Title("operators-device", f"{what}, device time", "device"), time, bounds)


def called_operators(trace: TraceView) -> Called:
    """Return all host operations except Python frames, and the calls of the device's API."""
    number, names = trace.host_name_rows, trace.host_names
    labels = [_label(name, category) for name, category in names.iter_rows()]
    distinct = list(dict.fromkeys(labels))
    code_of = {label: code for code, label in enumerate(distinct)}
    of_name = np.array([code_of[label] for label in labels], np.int32)
    shown = (names["category"] != "python").fill_null(value=True).to_numpy()
    rows = np.flatnonzero(shown[number]) if number.size else np.empty(0, np.int64)
    calls = taken(trace.frame("host_ops", *_TIMES, "op_id"), rows).with_columns(
        pl.Series("code", of_name[number[rows]] if rows.size else np.empty(0, np.int32), pl.Int32)
    )
    api, api_labels = _api_calls(trace, len(distinct), int(calls["op_id"].max() or 0) + 1)  # type: ignore[arg-type]
    both = pl.concat([calls.select(_COLUMNS), api.select(_COLUMNS)]).with_columns(end_ns()).drop("dur_ns")
    tree = CallTree.of(both, ("thread_id", "process_id", "code"))
    code = tree.calls["code"].to_numpy()
    return Called(tree, code, (*distinct, *api_labels), launches=code >= len(distinct))


def _label(name: str, category: str) -> Label:
    shown, group = operation_group(name, category)
    return Label(shown, operation_family(name, category), group=group)


_TIMES = ("start_ns", "dur_ns", "process_id", "thread_id")
_COLUMNS = (*_TIMES, "op_id", "code")


def _api_calls(trace: TraceView, first_code: int, first_id: int) -> tuple[pl.DataFrame, tuple[Label, ...]]:
    """Return device API calls as operations, ordered after operations with the same start and end."""
    calls = trace.frame("cuda_api", *_TIMES, "name")
    group, first = _distinct(calls["name"])
    names = calls["name"].gather(first).cast(pl.String).to_list()
    ids = pl.Series("op_id", np.arange(first_id, first_id + calls.height), pl.Int64)
    code = pl.Series("code", first_code + group, pl.Int32)
    return calls.with_columns(ids, code), tuple(Label(bounded(name), api_family(name)) for name in names)


def _distinct(names: pl.Series) -> tuple[Codes, Codes]:
    return alike(codes(names))
