"""Settings of DuckDB that queries depend on. Each is set, and then its effect is tested.

A version of DuckDB may stop listing a setting, rename it, accept it without effect, or change its default. So each
effect is tested once per connection. If one is missing, no query runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import duckdb

from traceviz.core.errors import MissingToolError


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of DuckDB, and a query that shows its effect.

    Args:
        name: Its name in DuckDB.
        value: Its value, as SQL.
        trial: A statement that tests the effect.
        expected: Result of the trial if the setting has its effect, or the kind of error that it raises.
    """

    name: str
    value: str
    trial: str
    expected: object


# Trials take their values from rows: constants are computed elsewhere in DuckDB.
SETTINGS = (
    # Answers are the same on every machine.
    Setting("TimeZone", "'UTC'", "SELECT (TIMESTAMPTZ '2026-01-01 02:00:00+05')::VARCHAR", "2025-12-31 21:00:00+00"),
    # Division by zero is null, like everything unknown. It is neither an error nor infinity, which JSON lacks.
    Setting("error_on_division_by_zero", "false", "SELECT 1 % zero FROM range(1) AS t(zero)", None),
    Setting("ieee_floating_point_ops", "false", "SELECT 1 / zero FROM range(1) AS t(zero)", None),
    # The other settings are DuckDB's defaults, which docs/queries.md relies on.
    Setting("integer_division", "false", "SELECT 1 / (i + 2) FROM range(1) AS t(i)", 0.5),
    Setting("default_order", "'ASCENDING'", "SELECT list(i ORDER BY i) FROM range(2) AS t(i)", [0, 1]),
    Setting(
        "default_null_order",
        "'NULLS_LAST'",
        "SELECT list(x ORDER BY x) FROM (SELECT nullif(i, 0) AS x FROM range(2) AS t(i))",
        [1, None],
    ),
    Setting("default_collation", "''", "SELECT chr(97) = chr((65 + i)::INTEGER) FROM range(1) AS t(i)", False),
    # A query can read only tables of the archive.
    Setting("enable_external_access", "false", "FROM glob('/*')", duckdb.PermissionException),
    Setting("lock_configuration", "true", "SET threads = 1", duckdb.InvalidInputException),
)


def apply(connection: duckdb.DuckDBPyConnection, settings: Sequence[Setting] = SETTINGS) -> None:
    """Apply ``settings`` in order to ``connection`` and all its cursors, and test them.

    Raises:
        MissingToolError: a setting has no effect in this version of DuckDB.
    """
    for setting in settings:
        with suppress(duckdb.Error):  # a version without the setting may behave like this anyway: the trial decides
            connection.execute(f"SET GLOBAL {setting.name} = {setting.value}")
    with connection.cursor() as cursor:  # queries run on cursors
        for setting in settings:
            _try(cursor, setting)


def _try(cursor: duckdb.DuckDBPyConnection, setting: Setting) -> None:
    """Raise unless ``setting`` has its effect.

    Raises:
        MissingToolError: it has no effect.
    """
    found: object
    try:
        row = cursor.execute(setting.trial).fetchone()
        found = row[0] if row else row
        shown = f"gives {found!r}"
    except duckdb.Error as error:
        found, shown = type(error), f"fails: {error}"
    if found != setting.expected:
        raise MissingToolError(
            f"DuckDB {duckdb.__version__} does not apply {setting.name} = {setting.value}, which queries depend on.",
            f"Tried: {setting.trial} {shown}",
            "Install another version of DuckDB. requirements/run.txt of traceviz names one that works.",
        )
