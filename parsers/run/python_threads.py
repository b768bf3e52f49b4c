"""Threads by Python's ids, and the ids that the profiler of TensorFlow and JAX derives from these.

Python's id of a thread is that of the C library (``pthread_self``). TSL, the base of both frameworks, numbers
threads by ``std::hash<std::thread::id>`` of the same id, which is MurmurHash64A in the GNU C++ library
(``libstdc++-v3/libsupc++/hash_bytes.cc``); before 2023 by its lower 32 bits.
"""

from __future__ import annotations

IDENT = "ident"
"""Additional column of table ``threads`` for merging: Python's id of the thread."""

_MASK = (1 << 64) - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_SEED = 0xC70F6907
_ID_BYTES = 8


def tracer_ids(ident: int) -> frozenset[int]:
    """Return numbers by which sources other than the system may know the thread with Python's id ``ident``."""
    # Return MurmurHash64A of one word of 64 bits.
    word = ident & _MASK
    mixed = (_shifted(word * _MULTIPLIER & _MASK) * _MULTIPLIER) & _MASK
    state = ((_SEED ^ _ID_BYTES * _MULTIPLIER & _MASK) ^ mixed) * _MULTIPLIER & _MASK
    hashed = _shifted(_shifted(state) * _MULTIPLIER & _MASK)
    low = ident & 0xFFFFFFFF
    return frozenset({ident, _signed(hashed, 64), hashed & (_MASK >> 1), low, _signed(low, 32)})


def _shifted(word: int) -> int:
    return word ^ (word >> 47)


def _signed(word: int, bits: int) -> int:
    return word - (1 << bits) if word >> (bits - 1) else word
