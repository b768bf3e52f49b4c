"""Names of API functions in nvprof files, by number."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from traceviz.parsers.shared.events.mapping import VERSION_SUFFIX


@cache
def functions(domain: str) -> Mapping[int, str]:
    """Return names of the functions of ``runtime`` or ``driver`` by callback id, without their version suffix."""
    path = resources.files("traceviz.parsers").joinpath("data", "cupti_cbids.csv")
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return {int(row["cbid"]): re.sub(VERSION_SUFFIX, "", row["function"]) for row in rows if row["domain"] == domain}


def function(domain: str, number: int) -> str:
    """Return the name of the function with this callback id; ``cbid_123`` if the list does not have it."""
    return functions(domain).get(number, f"cbid_{number}")
