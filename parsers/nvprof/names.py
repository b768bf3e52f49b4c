"""Names in nvprof files: functions of the API by number, and the framework that kernels tell of."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

from traceviz.parsers.shared.mapping import VERSION_SUFFIX

_FRAMEWORKS = {
    "PyTorch": re.compile(r"(?<![\w:])(?:at::native|c10|caffe2)::"),
    "TensorFlow": re.compile(r"(?<![\w:])tensorflow::"),
}
"""Namespaces of kernels that only one framework ships."""


@cache
def functions(domain: str) -> Mapping[int, str]:
    """Names of the functions of ``runtime`` or ``driver`` by callback id, without the version that they came with."""
    path = resources.files("traceviz.parsers").joinpath("data", "cupti_cbids.csv")
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return {int(row["cbid"]): re.sub(VERSION_SUFFIX, "", row["function"]) for row in rows if row["domain"] == domain}


def function(domain: str, number: int) -> str:
    """Name of the function with this callback id; ``cbid_123`` where the list does not have it."""
    return functions(domain).get(number, f"cbid_{number}")


def framework(kernels: Iterable[str]) -> str | None:
    """The framework that ships some of ``kernels`` (demangled names); ``None`` for no framework or several."""
    names = {name for kernel in kernels for name, pattern in _FRAMEWORKS.items() if pattern.search(kernel)}
    return names.pop() if len(names) == 1 else None
