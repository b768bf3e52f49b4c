"""Python functions that a profiler recorded, read as frames: what ``torch.profiler`` and JAX's tracer call them.

::

    torch   train.py(41): decode_jpeg        <built-in function sleep>
    JAX     $train.py:41 decode_jpeg         $time sleep
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.stacks.kinds import with_activity, with_purpose

_TORCH = r"^(?<file>[^()]*\.py)\((?<line>\d+)\): (?<function>.*)$"
_JAX = r"^\$(?<file>[^ ]+):(?<line>\d+) (?<function>.*)$"
_BUILT_IN = r"^<built-in (?:function|method) (?<function>\w+)"
_JAX_BUILT_IN = r"^\$(?<module>[\w.]+) (?<function>\w+)$"

_LIBRARY = (
    r"site-packages/|dist-packages/|^(torch|torchvision|torchaudio|transformers|jax|jaxlib|tensorflow|keras|numpy|PIL|scipy)/"
    r"|^(profiler|api|pjit|pxla|array|core|interpreter|traceback_util|compiler|mlir|partial_eval|linear_util)\.py$"
)
_STANDARD = (
    r"/lib/python\d[\d.]*/[^/]+\.py$|/lib/python\d[\d.]*/(json|logging|multiprocessing|concurrent|asyncio|importlib|http|email|urllib"
    r"|collections|ctypes|encodings|unittest|xml)/"
    r"|^(threading|contextlib|functools|queue|socket|selectors|runpy|subprocess|pickle|copy|random|builtins|tempfile"
    r"|shutil|os|posixpath|codecs|gzip|zipfile|weakref|abc|typing|enum|re|inspect|ast|dis|types|traceback|warnings"
    r"|statistics|struct|heapq|bisect|itertools|argparse|glob|pathlib|csv|datetime|time|signal|string|textwrap|tokenize)\.py$"
    r"|^(json|logging|multiprocessing|concurrent|asyncio|importlib|collections|http|urllib|email|xml)/|^<"
)
_PACKAGE = r"^.*(?:site-packages|dist-packages|/lib/python\d[\d.]*)/"
"""What a file's name is shortened by, as the sampler does it."""


def function_meanings(tree: CallTree) -> pl.DataFrame:
    """What the stack at each call says: ``kind, activity, inside, location, function, leaf``, rows of the tree's.

    Args:
        tree: Calls of Python functions of all threads, with ``name``.
    """
    names = tree.calls["name"].cast(pl.String)
    distinct = with_activity(with_purpose(function_frames(names.unique())))
    of_call = names.to_frame("name").join(distinct, on="name", how="left", maintain_order="left")
    own = (of_call["origin"] == "program").to_numpy()
    library = (of_call["origin"] == "library").to_numpy()
    rows = np.arange(tree.calls.height)
    near, far = tree.nearest(own), tree.nearest(library)
    place = np.where(near >= 0, near, np.where(far >= 0, far, rows))
    purposeful = of_call["purpose"].is_not_null().to_numpy()
    around = np.where(tree.parent >= 0, tree.nearest(purposeful)[tree.parent], -1)
    outermost = tree.nearest(purposeful & (around < 0))
    index = pl.Series(outermost, dtype=pl.Int64)
    purpose = of_call["purpose"].gather(index.set(index < 0, None))
    says = pl.Series(tree.nearest(of_call["activity"].is_not_null().to_numpy()), dtype=pl.Int64)
    activity = of_call["activity"].gather(says.set(says < 0, None)).fill_null("python").alias("activity")
    texts = of_call.select(
        pl.when(pl.col("line").is_null())
        .then(pl.format("{} {}", "file", "function"))
        .otherwise(pl.format("{}:{} {}", "file", "line", "function"))
        .str.strip_chars(" ")
        .alias("location"),
        pl.format("{} {}", "file", "function").str.strip_chars(" ").alias("function"),
    )
    return pl.DataFrame(
        [
            pl.DataFrame([purpose, activity]).select(pl.coalesce("purpose", "activity").alias("kind")).to_series(),
            activity,
            pl.Series("inside", (outermost >= 0) & (near >= outermost)),
            texts["location"].gather(place),
            texts["function"].gather(place),
            texts["location"].alias("leaf"),
        ]
    )


def function_frames(names: pl.Series) -> pl.DataFrame:
    """Names of recorded functions as frames: ``name, file, line, function, origin``.

    A function of which only the name is known is one of compiled code; its ``file`` is empty.
    """
    frame = pl.DataFrame({"name": names})
    torch, jax = pl.col("name").str.extract_groups(_TORCH), pl.col("name").str.extract_groups(_JAX)
    called = pl.col("name").str.extract(_BUILT_IN, 1)
    jax_called = pl.col("name").str.extract_groups(_JAX_BUILT_IN)
    file = pl.coalesce(torch.struct.field("file"), jax.struct.field("file")).str.replace(_PACKAGE, "")
    whole = pl.coalesce(torch.struct.field("file"), jax.struct.field("file"), pl.lit(""))
    module_call = pl.concat_str([jax_called.struct.field("module"), jax_called.struct.field("function")], separator=".")
    function = pl.coalesce(
        torch.struct.field("function"), jax.struct.field("function"), called, module_call, pl.col("name")
    )
    origin = (
        pl.when(whole == "")
        .then(pl.lit("native"))
        .when(whole.str.contains(_STANDARD))
        .then(pl.lit("standard"))
        .when(whole.str.contains(_LIBRARY))
        .then(pl.lit("library"))
        .otherwise(pl.lit("program"))
    )
    line = pl.coalesce(torch.struct.field("line"), jax.struct.field("line")).cast(pl.Int32, strict=False)
    return frame.select(
        "name", file.fill_null("").alias("file"), line.alias("line"), function.alias("function"), origin.alias("origin")
    )
