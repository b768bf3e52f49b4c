"""Functions within sentences: the line next to a function has its own share; the top level of a file is its script."""

import polars as pl
import pytest

from traceviz.analyses.derived.stacks.functions import functions, without_module


def rows(*lines):
    texts = [
        (f"train.py {function}", f"train.py:{line} {function}", leaf, time) for function, line, leaf, time in lines
    ]
    frame = pl.DataFrame(texts, schema=["function", "location", "leaf", "time_ns"], orient="row")
    return frame.with_columns(pl.col("time_ns").cast(pl.Float64).alias("samples"))


@pytest.mark.parametrize(
    ("lines", "words", "share"),
    [
        ([("load", 41, "open", 95), ("load", 44, "read", 5)], "load (train.py:41)", 1.0),
        ([("load", 41, "open", 60), ("load", 44, "read", 40)], "load (train.py, 60.0 % of it in line 41)", 1.0),
        (
            [("load", 41, "a", 30), ("load", 41, "b", 30), ("load", 44, "c", 40)],
            "load (train.py, 60.0 % of it in line 41)",
            1.0,
        ),
        ([("<module>", 6, "x", 51), ("<module>", 9, "y", 49)], "the script train.py (51.0 % of it in line 6)", 1.0),
        ([("<module>", 6, "x", 60), ("load", 9, "y", 40)], "the script train.py (line 6)", 0.6),
    ],
)
def test_the_line_of_a_function_has_its_own_share_beside_that_of_the_function(lines, words, share):
    first = functions(rows(*lines))[0]
    assert (first.words, first.share) == (words, share)


def test_tables_name_lines_of_scripts_by_file_and_line_and_their_functions_as_scripts():
    frames = {
        "train.py:41 <module>": "train.py:41",
        "train.py <module>": "the script train.py",
        "data.py <imported module>": "the module data.py",
        "data.py:3 <imported module>": "data.py:3",
        "<string> <module>": "the code in <string>",
        "<stdin> <module>": "the script from stdin",
        "cell <module>": "the cell",
        "train.py:41 <listcomp>": "train.py:41 <listcomp>",
        "train.py:41 load": "train.py:41 load",
        "aten::mm": "aten::mm",
    }
    shown = pl.DataFrame({"frame": list(frames)}).select(without_module(pl.col("frame")))["frame"].to_list()
    assert shown == list(frames.values())
