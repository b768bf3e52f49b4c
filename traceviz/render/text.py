"""Names of kernels, shortened for a page."""

from __future__ import annotations

import re

ELLIPSIS = "…"
_DEEPEST_NESTING = 8
_LONGEST = 16_000
"""Limit of the characters of a name to simplify; longer ones are not signatures, and would take long."""
_CALLED = re.compile(r"\w\(")
_NAMESPACES = re.compile(r"(?<!\w)(?:(?:(?!const::)[A-Za-z_]\w*|\(anonymous namespace\)|<unnamed>)::)+")
_INNERMOST_PARENTHESES = re.compile(r"\([^()]*\)")
_NUMBERED_LAMBDA = re.compile(r"\[lambda\([^()]*\) \(instance (\d+)\)\]")
_LAMBDA_NOISE = re.compile(r"::λ1\b|::\[lambda\s*\]|::operator\s*(?:const\b)?")


def simplify_signature(name: str) -> str:
    """Return a C++ signature without return types, namespaces, parameters and casts; any other name unchanged.

    ``void at::native::f<(int)4, at::Add<float>>(int, char*)`` becomes ``f<4, Add<float>>``. Template arguments and the
    numbers of lambdas after the first (``::λ2``) stay: they distinguish the instances of one kernel.
    """
    # A single pattern for signatures would backtrack at each bracket of ``a(a(a(``.
    if len(name) > _LONGEST or not (
        name.startswith("void ") or "<" in name or (name.endswith(")") and _CALLED.search(name) is not None)
    ):
        return name
    short = _NAMESPACES.sub("", _NUMBERED_LAMBDA.sub(r"λ\1", name))
    for _ in range(_DEEPEST_NESTING):
        short, removed = _INNERMOST_PARENTHESES.subn("", short)
        if not removed:
            break
    short = _LAMBDA_NOISE.sub("", short).replace("void ", "").strip()
    return short or name
