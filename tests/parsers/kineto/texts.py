"""Shared helpers of the decoder tests: events from literals, any events, and the contents of a decoded file."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from traceviz.parsers.kineto.decode.compiled import library
from traceviz.parsers.kineto.decode.document import decode
from traceviz.parsers.kineto.raw import ARGUMENTS, RawTrace

needs_compiled = pytest.mark.skipif(library is None, reason="built without the compiled scanner")
SCANNERS = [pytest.param("compiled", marks=needs_compiled), "msgspec"]
BOTH = ("msgspec",) if library is None else ("compiled", "msgspec")


def reading(path: Path, scanner: str) -> Callable[..., RawTrace]:
    """Decode a text as the file ``path``."""

    def work(text: str | bytes, **options) -> RawTrace:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return decode(path, scanner=scanner, **options)

    return work


def plain(trace: RawTrace) -> pl.DataFrame:
    return trace.events.with_columns(pl.col(pl.Categorical).cast(pl.String))


def event(**members) -> dict[str, object]:
    return {"ph": "X", "name": "op", "pid": 1, "tid": 2, "ts": 10, "dur": 1} | members


def column(trace: RawTrace, name: str) -> list[object]:
    return plain(trace)[name].to_list() if name in trace.events.columns else [None] * trace.events.height


def same(first: RawTrace, second: RawTrace) -> None:
    assert_frame_equal(plain(first), plain(second))
    facts = [(repr(t.header), t.passed_over, t.unusable, t.repaired, t.damage) for t in (first, second)]
    assert facts[0] == facts[1]


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**64), 2**64), st.floats(), st.text(max_size=4), st.just("0x1F")
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner))
NUMBERS = st.integers(-(10**16), 10**16) | st.floats(-1e15, 1e15, allow_nan=False).map(lambda one: round(one, 3))
KEYS = st.sampled_from([key for one in ARGUMENTS for key in one.keys] + ["other", "ts"])
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from("XXXXMisf"), "ts": NUMBERS | VALUES},
        optional={
            "name": st.sampled_from(["a", 'quote " and \\', '}, {"ph']) | VALUES,
            "cat": SCALARS,
            "pid": SCALARS,
            "tid": VALUES,
            "dur": NUMBERS | VALUES,
            "args": st.dictionaries(KEYS, st.integers(0, 9) | VALUES, max_size=4) | SCALARS,
        },
    ),
    max_size=6,
)
LAYOUTS = st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"sort_keys": True}])
