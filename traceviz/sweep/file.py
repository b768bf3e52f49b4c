"""A sweep file as its author wrote it: TOML, with every member checked.

::

    command = "python train.py --batch-size {batch} {options}"
    repeats = 3
    [settings]
    batch = [32, 128]
    [[settings.approach]]
    name = "prefetch"
    options = "--prefetch 2"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from traceviz.core.errors import UnreadableError, UsageError
from traceviz.core.units import parse_ns

Scalar: TypeAlias = str | bool | int | float
"""A value of a tag in TOML."""
Words: TypeAlias = str | tuple[str, ...]
"""A command or options: a text that is split as in a shell, or a list of words."""
MOST_BYTES = 1 << 20
MOST_REPEATS = 1_000
MOST_TAGS = 32
MOST_VALUES = 1_000
"""Values of one tag."""
MOST_ENTRIES = 1_000
"""Entries of [[exclude]] and [[include]], tags of every run, variables, options of `collect`."""
MOST_DEPTH = 16
"""Parts of a dotted key. Python's reader takes quadratic time in them."""
_MISTAKE = "A sweep of this size would take weeks: this looks like a mistake in the file."
_LONGEST_LIMIT_NS = 10**18


class NamedValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A value of a tag with more effects than its text in the command.

    Args:
        name: The value.
        options: Text that replaces ``{options}`` in the command.
        environment: Variables for the program.
        command: The command, instead of that of the sweep.
        collect: Further options of ``traceviz collect``.
        time_limit: Time limit of a run, instead of that of the sweep.
    """

    name: Scalar
    options: Words = ""
    environment: dict[str, Scalar] = {}
    command: Words | None = None
    collect: tuple[str, ...] = ()
    time_limit: Scalar | None = None


class Comparing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of the comparison after the runs, as for ``traceviz compare``.

    Args:
        by: Tags whose values define the sides; if empty, those of the settings.
        base: Values of the side that the others are compared with.
        per: Tag that gives the units of work per step.
    """

    by: tuple[str, ...] = ()
    base: Scalar = ""
    per: str = ""


class SweepFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A sweep.

    Args:
        command: The command; ``{batch}`` stands for the value of tag ``batch``.
        name: Name of the sweep, and of the folder of its runs; if empty, that of the file.
        runs: The folder of its runs, instead of ``traceviz-runs/NAME``.
        repeats: Number of runs of each setting.
        time_limit: Time limit of a run: ``"10 min"``, or seconds.
        collect: Options of ``traceviz collect``.
        environment: Variables for the program.
        tags: Tags of every run.
        settings: Values by tag; every combination is a setting.
        exclude: Combinations that are left out.
        include: Further settings, tag by tag.
        compare: Options of the comparison after the runs.
    """

    command: Words
    name: str = ""
    runs: str = ""
    repeats: int = 3
    time_limit: Scalar | None = None
    collect: tuple[str, ...] = ()
    environment: dict[str, Scalar] = {}
    tags: dict[str, Scalar] = {}
    settings: dict[str, tuple[Scalar | NamedValue, ...]] = {}
    exclude: tuple[dict[str, Scalar], ...] = ()
    include: tuple[dict[str, Scalar], ...] = ()
    compare: Comparing = Comparing()


def read_sweep(path: Path) -> SweepFile:
    """Read the sweep in a file.

    Raises:
        UnreadableError: the file cannot be read.
        UsageError: it is not TOML, or a member is unknown or invalid.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read.", f"{error.strerror}.", "Check the path.") from error
    if len(text) > MOST_BYTES:
        raise UsageError(f"{path} is larger than {MOST_BYTES >> 20} MiB: it is no sweep file.")
    try:
        decoded = text.decode("utf-8-sig")
        # Dotted keys of many parts are refused before they are read. Dots in texts and comments do not count.
        bare = _STRINGS_AND_COMMENTS.sub("_", decoded)
        deepest = max((part.count(".") + 1 for part in re.split(r"[^\w.\- \t]+", bare)), default=0)
        if deepest > MOST_DEPTH:
            raise UsageError(
                f"{path} has a key of {deepest:,} parts; a sweep has none of more than {MOST_DEPTH}.",
                fix="docs/sweep.md says what it holds.",
            )
        document = tomllib.loads(decoded)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no TOML: {error}.", fix="docs/sweep.md shows a sweep file.") from None
    return parse_sweep(document, str(path))


