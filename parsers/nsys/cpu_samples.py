"""CPU samples of nsys, as tables ``stack_frames`` and ``stacks``.

nsys samples a thread only while it runs on a core. So a thread without samples for a while was off the core::

    samples    . . . . . .                . . . . .
    rows       |-- f ----|-- off a core --|-- g ---|

COMPOSITE_EVENTS has one row for each sample. SAMPLING_CALLCHAINS has its frames, the innermost at depth 0. Names and
columns are the same in all versions from 2019 to 2026.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.nsys.identity import Identity
from traceviz.parsers.nsys.mapping import CHAIN_COLUMNS, CHAINS, SAMPLE_COLUMNS, SAMPLES
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.events.columns import nullable
from traceviz.parsers.shared.events.names import look_up
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.trace import schema

Ids = npt.NDArray[np.int64]

_FLAGS = ("kernelMode", "unresolved", "specialEntry")
_FRAME = ("symbol", "module", *_FLAGS)

OFF_CORE = 4
"""A thread that is not sampled for this many times the usual interval was not running."""
DEEPEST = 200
"""Frames beyond this depth are left out."""
OFF, INTERPRETER, UNKNOWN_CODE = "off-core", "python-interpreter", "unknown-code"
"""Frames of a thread that does not run, of Python's interpreter, and of code without a name.

Frames of the interpreter do not show the Python function. Code of the kernel has no name here.
"""
_INTERPRETER = re.compile(r"^(lib)?python[\d.]*(\.so[\d.]*|\.exe|\.dll)?$")


def read_stacks(raw: RawTables, identity: Identity, zero_ns: int, last_ns: int) -> tuple[pa.Table, pa.Table]:
    """Return the tables ``stack_frames`` and ``stacks`` of the time from ``zero_ns`` to ``last_ns``."""
    samples = _whole(raw, SAMPLES, SAMPLE_COLUMNS)
    moments, ids = samples["start"], samples["id"]
    thread = pc.index_in(pa.array(samples["globalTid"]), value_set=identity.threads)
    owner = pc.fill_null(thread, -1).to_numpy().astype(np.int64)
    within = (owner >= 0) & (moments >= zero_ns) & (moments <= last_ns)
    order = np.flatnonzero(within)
    order = order[np.lexsort((moments[order], owner[order]))]
    moments, ids, owner = moments[order] - zero_ns, ids[order], owner[order]
    chains = _whole(raw, CHAINS, (*CHAIN_COLUMNS, *(name for name in _FLAGS if name in raw.columns(CHAINS))))
    nodes, frames = _tree_of_chains(raw, chains, np.unique(ids), _programs(identity))
    off = frames.num_rows - 1
    rows = _rows_of_samples(moments, owner, nodes[np.searchsorted(np.unique(ids), ids)], off)
    return frames, _stacks_table(rows, identity, off)


def _whole(raw: RawTables, table: str, columns: tuple[str, ...]) -> dict[str, Ids]:
    """Return columns of a table; null counts as 0."""
    batches = list(raw.stream(table, columns))
    return {
        name: np.concatenate([np.zeros(0, np.int64), *(pc.fill_null(batch[name], 0).to_numpy() for batch in batches)])
        for name in columns
    }


def _programs(identity: Identity) -> frozenset[str]:
    return frozenset(name for name in identity.tables["processes"]["name"].to_pylist() if name)


def _tree_of_chains(raw: RawTables, chains: dict[str, Ids], ids: Ids, programs: frozenset[str]) -> tuple[Ids, pa.Table]:
    """Return the stack of each of the sorted ``ids``, and table ``stack_frames``.

    The last two stacks are those of samples without frames, and of threads that are off a core.
    """
    keys = np.stack([chains.get(name, np.zeros(chains["id"].size, np.int64)) for name in _FRAME])
    distinct, frame = np.unique(keys, axis=1, return_inverse=True)
    described = _describe_frames(raw, distinct, programs)
    texts = sorted(set(filter(None, described)))
    code_of = {text: number for number, text in enumerate(texts)}
    codes = np.array([-1 if text is None else code_of[text] for text in described], np.int64)[frame.reshape(-1)]
    sample = np.searchsorted(ids, chains["id"])
    known = (codes >= 0) & (sample < ids.size) & (chains["stackDepth"] < DEEPEST)
    known[known] = ids[sample[known]] == chains["id"][known]
    rows = np.flatnonzero(known)
    rows = rows[np.lexsort((-chains["stackDepth"][rows], sample[rows]))]
    sample, codes = sample[rows], codes[rows]
    # Adjacent frames with one text are one: recursion, and code whose functions are not known.
    repeated = np.zeros(rows.size, bool)
    repeated[1:] = (sample[1:] == sample[:-1]) & (codes[1:] == codes[:-1])
    sample, codes = sample[~repeated], codes[~repeated]
    level = np.arange(sample.size) - np.searchsorted(sample, sample)
    leaf = np.full(ids.size, -1, np.int64)
    parents: list[Ids] = []
    functions: list[Ids] = []
    size = 0
    by_level = np.argsort(level, kind="stable")
    bounds = np.searchsorted(level[by_level], np.arange(int(level.max(initial=-1)) + 2))
    for first, last in pairwise(bounds.tolist()):
        here = by_level[first:last]
        pairs = (leaf[sample[here]] + 1) * len(texts) + codes[here]
        combined, node = np.unique(pairs, return_inverse=True)
        parents.append(combined // len(texts) - 1)
        functions.append(combined % len(texts))
        leaf[sample[here]] = size + node
        size += combined.size
    leaf[leaf < 0] = size
    parent = np.concatenate([*parents, np.array([-1, -1], np.int64)])
    said = [texts[code] for code in np.concatenate([np.zeros(0, np.int64), *functions])]
    said += [(UNKNOWN_CODE, "library"), (OFF, "native")]
    names, origins = zip(*said, strict=True)
    columns: dict[str, Any] = {
        "stack_id": pa.array(np.arange(parent.size)),
        "parent_id": nullable(parent, pa.int64()),
        "function": pa.array(names, pa.string()),
        "file": pa.array([""] * parent.size, pa.string()),
        "line": pa.nulls(parent.size, pa.int32()),
        "origin": pa.array(origins, pa.string()),
    }
    return leaf, _typed("stack_frames", columns)


def _typed(name: str, columns: dict[str, Any]) -> pa.Table:
    declared = schema.table(name).arrow
    return pa.table({field.name: columns[field.name] for field in declared}).cast(declared)


def _describe_frames(raw: RawTables, frames: Ids, programs: frozenset[str]) -> list[tuple[str, str] | None]:
    """Return function and origin of each frame (a column of :data:`_FRAME`); ``None`` for those that say nothing.

    Those are frames of the kernel, and entries such as "max depth". A function without a symbol has the name of its
    library.
    """
    names = [
        [text or "" for text in look_up(raw, pa.array(row, pa.int64())).to_pylist()] for row in (frames[0], frames[1])
    ]
    found: list[tuple[str, str] | None] = []
    for symbol, path, kernel, unresolved, special in zip(*names, *frames[2:].tolist(), strict=True):
        module = path.rstrip("/").rsplit("/", 1)[-1]
        if kernel or special or module.startswith("[kernel"):
            found.append(None)
            continue
        is_named = symbol and not unresolved and not symbol.startswith(("0x", "["))
        text = _short_name(symbol) if is_named else module.strip("[]")
        if _INTERPRETER.match(module) and (not is_named or symbol.lstrip("_").startswith("Py")):
            text = INTERPRETER
        found.append((text or UNKNOWN_CODE, "program" if module in programs else "library"))
    return found


def _short_name(symbol: str) -> str:
    """Return a function's name without its result, arguments and template arguments, and without blanks."""
    name = re.sub(r"\(anonymous namespace\)::|\[clone [^\[\]]*\]", "", symbol)
    if "operator" not in name:
        name = re.split(r"[<(]", name, maxsplit=1)[0].strip().rsplit(" ", 1)[-1] or name
    return re.sub(r"\s+", "_", name.strip())


