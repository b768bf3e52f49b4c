"""Definitions of figures from ``data/definitions.toml``: one sentence per key of a fact, a column or a bar's part."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

_ANY = "*"


@cache
def definition(key: str, slug: str = "") -> str:
    """Return the definition of the figure ``key`` of section (or finding) ``slug``; empty if it has none."""
    figures, of_sections = catalogue()
    exact = of_sections.get(slug, {}).get(key) or figures.get(key)
    return exact or next(
        (
            text
            for known, text in figures.items()
            if (known.endswith(_ANY) and key.startswith(known.removesuffix(_ANY)))
        ),
        "",
    )


@cache
def catalogue() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the definitions by key, and those for a single section, by its slug."""
    text = files("traceviz").joinpath("data", "definitions.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return tables["figures"], tables["sections"]
