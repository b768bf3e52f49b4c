"""The fields of an XPlane file that are messages."""

from __future__ import annotations

from tests.fuzz.mutations.wire import Shape

_STAT: Shape = {}
_ENTRY: Shape = {2: {5: _STAT}}
SPACE: Shape = {1: {3: {4: {4: _STAT}}, 4: _ENTRY, 5: {2: {}}, 6: _STAT}}
"""XSpace: planes of lines of events, which have stats; entries of names."""
