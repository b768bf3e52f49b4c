"""All findings by code and slug. A record is imported when it is first asked for: most reports raise few findings."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from traceviz.core.errors import UsageError
from traceviz.report import findings
from traceviz.report.findings.record import FindingRecord

_registered: dict[str, FindingRecord] = {}


def register(record: FindingRecord) -> None:
    """Add the record of a finding that is not part of traceviz.

    Args:
        record: A record with a code and slug of its own; codes that start with ``TV`` belong to traceviz.

    Raises:
        ValueError: the code or slug is taken.
    """
    known = _registered.get(record.code)
    if known == record:
        return
    if record.code.upper().startswith("TV") or _code_of(record.code) or _code_of(record.slug):
        raise ValueError(f"The code or slug of finding {record.code} ({record.slug}) belongs to another finding.")
    _registered[record.code] = record


def codes() -> tuple[str, ...]:
    """Codes of all findings, in order."""
    return tuple(sorted((*_slugs(), *_registered)))


def records() -> tuple[FindingRecord, ...]:
    """All records, by code. It imports each of them; :func:`find_record` imports one."""
    return tuple(map(record_of, codes()))


def find_record(code: str) -> FindingRecord | None:
    """Return the record with this code or slug (case does not matter); ``None`` if there is none.

    Saved reports may hold findings of other versions and of plugins that are not installed here.
    """
    known = code if code in _slugs() else _code_of(code)
    if known in _registered:
        return _registered[known]
    return _imported(known) if known else None


def record_of(code: str) -> FindingRecord:
    """Return the record with this code or slug (case does not matter).

    Raises:
        UsageError: there is no such finding; the error lists those that exist.
    """
    if (record := find_record(code)) is None:
        slugs = {**_slugs(), **{key: record.slug for key, record in _registered.items()}}
        raise UsageError.unknown("finding", code, (f"{key} ({slugs[key]})" for key in codes()))
    return record


def _code_of(name: str) -> str:
    """Return the code of the finding with this code or slug; empty if there is none."""
    code, slug = name.upper(), name.lower()
    named = ((key, entry.slug) for key, entry in _registered.items())
    return next((known for known, own in (*_slugs().items(), *named) if code == known.upper() or slug == own), "")


@cache
def _slugs() -> dict[str, str]:
    """Slugs by code, from file names such as ``tv101_input_bound.py``: no record is imported to find one of them."""
    names = (module.name for module in iter_modules(findings.__path__) if module.name.startswith("tv"))
    return {code.upper(): slug.replace("_", "-") for code, _, slug in (name.partition("_") for name in sorted(names))}


@cache
def _imported(code: str) -> FindingRecord:
    name = f"{code.lower()}_{_slugs()[code].replace('-', '_')}"
    record: FindingRecord = import_module(f"{findings.__name__}.{name}").RECORD
    return record
