"""Scrubbing files of Python stacks: functions are kept, and so are paths in public libraries. Secrets are removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from traceviz.parsers.run.stack_lines import (
    ROLES,
    CostLine,
    FrameLine,
    MetricLine,
    PhaseLine,
    ProcessLine,
    SamplesLine,
    StoppedLine,
    ThreadLine,
    line_of,
    lines_of,
)
from traceviz.scrub.result import CLEANED, Outcome
from traceviz.scrub.secrets.properties import source_file
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.search import check_file
from traceviz.scrub.secrets.secrets import base_name, secrets_of_text
from traceviz.scrub.secrets.values import Secret
from traceviz.trace import schema

_WORDS = (*schema.ORIGINS, *schema.PHASES, *schema.METRIC_SOURCES, *schema.THREAD_STATES)
_OWN_WORDS = (b" ".join(word.encode() for word in _WORDS),)
"""Words that the format itself writes. A user with such a name must not change them."""


def secrets_of_stacks(source: Path) -> Iterator[Secret]:
    """Yield the secrets in a file's names: tokens and addresses by their shape, users by their folders."""
    for line in _lines(source):
        for text in _texts(line):
            yield from secrets_of_text(text.encode())


def scrub_stacks(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the file ``source`` to ``target``, with only the known lines.

    Arguments and result: see :class:`~traceviz.scrub.formats.registry.FileFormat`.

    Raises:
        OutputError: a secret would remain in the output.
    """
    redactor = Redactor.of([*secrets_of_stacks(source), *known], _OWN_WORDS)
    removed: Counter[str] = Counter()
    with target.open("wb") as file:
        for line in _lines(source):
            clean = _cleaned(line, redactor)
            removed[CLEANED] += clean != line
            file.write(msgspec.json.encode(clean) + b"\n")
    return +removed, len(redactor.secrets), check_file(target, redactor)


def _lines(source: Path) -> Iterator[Any]:
    """Yield the decoded lines of a file, skipping those that cannot be read."""
    with source.open("rb") as file:
        yield from (line for line in map(line_of, lines_of(file)) if line is not None)


def _texts(line: Any) -> tuple[str, ...]:
    """Return the texts of a line that the program chose."""
    match line:
        case FrameLine():
            return line.function, line.file
        case ThreadLine() | PhaseLine() | MetricLine():
            return (line.name or "",)
        case ProcessLine():
            return (line.about.name or "",)
    return ()


def _cleaned(line: Any, redactor: Redactor) -> Any:
    """Return a line without private parts, and without words that the sampler does not write."""

    def clean(text: str | None) -> str | None:
        return None if text is None else redactor.clean(text.encode()).decode("utf-8", "replace")

    changed: dict[str, Any] = {}
    match line:
        case FrameLine():
            origin = line.origin if line.origin in schema.ORIGINS else ""
            changed = {
                "function": clean(line.function),
                "file": clean(source_file(line.file, origin)),
                "origin": origin,
            }
        case ThreadLine():
            changed = {"name": clean(line.name)}
        case PhaseLine():
            changed = {"kind": line.kind if line.kind in schema.PHASES else "", "name": clean(line.name)}
        case MetricLine():
            changed = {"name": clean(line.name), "source": line.source if line.source in schema.METRIC_SOURCES else ""}
        case ProcessLine():
            about, name = line.about, line.about.name
            role = about.role if about.role in ROLES else ROLES[0]
            name = None if name is None else base_name(name.encode()).decode("utf-8", "replace")
            changed = {"about": msgspec.structs.replace(about, name=clean(name), role=role)}
        case SamplesLine():
            known = (*schema.THREAD_STATES, None)
            changed = {"rows": [(*row[:-1], row[-1] if row[-1] in known else None) for row in line.rows]}
        case StoppedLine():  # the notes of the run have the reason; an error may name files
            changed = {"reason": ""}
        case CostLine():
            numbers = {key: value for key, value in line.stated.items() if isinstance(value, int | float)}
            changed = {"stated": {key: numbers[key] for key in numbers if key in {"cpu_ns", "ticks", "late_ns"}}}
    return msgspec.structs.replace(line, **changed)
