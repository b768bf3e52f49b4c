"""The settings of a sweep: every combination of the values of its tags, and the task of each. Pure."""

from __future__ import annotations

import shlex
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from traceviz.core.errors import UsageError
from traceviz.sweep.file import NamedValue, Scalar, SweepFile, Words, limit_of, text_of, texts_of

MOST_SETTINGS = 10_000
OPTIONS, REPEAT = "options", "repeat"
"""Placeholders in a command for the options of named values, and for the number of the repeat."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of values.

    Args:
        tags: The values, by tag.
        values: The named values among them, with their options.
    """

    tags: Mapping[str, str]
    values: tuple[NamedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """The task of one run of a setting.

    Args:
        tags: Its tags, with those of the whole sweep and the number of the repeat.
        command: The program and its arguments.
        environment: Variables in addition to the inherited ones.
        collect: Options of ``traceviz collect``.
        limit_s: Time limit in seconds.
    """

    tags: Mapping[str, str]
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    collect: tuple[str, ...] = ()
    limit_s: float | None = None


def settings_of(sweep: SweepFile) -> tuple[Setting, ...]:
    """Return all settings of a sweep, in the order of the file.

    Raises:
        UsageError: a tag has no values, or one twice; an excluded value does not exist; no setting is left.
    """
    named = {tag: _by_name(tag, values) for tag, values in sweep.settings.items()}
    count = 1
    for values in named.values():
        count *= len(values)
    if count > MOST_SETTINGS:
        raise UsageError(f"{count:,} settings are more than the {MOST_SETTINGS:,} that a sweep may have.")
    excluded = [_check_known(texts_of(entry), named, "[[exclude]]") for entry in sweep.exclude]
    crossed = [dict(zip(named, chosen, strict=True)) for chosen in product(*named.values())] if named else []
    kept = [tags for tags in crossed if not any(entry.items() <= tags.items() for entry in excluded)]
    included = [texts_of(entry) for entry in sweep.include]
    distinct = {tuple(sorted(tags.items())): tags for tags in (*kept, *included)}
    if not distinct and not (named or included):
        distinct[()] = {}
    if not distinct:
        raise UsageError("The sweep has no setting left.", "[[exclude]] leaves out all of them.")
    return tuple(Setting(tags, _values_of(tags, named)) for tags in distinct.values())


def _by_name(tag: str, values: Sequence[Scalar | NamedValue]) -> dict[str, NamedValue | None]:
    if tag in {OPTIONS, REPEAT} or not tag.isidentifier():
        raise UsageError(
            f"The tag {tag!r} cannot be one of a sweep.",
            f"{{{OPTIONS}}} and {{{REPEAT}}} have a meaning of their own, and a tag is a word: letters, digits and _.",
            "Give it another name.",
        )
    names = [text_of(value.name if isinstance(value, NamedValue) else value) for value in values]
    if not names:
        raise UsageError(f"The tag {tag} has no values.", fix=f"Write them as {tag} = [32, 128], or leave it out.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"The tag {tag} has the value {twice} twice.", fix="Leave one out.")
    return {name: value if isinstance(value, NamedValue) else None for name, value in zip(names, values, strict=True)}


def _check_known(
    entry: Mapping[str, str], named: Mapping[str, Mapping[str, NamedValue | None]], place: str
) -> Mapping[str, str]:
    for tag, value in entry.items():
        if tag not in named:
            raise UsageError.unknown(f"tag of [settings], which {place} names:", tag, named)
        if value not in named[tag]:
            raise UsageError.unknown(f"value of {tag}, which {place} names:", value, named[tag])
    return entry


def _values_of(tags: Mapping[str, str], named: Mapping[str, Mapping[str, NamedValue | None]]) -> tuple[NamedValue, ...]:
    values = (named.get(tag, {}).get(value) for tag, value in tags.items())
    return tuple(value for value in values if value is not None)


def task_of(sweep: SweepFile, setting: Setting, repeat: int) -> Task:
    """Return the task of the ``repeat``-th run of a setting.

    Raises:
        UsageError: the command asks for a tag that the setting lacks, or has no place for its options.
    """
    tags = {**texts_of(sweep.tags), **setting.tags, REPEAT: str(repeat)}
    stated = [value.command for value in setting.values if value.command is not None]
    if len(stated) > 1:
        raise UsageError(f"{label(setting.tags)} has {len(stated)} commands.", "Values of two tags state one each.")
    template = _words(stated[0] if stated else sweep.command)
    options = [word for value in setting.values for word in _words(value.options)]
    if options and not any(f"{{{OPTIONS}}}" in word for word in template):
        raise UsageError(
            f"The command has no place for {shlex.join(options)}, the options of {label(setting.tags)}.",
            fix=f"Write {{{OPTIONS}}} where they belong.",
        )
    variables = texts_of(sweep.environment)
    for value in setting.values:
        variables |= texts_of(value.environment)
    command = tuple(_filled(template, tags, options, setting))
    if not command:
        raise UsageError("The command is empty.", fix='For example: command = "python train.py --batch-size {batch}"')
    environment = {name: _fill(value, tags, setting) for name, value in variables.items()}
    _check_texts((*command, *environment, *environment.values(), *tags, *tags.values()), environment)
    return Task(
        tags=tags,
        command=command,
        environment=environment,
        collect=tuple(
            _fill(word, tags, setting)
            for words in (sweep.collect, *(value.collect for value in setting.values))
            for word in words
        ),
        limit_s=limit_of((sweep.time_limit, *(value.time_limit for value in setting.values))),
    )


def _check_texts(texts: Iterable[str], variables: Iterable[str]) -> None:
    """Refuse texts that the system rejects as arguments or variables.

    Raises:
        UsageError: a text has a null character, or a name is not valid for a variable.
    """
    if any("\0" in text for text in texts):
        raise UsageError("A command, variable or tag has a null character.", "No program can be given one.")
    wrong = next((name for name in variables if not name or "=" in name), None)
    if wrong is not None:
        raise UsageError(f"{wrong!r} is no name of a variable.", fix='Write [environment] as THREADS = "4".')


def _words(text: Words) -> tuple[str, ...]:
    if not isinstance(text, str):
        return text
    try:
        return _split(text)
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be split into words.", f"{error}.") from None


@lru_cache(maxsize=64)
def _split(text: str) -> tuple[str, ...]:
    """Split a command into words, once for all runs: ``shlex`` takes at least a microsecond per character."""
    return tuple(shlex.split(text))


def _filled(
    template: Iterable[str], tags: Mapping[str, str], options: Sequence[str], setting: Setting
) -> Iterator[str]:
    """Yield the words of a command; the word ``{options}`` becomes any number of words."""
    for word in template:
        if word == f"{{{OPTIONS}}}":
            yield from (_fill(option, tags, setting) for option in options)
        else:
            yield _fill(word, {**tags, OPTIONS: " ".join(options)}, setting)


def _fill(text: str, tags: Mapping[str, str], setting: Setting) -> str:
    """Replace tag names in a text by their values; ``{{`` and ``}}`` are braces.

    Raises:
        UsageError: a name is not a tag, or a brace stands alone.
    """
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise UsageError(f"{text!r} has a brace too many.", f"{error}.", "Write {{ and }} for braces.") from None
    filled = ""
    for before, name, form, conversion in parts:
        filled += before
        if name is None:
            continue
        if form or conversion or name not in tags:
            unknown = UsageError.unknown("tag", name + (f":{form}" if form else ""), tags)
            why = f"{text!r} asks for it, and {label(setting.tags)} does not have it."
            raise UsageError(unknown.what, f"{unknown.why} {why}".strip(), unknown.fix)
        filled += tags[name]
    return filled


def label(tags: Mapping[str, str]) -> str:
    """Return the label ``batch=32, approach=prefetch``."""
    return ", ".join(f"{tag}={value}" for tag, value in tags.items() if tag != REPEAT) or "the only setting"
