"""An environment for each tool, in ``build/other_tools``: what cannot be installed is reported and left out.

Sources of packages that this machine cannot reach can be replaced: ``TRACELENS_SOURCE`` names a folder with a checkout
of TraceLens.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.diagnosis.other_tools.tools import TOOLS, Tool

FOLDER = Path("build/other_tools")
EXTENSION = "duckdb_extension_sqlite_scanner/extensions"


def python_of(tool: Tool) -> Path:
    """Return the Python of the environment of a tool."""
    return (FOLDER / tool.name / "bin" / "python").absolute()


def home_of(tool: Tool) -> Path:
    """Return the home folder of the processes of a tool: they may write there."""
    return (FOLDER / tool.name / "home").absolute()


def is_installed(tool: Tool) -> bool:
    """Return whether the environment of a tool is complete."""
    return (FOLDER / tool.name / "installed").exists()


def install(tool: Tool) -> str:
    """Make the environment of a tool; return the reason if that fails, else nothing."""
    folder = FOLDER / tool.name
    venv.create(folder, with_pip=True)
    home_of(tool).mkdir(exist_ok=True)
    replaced = os.environ.get(f"{tool.name.upper()}_SOURCE")
    packages = [replaced if replaced and package.startswith("git+") else package for package in tool.packages]
    done = subprocess.run(
        [python_of(tool), "-m", "pip", "install", "--quiet", *packages], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reasons = [line.strip() for line in done.stderr.splitlines() if line.strip().startswith(("fatal:", "ERROR:"))]
        return reasons[0] if reasons else f"pip ends with {done.returncode}"
    for source in folder.glob(f"lib/*/site-packages/{EXTENSION}/*/*"):
        # DuckDB looks for extensions below the home folder, by its version and platform.
        target = home_of(tool) / ".duckdb" / "extensions" / source.parent.name / "linux_amd64"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (folder / "installed").touch()
    return ""


def main() -> int:
    """Install the tools that are missing."""
    for tool in TOOLS:
        reason = "" if is_installed(tool) else install(tool)
        print(f"{tool.name}: {f'not installed: {reason}' if reason else 'installed'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
