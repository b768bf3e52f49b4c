"""Names shortened for use within a sentence."""

from __future__ import annotations

import re

SCRIPT, IMPORTED = "<module>", "<imported module>"
"""Function names that Python gives to top-level code: of the program's own script, and of a module it imports."""
LONGEST_NAME = 48
"""Maximum length of a name within a sentence, in characters."""
_FRAME = re.compile(r"^(?:\$|(?:.*/)?)(?P<file>[^/()$:]+)(?:\((?P<first>\d+)\): |:(?P<line>\d+) )(?P<function>.+)$")
"""Frames of Python as torch (``lib/a.py(12): f``) and JAX (``$a.py:12 f``) name them."""
_GENERATED = re.compile(r"^c[a-z2-7]{51}\.py$")
"""Files that Inductor generates: their names are hashes."""


def shortened(name: str, *, line: bool = False) -> str:
    """Shorten ``name`` for use within a sentence.

    A Python frame becomes its function and file, and the line if ``line`` is set. Profilers record the first line of a
    function; samples record the line that ran.
    """
    frame = _FRAME.match(name)
    text = name
    if frame is not None:
        function = frame["function"].rpartition(".")[2] if line else frame["function"]
        file = "code from Inductor" if _GENERATED.match(frame["file"]) else frame["file"]
        where = f"{file}:{frame['line']}" if line and frame["line"] else file
        if function in {SCRIPT, IMPORTED}:
            text = where if line and frame["line"] else script(frame["file"], function)
        else:
            text = f"{function} ({where})"
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def script(file: str, function: str = SCRIPT) -> str:
    """Return the top level of a file within a sentence: ``the script train.py``, ``the module data.py``."""
    if file == "<stdin>":
        return "the script from stdin"
    if file.startswith("<") or file == "cell":  # python -c and exec, and notebooks
        return f"the code in {file}" if file != "cell" else "the cell"
    return f"the {'script' if function == SCRIPT else 'module'} {file}"


def function_of(kernel: str) -> str:
    """Return the function of a demangled kernel name, without its type and arguments."""
    plain = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel)
    return re.split(r"[<(]", plain, maxsplit=1)[0].rpartition(" ")[2] or kernel
