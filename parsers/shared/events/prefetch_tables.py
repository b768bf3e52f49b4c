"""Large event tables are decoded before anybody asks for them: while the modules are imported that need their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from traceviz.core.process.memory import free
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.shared.events.mapping import Source
from traceviz.parsers.shared.events.prescan import keeps_of, measures, present, start_of
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.events.whole_events import raw_columns, wishes
from traceviz.parsers.shared.prefetch.queue import Ahead
from traceviz.trace import schema

_SHARE = 4
"""At most this part of the free memory is taken before somebody watches how much it becomes."""


def needed(table: str, source: Source, options: ReadOptions) -> Source:
    """``source`` without nullable columns that the caller did not ask for."""
    if table not in options.columns:
        return source
    declared, requested = schema.table(table).arrow, options.columns[table]
    kept = [c for c in source.columns if c.name in requested or not declared.field(c.name).nullable]
    return replace(source, columns=tuple(kept))


def begin(raw: RawTables, ahead: Ahead, tables: Mapping[str, tuple[Source, ...]], options: ReadOptions) -> None:
    """Begin to decode the event ``tables`` that are asked for, as far as it is known that all their rows count.

    Nothing is begun where memory is bounded: whoever reads then looks how much a table takes, before the next one.
    """
    left = free()
    if options.max_memory is not None or options.spill is not None or left is None:
        return
    room = left.more // _SHARE
    for table, sources in tables.items():
        for source in present(raw, sources) if options.wants(table) else ():
            start, available = start_of(raw, source), raw.columns(source.table)
            whole = raw.whole(source.table)
            if whole is None or keeps_of(source, start):
                continue
            own = needed(table, source, options)
            asked = wishes(own, raw_columns(own, start, available), schema.table(table).arrow, 0)
            room -= whole.begin(ahead, list(asked.values()), measures(raw, own, [*own.owner, own.device]), room)