def _rows_of_samples(moments: Ids, owner: Ids, stack: Ids, off: int) -> dict[str, Ids]:
    """Return rows of ``stacks`` from samples in order of thread and time; equal ones in a row are one row."""
    if not moments.size:
        return {name: np.zeros(0, np.int64) for name in ("start", "end", "owner", "stack", "samples")}
    is_first = np.append(True, owner[1:] != owner[:-1])
    gaps = np.diff(moments, prepend=moments[0])
    between = gaps[~is_first & (gaps > 0)]
    usual = max(int(np.median(between)), 1) if between.size else 1
    lasting = np.where(is_first | (gaps > OFF_CORE * usual), usual, gaps)
    start = np.where(is_first, np.maximum(moments - usual, 0), moments - lasting)
    # A gap has as many rows as samples would lie in it, so that each stands for its own part of the time.
    idle = np.flatnonzero(~is_first & (gaps > OFF_CORE * usual))
    starts = np.concatenate([start, moments[idle - 1]])
    ends = np.concatenate([moments, start[idle]])
    stacks = np.concatenate([stack, np.full(idle.size, off)])
    owners = np.concatenate([owner, owner[idle]])
    samples = np.concatenate([np.ones(moments.size, np.int64), np.maximum((ends - starts)[moments.size :] // usual, 1)])
    order = np.lexsort((ends, owners))
    starts, ends, stacks, owners, samples = (column[order] for column in (starts, ends, stacks, owners, samples))
    new = np.append(True, (owners[1:] != owners[:-1]) | (stacks[1:] != stacks[:-1]) | (starts[1:] != ends[:-1]))
    rows = np.flatnonzero(new)
    last = np.append(rows[1:], new.size) - 1
    return {
        "start": starts[rows],
        "end": ends[last],
        "owner": owners[rows],
        "stack": stacks[rows],
        "samples": np.add.reduceat(samples, rows),
    }


def _stacks_table(rows: dict[str, Ids], identity: Identity, off: int) -> pa.Table:
    length = rows["end"] - rows["start"]
    kept = np.flatnonzero(length > 0)
    kept = kept[np.argsort(rows["start"][kept], kind="stable")]
    runs = rows["stack"][kept] != off
    columns: dict[str, Any] = {
        "start_ns": pa.array(rows["start"][kept]),
        "dur_ns": pa.array(length[kept]),
        "process_id": identity.process_of_thread.take(pa.array(rows["owner"][kept])),
        "thread_id": pa.array(rows["owner"][kept], pa.int32()),
        "stack_id": pa.array(rows["stack"][kept]),
        "samples": pa.array(rows["samples"][kept]),
        "cpu_ns": pa.array(np.where(runs, length[kept], 0)),
        "state": pa.array(["waiting", "running"]).take(pa.array(runs.astype(np.int64))),
    }
    return _typed("stacks", columns)
