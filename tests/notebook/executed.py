"""Notebooks that are made and executed, each by a kernel of its own: what their cells put out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

KERNEL = "tested"
EXECUTE = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, kernel_name=sys.argv[3], timeout=300, allow_errors=True).execute()
nbformat.write(notebook, sys.argv[2])
"""
"""A process of its own: what nbclient leaves open is no warning of ours."""
LAUNCHER = """
import site, sys
site.addsitedir({packages!r})
from ipykernel import kernelapp
kernelapp.launch_new_instance()
"""
"""Another Python finds IPython, traceviz and what that needs behind its own packages."""


@dataclass(frozen=True)
class Output:
    """The output of one cell.

    Args:
        printed: Its stdout and stderr.
        shown: Its displayed outputs, by type of content, its result last.
        errors: Name of the class of its exception; empty without one.
        traceback: That as text.
    """

    printed: str
    shown: tuple[dict[str, Any], ...]
    errors: tuple[str, ...]
    traceback: str

    @property
    def html(self) -> str:
        """Of what it displayed last."""
        return self.shown[-1]["text/html"]

    @property
    def plain(self) -> str:
        """The same as text."""
        return self.shown[-1]["text/plain"]


def run_notebook(cells: Sequence[str], folder: Path, python: str = sys.executable) -> list[Output]:
    """Execute ``cells`` with ``folder`` as the current one, by a kernel of ``python``; what each of them put out."""
    return outputs_of(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), folder, python
    )


def outputs_of(notebook: Any, folder: Path, python: str = sys.executable) -> list[Output]:
    """Execute a notebook; what each of its cells of code put out."""
    source, executed = folder / "source.ipynb", folder / "executed.ipynb"
    nbformat.write(notebook, source)
    _install_kernel(python, folder / "jupyter")
    environment = {**os.environ, "JUPYTER_PATH": str(folder / "jupyter"), "IPYTHONDIR": str(folder / "ipython")}
    command = [sys.executable, "-c", EXECUTE, str(source), str(executed), KERNEL]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    done = nbformat.read(executed, as_version=4)
    return [_output(cell.outputs) for cell in done.cells if cell.cell_type == "code"]


def _install_kernel(python: str, folder: Path) -> None:
    launcher = folder / "kernels" / KERNEL / "launch.py"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(LAUNCHER.format(packages=sysconfig.get_path("purelib")))
    command = [python, str(launcher), "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": KERNEL, "language": "python"}
    (launcher.parent / "kernel.json").write_text(json.dumps(spec))


def _output(outputs: Sequence[Any]) -> Output:
    errors = [one for one in outputs if one.output_type == "error"]
    return Output(
        "".join(one.text for one in outputs if one.output_type == "stream"),
        tuple(one.data for one in outputs if one.output_type in {"display_data", "execute_result"}),
        tuple(one.ename for one in errors),
        "\n".join(line for one in errors for line in one.traceback),
    )
