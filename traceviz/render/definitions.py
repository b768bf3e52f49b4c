"""What figures mean: one sentence for each key of a fact, a column or a part of a bar, as ``data/definitions.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


def definition(key: str, slug: str = "") -> str:
    """What the figure ``key`` of section ``slug`` is, in a sentence; empty where the catalogue has none."""
    figures, of_sections = _catalogue()
    return of_sections.get(slug, {}).get(key) or figures.get(key, "")


@cache
def _catalogue() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Definitions by key, and those that hold in one section only, by its slug."""
    text = files("traceviz").joinpath("data", "definitions.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return tables["figures"], tables["sections"]
