"""Flame graphs from tables, by class of step time, and the difference of two."""

from traceviz.pictures.flame.folded_stacks import folded

__all__ = ["folded"]
