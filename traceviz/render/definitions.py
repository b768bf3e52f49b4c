"""What figures mean: one sentence for each key of a fact, a column or a part of a bar, as ``data/definitions.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

_ANY = "*"


@cache
def definition(key: str, slug: str = "") -> str:
    """What the figure ``key`` of section (or finding) ``slug`` is, in a sentence; empty where nothing defines it."""
    figures, of_sections = catalogue()
    exact = of_sections.get(slug, {}).get(key) or figures.get(key)
    return exact or next((text for known, text in figures.items() if _stands_for(known, key)), "")


@cache
def catalogue() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Definitions by key, and those that hold in one section only, by its slug."""
    text = files("traceviz").joinpath("data", "definitions.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return tables["figures"], tables["sections"]


def _stands_for(known: str, key: str) -> bool:
    return known.endswith(_ANY) and key.startswith(known.removesuffix(_ANY))
