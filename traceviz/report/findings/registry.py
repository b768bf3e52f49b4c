"""All findings by code and slug. A record is imported on first use, because most reports raise few findings."""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from pkgutil import iter_modules

from traceviz.core.errors import PluginError, UsageError
from traceviz.core.registry import Registry
from traceviz.report import findings
from traceviz.report.findings.record import FindingRecord


@cache
def _slugs() -> dict[str, str]:
    """Return slugs by code, from file names such as ``tv101_input_bound.py``; no record is imported."""
    names = (module.name for module in iter_modules(findings.__path__) if module.name.startswith("tv"))
    return {code.upper(): slug.replace("_", "-") for code, _, slug in (name.partition("_") for name in sorted(names))}


def _accept(value: object) -> FindingRecord:
    """Return a record; reject one of a plugin that reuses a code or a slug."""
    if not isinstance(value, FindingRecord):
        raise TypeError(f"{value!r} is no {FindingRecord.__module__}.FindingRecord")
    if value.code not in _slugs() and not re.fullmatch(r"(?!TV)[A-Z]{2,8}[0-9]{1,4}", value.code):
        raise ValueError(f"{value.code!r} should be capitals and a number, such as ACME101; TV belongs to traceviz")
    if value.slug in _slugs().values() and _slugs().get(value.code) != value.slug:
        raise ValueError(f"the slug {value.slug!r} belongs to traceviz")
    return value


FINDINGS: Registry[FindingRecord] = Registry(
    "finding",
    "traceviz.findings",
    {code: f"{findings.__name__}.{code.lower()}_{slug.replace('-', '_')}:RECORD" for code, slug in _slugs().items()},
    _accept,
    attrgetter("code"),
)
"""All findings by code, those of plugins last."""
register = FINDINGS.register


def codes() -> tuple[str, ...]:
    """Return the codes of all findings, in order."""
    return FINDINGS.names()


def records() -> tuple[FindingRecord, ...]:
    """Return all records, by code. This imports each of them; :func:`find_record` imports one."""
    return FINDINGS.all()


def find_record(code: str) -> FindingRecord | None:
    """Return the record with this code or slug (case does not matter); ``None`` if there is none.

    Saved reports may hold findings of other versions and of plugins that are not installed here.
    """
    with suppress(UsageError, PluginError):
        return record_of(code)
    return None


def record_of(code: str) -> FindingRecord:
    """Return the record with this code or slug (case does not matter).

    Raises:
        UsageError: there is no such finding; the error lists those that exist.
        PluginError: it belongs to a plugin that cannot be loaded.
    """
    name, slug = code.upper(), code.lower()
    if name not in _slugs():
        name = next((known for known, own in _slugs().items() if own == slug), name)
    if name in FINDINGS:
        return FINDINGS.find(name)
    if (found := next((record for record in FINDINGS.added() if record.slug == slug), None)) is not None:
        return found
    slugs = {**_slugs(), **{record.code: record.slug for record in FINDINGS.added()}}
    numbers = {int(key.removeprefix("TV")): key for key in slugs if re.fullmatch(r"TV\d{1,9}", key)}
    if number := re.fullmatch(r"(?:TV)?(\d{1,9})", name):
        near = numbers[min(numbers, key=lambda known: abs(known - int(number[1])))]
    else:
        names = {own: key for key, own in slugs.items()} | {key.lower(): key for key in slugs}
        near = next((names[similar] for similar in get_close_matches(slug, names, 1, 0.5)), "")
    nearest = f"The nearest is {near} ({slugs[near]})." if near else ""
    raise UsageError(f"There is no finding {code!r}.", nearest, "List all of them: traceviz explain.")