def parse_sweep(document: Mapping[str, Any], name: str) -> SweepFile:
    """Return the sweep in a TOML document.

    Args:
        document: The document.
        name: Name of the document in errors.

    Raises:
        UsageError: a member is unknown or invalid.
    """
    _check_members(document, SweepFile, name, "key of a sweep")
    settings = document.get("settings")
    for values in settings.values() if isinstance(settings, dict) else ():
        for value in values if isinstance(values, list) else ():
            if isinstance(value, dict):
                _check_members(value, NamedValue, name, "key of a value with a name")
    if isinstance(document.get("compare"), dict):
        _check_members(document["compare"], Comparing, name, "key of [compare]")
    if "command" not in document:
        raise UsageError(
            f"{name} has no command.", fix='Add one, for example: command = "python train.py --batch-size {batch}"'
        )
    try:
        sweep = msgspec.convert(document, SweepFile)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        where = f" at {place.strip('`').removeprefix('$.')}" if place else ""
        said = f"{what[:1].lower()}{what[1:]}"
        raise UsageError(f"{name}{where}: {said}.", fix="docs/sweep.md says what it holds.") from None
    if sweep.repeats < 1:
        raise UsageError(f"{name}: repeats = {sweep.repeats} records nothing.", fix="Write repeats = 1 or more.")
    _check_bounds(sweep, name)
    return sweep


_STRINGS_AND_COMMENTS = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'{3}.*?\'{3}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*''', re.DOTALL
)


def _check_bounds(sweep: SweepFile, name: str) -> None:
    """Refuse excessive sizes before anything is computed from them.

    Raises:
        UsageError: a member has more entries than a sweep may have.
    """
    values = max(((len(values), tag) for tag, values in sweep.settings.items()), default=(0, ""))
    named = [value for of_tag in sweep.settings.values() for value in of_tag if isinstance(value, NamedValue)]
    bounded = [
        ("repeats", sweep.repeats, MOST_REPEATS),
        ("tags in [settings]", len(sweep.settings), MOST_TAGS),
        (f"values of {values[1]}", values[0], MOST_VALUES),
        ("entries of [[exclude]]", len(sweep.exclude), MOST_ENTRIES),
        ("entries of [[include]]", len(sweep.include), MOST_ENTRIES),
        ("tags in an entry of [[include]]", max(map(len, sweep.include), default=0), MOST_TAGS),
        ("tags in [tags]", len(sweep.tags), MOST_TAGS),
        ("variables", max(len(sweep.environment), *(len(value.environment) for value in named), 0), MOST_ENTRIES),
        ("options of collect", max(len(sweep.collect), *(len(value.collect) for value in named), 0), MOST_ENTRIES),
    ]
    for what, count, most in bounded:
        if count > most:
            raise UsageError(f"{name}: {count:,} {what} are more than the {most:,} that a sweep may have.", _MISTAKE)


def _check_members(document: Mapping[str, Any], struct: type[msgspec.Struct], name: str, kind: str) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(struct)]
    for key in document:
        if key not in known:
            error = UsageError.unknown(kind, key, known)
            raise UsageError(f"{name}: {error.what}", error.why, error.fix)


def text_of(value: Scalar) -> str:
    """Return a value as it stands in commands and tags: ``true`` and ``false`` as in TOML."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def texts_of(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Return values by name, as texts."""
    return {key: text_of(value) for key, value in values.items()}


def limit_of(values: Iterable[Scalar | None]) -> float | None:
    """Return the last stated time limit, in seconds; ``None`` if there is none.

    Raises:
        UsageError: it is not a valid time.
    """
    stated = [value for value in values if value is not None]
    if not stated:
        return None
    limit_ns = None if isinstance(stated[-1], bool) else parse_ns(text_of(stated[-1]))
    if not limit_ns or limit_ns > _LONGEST_LIMIT_NS:
        raise UsageError(f"time-limit = {stated[-1]!r} is no time.", fix='Write it as time-limit = "10 min".')
    return limit_ns / 1e9
