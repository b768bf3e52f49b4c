"""Colours of drawings, the same in pages, in SVG, on the timeline, in flame graphs and in the terminal.

Everything drawn has a key: a class of step time, a family of kernels, a kind of host work. A key of this module has one
colour wherever it is drawn; others take those of :data:`SERIES` in the order in which they appear. Every colour has one
value for light pages and one for dark ones, each with a contrast of at least 3:1 to its background. Keys that are drawn
together differ for colour-blind readers too: a test simulates their sight.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count


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

COLORS: dict[str, Color] = {
    # classes of step time, parts of the judged time (traceviz.analyses.derived.host.classes, headline.parts)
    **dict.fromkeys(("device_compute", "compute"), Color("#1f4080", "#72a3f8")),
    **dict.fromkeys(("communication", "collective", "host_collective"), Color("#9955bd", "#a562b8")),
    "parameter_transfer": Color("#432000", "#dbb402"),
    "copy_d2h": Color("#105c7a", "#81ecff"),
    "copy_h2d": Color("#637c84", "#429ea3"),
    **dict.fromkeys(("other_device", "memset"), Color("#4892ff", "#9c74eb")),
    **dict.fromkeys(("input", "input_wait", "input_op"), Color("#d18120", "#c17528")),
    **dict.fromkeys(("synchronisation", "sync_call", "device_wait"), Color("#ac2c2c", "#ff8ccc")),
    **dict.fromkeys(("allocation", "memory_call"), Color("#eb55b2", "#b2508b")),
    **dict.fromkeys(("launch", "kernel_launch", "launch_call"), Color("#ae7300", "#eccd32")),
    "launch_queue": Color("#4777e1", "#9acda0"),
    "compilation": Color("#4f3700", "#afa200"),
    "host_blocked": Color("#242029", "#e56cc5"),
    **dict.fromkeys(("profiler", "profiler_overhead"), Color("#7e9084", "#ced7cc")),
    **dict.fromkeys(("host", "host_compute", "program"), Color("#484550", "#9aada1")),
    **dict.fromkeys(("unexplained", "unsampled", "thread"), Color("#5f6b59", "#6c6764")),
    "other": Color("#9a938c", "#eaf6ea"),
    **dict.fromkeys(("idle", "before_first_work", "after_last_work"), Color("#8d949c", "#6f7583")),
    # causes of idle time, kinds of host work (traceviz.analyses.derived.causes.kinds)
    "blocking_copy": Color("#5d43a5", "#b8c771"),
    "migration": Color("#810a73", "#ec7cae"),
    "registration": Color("#8b5d23", "#a88455"),
    "stream": Color("#174977", "#459ea7"),
    "first_launch": Color("#353e3a", "#99b26c"),
    **dict.fromkeys(("operator", "op"), Color("#2097fb", "#f9cfff")),
    "runtime": Color("#5a347f", "#27a39f"),
    "python": Color("#15650c", "#a4ec96"),
    **dict.fromkeys(("python_wait", "wait", "waiting"), Color("#55a458", "#08c2d3")),
    "library": Color("#a255c1", "#d193f7"),
    "native": Color("#1f7c8a", "#6ccdd8"),
    "standard": Color("#505265", "#8599a4"),
    "logging": Color("#473538", "#e79789"),
    "serialization": Color("#9d2aa5", "#cb8cca"),
    **dict.fromkeys(("import", "imports"), Color("#7888bf", "#796ee5")),
    "io": Color("#634d4f", "#d0c1b3"),
    "sleep": Color("#b88596", "#e56e81"),
    "lock": Color("#c06112", "#e9bb3b"),
    "gil": Color("#a354cf", "#b076cb"),
    "range": Color("#14292d", "#8c6818"),
    "module": Color("#4558ba", "#9ba0fb"),
    **dict.fromkeys(("os_call", "child_process"), Color("#7a615f", "#cda188")),
    "running": Color("#a83c98", "#dc82d1"),
    "driver": Color("#3f6d8b", "#8aa0f7"),
    "api_call": Color("#7c8af9", "#8bb9eb"),
    # families of kernels and operators (traceviz/data)
    "convolution": Color("#2950b0", "#1691ef"),
    **dict.fromkeys(("gemm", "matmul"), Color("#4279f4", "#a5aad4")),
    "attention": Color("#a26f00", "#e7c852"),
    "normalisation": Color("#318a7c", "#b2cda2"),
    "elementwise": Color("#59453c", "#b0986b"),
    "activation": Color("#08774e", "#dfa870"),
    "pooling": Color("#6d2004", "#aa2bbc"),
    "reduction": Color("#510055", "#6a5d8f"),
    "softmax": Color("#8986de", "#ef8ea5"),
    "loss": Color("#7a438a", "#817280"),
    "embedding": Color("#3656e6", "#beb700"),
    "indexing": Color("#a64310", "#c3722d"),
    "sorting": Color("#937aae", "#1d75e5"),
    "recurrent": Color("#628650", "#91d0cf"),
    "image": Color("#041f9e", "#e1ea17"),
    **dict.fromkeys(("copy", "movement"), Color("#06aa4b", "#257054")),
    "transfer": Color("#003d7c", "#1ae1ff"),
    "fusion": Color("#d25680", "#cc912e"),
    "compiled": Color("#2a2000", "#77f2ca"),
    "random": Color("#3f3543", "#8993c7"),
    "optimizer": Color("#853562", "#e56e9b"),
    "backward": Color("#9d2aa5", "#cb8cca"),
    # parts and phases of a run (traceviz.analyses.derived.run_parts)
    **dict.fromkeys(("step", "steps"), Color("#685367", "#b6c0cc")),
    "warmup": Color("#083850", "#27a88e"),
    "preparation": Color("#a3780b", "#f0d071"),
    "train": Color("#535fc7", "#e399ff"),
    "epoch": Color("#174977", "#459ea7"),
    "validation": Color("#bd67ef", "#af7efa"),
    "saving": Color("#5713d2", "#d80c5e"),
    "loading": Color("#d75e00", "#fac474"),
    "collection": Color("#a83c98", "#dc82d1"),
    "between": Color("#530800", "#ffad19"),
    "after": Color("#8b5d23", "#a88455"),
    "shutdown": Color("#810a73", "#ec7cae"),
}
"""Colours of keys that mean the same wherever they are drawn."""


def color(key: str, position: int) -> Color:
    """Return the colour of ``key``; for an unknown key, the series colour of its ``position``."""
    return COLORS.get(key) or SERIES[position % len(SERIES)]


def colors(keys: Iterable[str]) -> dict[str, Color]:
    """Return the colour of each key: its own, or series colours in the order in which keys without one appear."""
    found: dict[str, Color] = {}
    unknown = count()
    for key in keys:
        if key not in found:
            found[key] = COLORS.get(key) or SERIES[next(unknown) % len(SERIES)]
    return found
