"""Catalogues made for a purpose: rows with only the facts that a test needs, and archives of a few samples."""

import tempfile
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa

from traceviz import api
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.catalogue.rows import Origin, ready_rows, table_of
from traceviz.archive.storage import layout
from traceviz.render.json import dumps
from traceviz.trace.tables import load, write_tables

DAY_NS = 86_400_000_000_000
START_NS = 1_767_225_600_000_000_000
"""2026-01-01 in UTC."""
KNOWN = {
    "state": "ready",
    "source": "run.sqlite",
    "source_sha256": "0" * 64,
    "added_ns": START_NS,
    "changed_ns": START_NS,
    "traceviz_version": "1.0",
}


def catalogue_of(*rows):
    """Return rows of a catalogue, each a trace of its own unless it states an id."""
    known = [{**KNOWN, "trace_id": f"{number:016x}", **row} for number, row in enumerate(rows)]
    frame = pl.from_arrow(table_of(known))
    assert isinstance(frame, pl.DataFrame)
    return frame


def nightly(values, name="step_median", **others):
    """Return a row a night with these values of a figure."""
    kind = int if pa.types.is_integer(CATALOGUE.field(name).type) else float
    return [
        {name: kind(value), "recorded_ns": START_NS + night * DAY_NS, **others} for night, value in enumerate(values)
    ]


@cache
def read_and_analyse(path):
    """Return the tables of a trace, and the report on them as they are stored. Each trace is analysed once."""
    read = api.open_trace(path)
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), ((name, read.arrow(name)) for name in read), {})
        return read, api.analyze(load(Path(folder)))


def archive_of(store, paths, **facts):
    """Return an archive of traces, with these facts about each in the catalogue; ids count from 1."""
    layout.create(store)
    tables = []
    for number, path in enumerate(paths, 1):
        trace_id = f"{number:016x}"
        read, report = read_and_analyse(path)
        with store.new_folder(*layout.trace_parts("kineto", trace_id)) as folder:
            write_tables(folder, ((name, read.arrow(name)) for name in read), {})
            read = load(folder)
            origin = Origin(trace_id, "0" * 64, 1, path.name, path.name, START_NS, "1.0", {}, facts.get("job"))
            (folder / layout.REPORT).write_text(dumps(report))
            tables.append(ready_rows(origin, read, report, "kineto", {}))
    catalogue.append(store, pa.concat_tables(tables))
    return catalogue.read(store)
