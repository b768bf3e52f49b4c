"""Display names of devices."""

from __future__ import annotations

from collections import Counter

from traceviz.analyses.derived.device.rank_names import rank_numbers
from traceviz.analyses.derived.view import TraceView


def device_names(trace: TraceView) -> dict[int, str]:
    """Return a display name of every device in the trace, by ``device_id``: kind, ordinal and product.

    If devices of several hosts or processes would have the same name, the rank that uses them is added.
    """
    names = {}
    for row in trace.tables.arrow("devices").to_pylist():
        number = row["ordinal"] if row["ordinal"] is not None else row["device_id"]
        product = f" {row['name']}" if row["name"] else ""
        names[int(row["device_id"])] = f"{str(row['kind']).upper()} {number}{product}"
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    if shared:
        ranks = rank_numbers(trace)
        users = {device: ranks[process] for process, device in reversed(trace.owners)}
        names |= {device: f"rank {users[device]} {names[device]}" for device in users if names.get(device) in shared}
    return {**{device: f"device {device}" for device in trace.device_busy}, **names}
