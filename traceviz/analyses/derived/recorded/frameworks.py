"""Frameworks that analyses distinguish, and the facts of a run that name them."""

from __future__ import annotations

FRAMEWORKS = ("TensorFlow", "PyTorch", "JAX")
"""Frameworks as advice names them."""


def frameworks_in(text: str | None) -> frozenset[str]:
    """Return the :data:`FRAMEWORKS` that ``text`` names, in lower case."""
    lower = (text or "").lower()
    return frozenset(name.lower() for name in FRAMEWORKS if name.lower() in lower)
