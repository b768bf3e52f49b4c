"""Families of operators by their names: what an operator computes.

The knowledge is data, ``data/op_families.toml``: ordered patterns with a version. A name that no pattern matches is
``unknown``.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

UNKNOWN = "unknown"
"""Family of an operator whose name does not show it."""

_LONGEST = 500
"""Characters of a name that are searched, so that time stays bounded."""

_NAMESPACE = re.compile(r"^(?:[\w<>$ ().-]*(?:::|: |\$))+")
_REVERSE = re.compile(r"(?:(?:Double)?Backward\d*|Grad(?:V\d)?)$")
_MEASURED = re.compile(r"_(?:kernel_time|fence_before|fence_after)$")
"""Endings of the names in ONNX Runtime's profiles."""
_NUMBER = re.compile(r"(?:[._]\d{1,9}){1,4}$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class OpCatalogue:
    """The patterns of one version of the data file, compiled."""

    version: int
    labels: dict[str, str]
    families: tuple[tuple[str, re.Pattern[str]], ...]

    def family(self, name: str) -> str:
        """Return the family of the operator called ``name``; :data:`UNKNOWN` if its name does not show it."""
        plain = plain_name(name)
        return next((family for family, pattern in self.families if pattern.search(plain)), UNKNOWN)


@cache
def catalogue() -> OpCatalogue:
    """Return the catalogue of this version of traceviz; it is read once."""
    path = resources.files("traceviz").joinpath("data", "op_families.toml")
    return _compiled(tomllib.loads(path.read_text(encoding="utf-8")))


def _compiled(data: dict[str, Any]) -> OpCatalogue:
    return OpCatalogue(
        version=data["version"],
        labels={entry["name"]: entry["label"] for entry in data["family"]} | {UNKNOWN: "Other operators"},
        families=tuple(
            (entry["name"], re.compile("|".join(f"(?:{pattern})" for pattern in entry["patterns"])))
            for entry in data["family"]
        ),
    )


@lru_cache(maxsize=1 << 16)
def op_family(name: str) -> str:
    """Return the family of the operator of that type, for example ``convolution`` for ``aten::mkldnn_convolution``."""
    return catalogue().family(name)


def op_type(name: str) -> str:
    """Return the type of an operator that TensorFlow names ``NAME:TYPE``; of others the name."""
    return name if "::" in name else name.rpartition(":")[2]


def op_family_label(family: str) -> str:
    """Return the name of ``family`` for display.

    Raises:
        KeyError: no such family.
    """
    return catalogue().labels[family]


def plain_name(name: str) -> str:
    """Return the name of an operator as the patterns see it: ``max_pool`` for ``MaxPoolGrad``."""
    bare = _NUMBER.sub("", _MEASURED.sub("", _NAMESPACE.sub("", name[:_LONGEST])))
    return _WORDS.sub("_", _REVERSE.sub("", bare)).lower().strip("_ ")
