"""Gates in a TOML file that a repository can keep."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from traceviz.core.errors import UsageError
from traceviz.gates.budgets import RELATIONS, Budget, parse_share
from traceviz.gates.gates import Gates
from traceviz.report import Severity

BUDGETS, GATES = "budgets", "gates"
FAIL_ON, REGRESSION = "fail-on", "fail-on-regression"
SEVERITIES = (Severity.WARNING, Severity.ERROR)
"""Allowed values of ``fail-on``."""


def gates_from_toml(text: str, source: str = "The file") -> Gates:
    """Return the gates in ``[budgets]`` and ``[gates]``.

    Args:
        text: The TOML.
        source: Name of the file in errors.

    Raises:
        UsageError: it is not TOML, or contains something other than gates.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not TOML.", f"{error}.") from None
    _check_names(source, "table", document, (BUDGETS, GATES))
    budgets, gates = (_table(source, document, name) for name in (BUDGETS, GATES))
    _check_names(f"[{GATES}] of {source}", "key", gates, (FAIL_ON, REGRESSION))
    requested = Gates(
        tuple(Budget.parse(expression) for expression in _expressions(source, budgets)),
        _severity(source, gates.get(FAIL_ON)),
        _share(source, gates.get(REGRESSION)),
    )
    if not requested:
        raise UsageError(f"{source} sets no gate.", fix=f"Write limits in [{BUDGETS}], or {FAIL_ON} in [{GATES}].")
    return requested


def _check_names(where: str, kind: str, table: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in table:
        if name not in names:
            raise UsageError(f"{where} has the unknown {kind} {name!r}.", fix=f"Known: {', '.join(names)}.")


def _table(source: str, document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"[{name}] of {source} should be a table.")
    return table


def _expressions(source: str, table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield budgets from ``name = "<=5%"`` or a list of such limits; an unquoted ``section.fact`` is a nested table."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and not prefix:
            yield from _expressions(source, value, f"{key}.")
            continue
        for limit in value if isinstance(value, list) else [value]:
            if not isinstance(limit, str) or not limit.strip().startswith(RELATIONS):
                raise UsageError(f'{name} of {source} should be a text such as "<=5%", but is {limit!r:.40}.')
            yield f"{name}{limit}"


def _severity(source: str, value: Any) -> Severity | None:
    if value is None:
        return None
    if value not in [severity.value for severity in SEVERITIES]:
        raise UsageError(f"{FAIL_ON} of {source} is {value!r:.40}.", fix=f"Known: {', '.join(SEVERITIES)}.")
    return Severity(value)


def _share(source: str, value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise UsageError(f'{REGRESSION} of {source} should be a text such as "5%", but is {value!r:.40}.')
    return parse_share(value)
