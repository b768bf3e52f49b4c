"""Flame graphs in a page: the controls above them, and the data for the script that draws them."""

from __future__ import annotations

import json

from markupsafe import Markup

from traceviz.render.html.components.colors import fill
from traceviz.render.html.components.element import element, joined, shown
from traceviz.report.pictures.packed import fitting
from traceviz.report.pictures.values import Flame, Pictures
from traceviz.trace.names.kernel_names import catalogue as kernels
from traceviz.trace.names.op_families import catalogue

_LABELS = {
    "op": "other operators",
    "module": "module",
    "backward": "backward pass",
    "range": "range or annotation",
    "step": "step",
    "input": "input",
    "copy": "copies and layout",
    "compilation": "compilation",
    "python": "the program",
    "library": "libraries",
    "standard": "Python's library",
    "native": "native code",
    "launch_call": "launch call",
    "sync_call": "waiting call",
    "memory_call": "memory call",
    "api_call": "other call of the device's API",
    "device_compute": "other kernels",
    "collective": "communication",
    "gemm": "matrix products",
    "matmul": "matrix products",
    "movement": "copies and layout",
    "thread": "thread",
    "other": "other",
}
_MOST_CHARACTERS = 200_000
"""Limit of the characters of all names and places together, unless 120 of each exceed it."""
_WITHOUT_SCRIPT = (
    "The graphs are drawn by the script of this page, which does not run here. The sections on operators, modules and "
    "ranges have their figures."
)
_KEYS = (
    "A node is as wide as its time, with all in it; what it calls is below it. Click a node, or press Enter, to fill "
    "the width with it; Escape goes back. Arrow keys move between nodes."
)
_OF_DIFFERENCES = (
    " In the difference, a node is as wide as the time of both sides together, and coloured by its change."
)


def flame_parts(pictures: Pictures) -> Markup:
    """Draw the controls, the place for the graph, and the data."""
    data = Markup(flame_data(pictures.flames))  # noqa: S704 (JSON without < and >)
    differs = any(flame.base is not None for flame in pictures.flames)
    sides = joined(
        element(
            "label",
            element("input", type="radio", name="tv-flame-view", value=side, checked=side == "difference"),
            f" {side}",
        )
        for side in ("difference", "new", "base")
    )
    views = element("fieldset", element("legend", "Side"), sides, class_="tv-flame-views")
    trees = joined(element("option", shown(flame.label), value=number) for number, flame in enumerate(pictures.flames))
    controls = joined(
        (
            element("label", "Graph ", element("select", trees, class_="tv-flame-tree")),
            element("label", "Time ", element("select", class_="tv-flame-class")),
            views if differs else Markup(),
            element("label", "Search ", element("input", type="search", class_="tv-flame-search", spellcheck="false")),
            element("button", "Copy as folded stacks", type="button", class_="tv-flame-copy"),
            element("p", _KEYS + (_OF_DIFFERENCES if differs else ""), class_="tv-flame-hint"),
        )
    )
    return element(
        "div",
        element("noscript", element("p", _WITHOUT_SCRIPT)),
        element("div", controls, class_="tv-flame-controls", hidden=True),
        element("script", data, type="application/json", id="tv-flame-data"),
        class_="tv-flame",
    )


def flame_data(flames: tuple[Flame, ...]) -> str:
    """Encode the graphs as JSON without ``<``, ``>`` and ``&``.

    ``texts`` holds the texts that names and places refer to by number. ``families`` holds the colours. For each graph,
    ``parents``, ``names``, ``places`` and ``families`` have one number per node; ``times`` and ``base`` have one list
    per class.
    """
    texts: dict[str, int] = {"": 0}
    families = {family: place for place, family in enumerate(dict.fromkeys(f for one in flames for f in one.families))}
    graphs = [_graph(flame, texts, families) for flame in flames]
    colors = [{"key": key, "label": _label(key), "color": fill(key, _place(key))} for key in families]
    document = {"version": 1, "texts": fitting(texts, _MOST_CHARACTERS), "families": colors, "flames": graphs}
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _graph(flame: Flame, texts: dict[str, int], families: dict[str, int]) -> dict[str, object]:
    def number(text: str) -> int:
        return texts.setdefault(shown(text), len(texts))

    return {
        "key": flame.key,
        "label": shown(flame.label),
        "measure": flame.measure,
        "whole": shown(flame.whole),
        "steps": flame.steps,
        "parents": flame.parents.tolist(),
        "names": [number(name) for name in flame.names],
        "places": [number(place) for place in flame.places],
        "families": [families[family] for family in flame.families],
        "classes": [list(known) for known in flame.classes],
        "times": flame.times.T.tolist(),
        "base": None if flame.base is None else flame.base.T.tolist(),
    }


def _place(family: str) -> int:
    """Return the position among the colours of a series, which is the same in every page."""
    known = [*catalogue().labels, *kernels().labels]
    return known.index(family) if family in known else 0


def _label(family: str) -> str:
    known = _LABELS.get(family) or catalogue().labels.get(family) or kernels().labels.get(family) or family
    return known if family in _LABELS else f"{known[:1].lower()}{known[1:]}"
