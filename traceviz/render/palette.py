"""Colours of drawings, the same in pages, in SVG, on the timeline and in flame graphs.

Everything drawn has a key: a class of step time, a family of kernels, a kind of host work. Keys of this module have
colours of their own; others take those of :data:`SERIES` in the order in which they appear. Every colour has one value
for light pages and one for dark ones, each with a contrast of at least 3:1 to its background. Neighbours differ for
colour-blind readers too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Color:
    """One colour on light and on dark pages, as ``#rrggbb``."""

    light: str
    dark: str


BACKGROUND = Color("#ffffff", "#14171c")
TEXT = Color("#1b1f24", "#e6e9ee")
QUIET = Color("#57606a", "#9aa4b2")
LINE = Color("#d0d7de", "#343b46")
PANEL = Color("#f6f8fa", "#1c2128")
ACCENT = Color("#0b62c4", "#6cb2ff")
GOOD = Color("#13753a", "#56c97a")
BAD = Color("#c0291d", "#ff7b6e")
WARNING = Color("#946200", "#e3b341")

SERIES = (
    Color("#2f6fb5", "#6aaef0"),  # blue
    Color("#c25a00", "#f59a4c"),  # orange
    Color("#23804f", "#58bf8a"),  # green
    Color("#9a4fb0", "#cf90e3"),  # purple
    Color("#a67a00", "#dcb63c"),  # ochre
    Color("#0e8192", "#4fc3d3"),  # teal
    Color("#c0334d", "#f57e92"),  # red
    Color("#6b6f1d", "#b5ba4e"),  # olive
    Color("#7c5a45", "#c9a48c"),  # brown
    Color("#5b6b80", "#9fb0c7"),  # slate
    Color("#b8418f", "#ec8fcb"),  # pink
    Color("#4c55b8", "#969ef5"),  # indigo
)
"""Colours for keys without one of their own, in this order."""

_BLUE, _ORANGE, _GREEN, _PURPLE, _OCHRE, _TEAL, _RED, _OLIVE, _BROWN, _SLATE, _PINK, _INDIGO = SERIES
_GREY = Color("#7d8590", "#8b949e")

COLORS: dict[str, Color] = {
    # classes of step time (traceviz.analyses.derived.host.classes)
    "device_compute": _BLUE,
    "communication": _PURPLE,
    "parameter_transfer": _BROWN,
    "copy_d2h": Color("#08697a", "#7fd4e0"),
    "copy_h2d": _TEAL,
    "other_device": _INDIGO,
    "input_wait": _ORANGE,
    "synchronisation": _RED,
    "allocation": _PINK,
    "kernel_launch": _OCHRE,
    "compilation": _OLIVE,
    "host_blocked": Color("#8a3b12", "#d98a5f"),
    "profiler": _GREY,
    **dict.fromkeys(("host_compute", "host"), _SLATE),
    "other": _GREY,
    # kinds of spans on the timeline
    "step": _SLATE,
    "copy": _TEAL,
    "memset": _INDIGO,
    "collective": _PURPLE,
    "input": _ORANGE,
    "python": _GREEN,
    "op": _BLUE,
    "module": _INDIGO,
    "range": _OLIVE,
    "launch_call": _OCHRE,
    "sync_call": _RED,
    "memory_call": _PINK,
    "api_call": _GREY,
    "os_call": _BROWN,
    "idle": Color("#8c959f", "#6e7681"),
    # families of kernels and operators (traceviz/data)
    "convolution": _BLUE,
    "gemm": _INDIGO,
    "matmul": _INDIGO,
    "attention": _OCHRE,
    "normalisation": Color("#2e7d6b", "#66c2ab"),
    "elementwise": _BROWN,
    "activation": _OLIVE,
    "pooling": _PINK,
    "reduction": _PINK,
    "softmax": Color("#7b5ea7", "#bda3e6"),
    "optimizer": Color("#8f2d3f", "#e8808f"),
    "embedding": Color("#3b7ea1", "#84c3e3"),
    "loss": Color("#8e2c5a", "#e38ab4"),
    "movement": _TEAL,
    "transfer": _TEAL,
    "fusion": Color("#8a3b12", "#d98a5f"),
    "compiled": Color("#4d7c0f", "#9acd5a"),
    "random": Color("#6e6a86", "#aaa5c4"),
    # activities of the host (traceviz.analyses.derived.causes.kinds)
    "compute": _BLUE,
    "operator": _BLUE,
    "input_op": Color("#b5651d", "#ffbd85"),
    "host_collective": _PURPLE,
    "blocking_copy": _TEAL,
    "device_wait": _RED,
    "launch": _OCHRE,
    "launch_queue": Color("#8a6d1a", "#e8cf7a"),
    "python_wait": Color("#5c7f3a", "#a9d18e"),
    "runtime": Color("#4f6272", "#8fa6b8"),
    "logging": _BROWN,
    **dict.fromkeys(("unexplained", "unsampled"), _GREY),
    "before_first_work": Color("#8c959f", "#6e7681"),
    "after_last_work": Color("#8c959f", "#6e7681"),
}
"""Colours of keys that mean the same wherever they are drawn."""


def color(key: str, position: int) -> Color:
    """Return the colour of ``key``; for an unknown key, the series colour of its ``position``."""
    return COLORS.get(key) or SERIES[position % len(SERIES)]
