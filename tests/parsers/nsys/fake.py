"""A program in place of nsys, for what the real one cannot be made to do."""

import sys
from pathlib import Path

from traceviz.core import nsys_program

REPORT = b"NVIDIA Tegra Profiler Report 2024@6@2@25-246234924588v0.\n and then protobuf"

FAKE = """#!{python} -IS
import pathlib, shutil, sys, time
words = sys.argv[1:]
if "--version" in words:
    print("NVIDIA Nsight Systems version {version}-df9881f")
elif "--help" in words:
    print("Possible values are: sqlite, {extra}. --lazy=")
else:
    output = pathlib.Path(words[words.index("-o") + 1])
    print("Exporting [=== 50%] Exporting [======100%]")
{body}
"""


def fake_nsys(folder: Path, monkeypatch, body: str, extra: str = "text", version: str = "2022.4.2.1") -> Path:
    """Return an nsys that does ``body`` when asked to export; variables: output, words."""
    program = folder / "fake-nsys"
    indented = "\n".join("    " + line for line in body.splitlines())
    program.write_text(FAKE.format(python=sys.executable, body=indented, extra=extra, version=version))
    program.chmod(0o755)
    monkeypatch.setenv(nsys_program.OVERRIDE, str(program))
    return program
