"""JSON documents: every key of the first element of each kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.extremes.values import ABSENT, Place, Sample

Key = str | int


class JsonSample(Sample):
    """A document, and its writer.

    Args:
        document: Its contents.
        write: Writes a document into a folder, and returns the path of the input.
        kind: Returns the kind of a list's element: the first of each kind is inspected.
    """

    def __init__(
        self, document: Any, write: Callable[[str, Path], Path], kind: Callable[[Any], Any] = lambda _: None
    ) -> None:
        self._text = json.dumps(document)
        self._write, self._kind = write, kind
        self._paths = {tuple(map(str, path)): path for path in self._found(document, ())}

    def _found(self, value: Any, path: tuple[Key, ...]) -> Iterator[tuple[Key, ...]]:
        if path:
            yield path
        if isinstance(value, dict):
            for key in value:
                yield from self._found(value[key], (*path, key))
        elif isinstance(value, list):
            seen = set()
            for place, element in enumerate(value):
                kind = self._kind(element)
                if kind not in seen:
                    seen.add(kind)
                    yield from self._found(element, (*path, place))

    def places(self) -> list[Place]:
        return list(self._paths)

    def write(self, place: Place, value: Any, folder: Path) -> Path:
        document = json.loads(self._text)
        *outer, last = self._paths[place]
        around = document
        for key in outer:
            around = around[key]
        if value is ABSENT:
            del around[last]
        else:
            around[last] = value
        return self._write(json.dumps(document), folder)


def event_kind(event: Any) -> Any:
    """Return the kind of a trace's event: its phase, category, and the keys of its arguments."""
    if not isinstance(event, dict):
        return None
    args = event.get("args")
    return event.get("ph"), event.get("cat"), tuple(sorted(args)) if isinstance(args, dict) else None
