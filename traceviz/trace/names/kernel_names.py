"""Family, precision and tensor-core use of a kernel, from its name.

The knowledge is data, ``data/kernel_families.toml``: ordered patterns with a version. A name that no pattern matches is
``unknown``; a name that states no type is not assumed to be 32-bit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Any

UNKNOWN = "unknown"
"""Family or precision of a name that does not show it."""

COMMUNICATION = "communication"
"""Family of the kernels that move data between devices."""

_LONGEST = 2_000
"""Characters of a name that are searched: C++ templates put the important part first, and time stays bounded."""

_NOT_PART_OF_THE_NAME = re.compile(r"\(anonymous namespace\)::|<unnamed>::|^void ")


@dataclass(frozen=True, slots=True)
class KernelClass:
    """Properties of a kernel that its name shows.

    Args:
        family: Kind of work, for example ``gemm``; :data:`UNKNOWN` if the name does not show it.
        precision: Type of the data or of the multiplication's inputs (``bf16``, ``f16``, ``tf32``, ``f32``, ``f64``,
            ``i8``, ``fp8``, ``fp8_e4m3``, ``fp8_e5m2``, ``fp6``, ``fp4``); :data:`UNKNOWN` if the name does not show
            it.
        tensor_core: True if it computes on tensor cores (matrix cores); ``None`` if the name does not show it.
    """

    family: str
    precision: str
    tensor_core: bool | None


class _Pattern:
    """A named alternation of regular expressions, compiled at its first search: most are searched rarely."""

    def __init__(self, name: str, patterns: Iterable[str], flags: re.RegexFlag = re.NOFLAG) -> None:
        self.name = name
        self._text = "|".join(f"(?:{pattern})" for pattern in patterns)
        self._flags = flags

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self._text, self._flags)


@dataclass(frozen=True, slots=True)
class KernelCatalogue:
    """The patterns of one version of the data file."""

    version: int
    labels: dict[str, str]
    families: tuple[_Pattern, ...]
    precisions: tuple[_Pattern, ...]
    never: frozenset[str]
    certainly_not: _Pattern
    certainly: _Pattern

    def classify(self, name: str) -> KernelClass:
        """Return family, precision and tensor-core use of the kernel called ``name``."""
        text = _NOT_PART_OF_THE_NAME.sub("", name[:_LONGEST])
        family = _first(self.families, text)
        return KernelClass(family, _first(self.precisions, text), self._tensor_core(family, text))

    def _tensor_core(self, family: str, text: str) -> bool | None:
        if family in self.never or self.certainly_not.regex.search(text):
            return False
        return True if self.certainly.regex.search(text) else None


def _first(patterns: tuple[_Pattern, ...], text: str) -> str:
    return next((pattern.name for pattern in patterns if pattern.regex.search(text)), UNKNOWN)


@cache
def catalogue() -> KernelCatalogue:
    """Return the catalogue of this version of traceviz; it is read once."""
    path = resources.files("traceviz").joinpath("data", "kernel_families.toml")
    return _compiled(tomllib.loads(path.read_text(encoding="utf-8")))


def _compiled(data: dict[str, Any]) -> KernelCatalogue:
    tensor_core = data["tensor_core"]
    return KernelCatalogue(
        version=data["version"],
        labels={entry["name"]: entry["label"] for entry in data["family"]} | {UNKNOWN: "Unknown"},
        families=tuple(_Pattern(entry["name"], entry["patterns"], re.IGNORECASE) for entry in data["family"]),
        precisions=tuple(_Pattern(entry["name"], entry["patterns"]) for entry in data["precision"]),
        never=frozenset(tensor_core["never"]),
        certainly_not=_Pattern("no", tensor_core["no"]),
        certainly=_Pattern("yes", tensor_core["yes"]),
    )


def classify(names: Iterable[str]) -> list[KernelClass]:
    """Return the class of each of ``names``, in their order; meant for unique names, which are few in a trace."""
    return [_classified(name) for name in names]


@lru_cache(maxsize=1 << 16)
def _classified(name: str) -> KernelClass:
    return catalogue().classify(name)


def family_label(family: str) -> str:
    """Return the name of ``family`` for display.

    Raises:
        KeyError: no such family.
    """
    return catalogue().labels[family]
