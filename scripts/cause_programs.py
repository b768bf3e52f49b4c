"""Record the programs of ``sample_traces/causes`` with ``traceviz collect``, as a user would.

::

    python scripts/cause_programs.py record FOLDER             # run folders FOLDER/NAME of all programs
    python scripts/cause_programs.py record FOLDER --only jax  # of those with this in their name
    python scripts/cause_programs.py pack FOLDER               # scrub them into sample_traces/causes/recorded/NAME.zip

Programs of PyTorch run with the Python that TRACEVIZ_TORCH names, those of Keras, TensorFlow and JAX with that of
TRACEVIZ_ORACLE (``make oracle`` installs both). ``collect`` records with its defaults, including Nsight Systems if it
is installed. It sees neither the caller's environment nor other processes, so that neither gets into a recording.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

REPOSITORY = Path(__file__).resolve().parent.parent
CAUSES = REPOSITORY / "sample_traces" / "causes"
EXPECTED = CAUSES / "expected.toml"
RECORDED = CAUSES / "recorded"
TRACEVIZ = (sys.executable, "-m", "traceviz")
ALONE = ("unshare", "--pid", "--fork", "--mount-proc")
"""Prefix that runs a program where it sees no other processes; needs the rights of an administrator."""

_TELLING = 8
"""Least length of private names and values: shorter ones are words that any recording may hold."""
_RECORDED = frozenset({"LANG", "PATH", "TF_CPP_MIN_LOG_LEVEL", "TERM"})
"""Variables whose values are the same on any machine."""
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_SECONDS = 900


def programs() -> list[dict[str, Any]]:
    """Return the rows of ``expected.toml``, in their order."""
    rows: list[dict[str, Any]] = tomllib.loads(EXPECTED.read_text(encoding="utf-8"))["program"]
    return rows


def interpreter(name: str) -> str:
    """Return the Python that has the framework of a program.

    Raises:
        SystemExit: It is not installed.
    """
    variable, folder = ("TORCH", ".venv-torch") if name.startswith("torch_") else ("ORACLE", ".venv-oracle")
    python = os.environ.get(f"TRACEVIZ_{variable}") or str(REPOSITORY / folder / "bin" / "python")
    if not Path(python).exists():
        sys.exit(f"{name} needs {python}, which is not there: make oracle, or name another in TRACEVIZ_{variable}")
    return python


def record(program: dict[str, Any], folder: Path, collectors: str = "") -> str:
    """Record a program into the run folder ``folder/NAME``, with the defaults or ``collectors``.

    Returns:
        The messages of ``collect``.
    """
    run = folder / program["name"]
    chosen = ["--with", collectors] if collectors else []
    options = [*chosen, "--force", "-o", str(run), *program.get("collect", ())]
    # Some systems forbid :data:`ALONE`.
    allowed = shutil.which(ALONE[0]) and subprocess.run([*ALONE, "true"], capture_output=True, check=False)
    alone = ALONE if allowed and not allowed.returncode else ()
    command = [interpreter(program["name"]), *program.get("launch", ()), f"{program['name']}.py"]
    recording = [*alone, *TRACEVIZ, "collect", *options, "--", *command]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            recording,
            cwd=CAUSES / "programs",
            env={"PATH": os.defpath, "HOME": home, "LANG": "C.UTF-8", "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    said = "\n".join(line for line in done.stderr.splitlines() if line.startswith("traceviz:"))
    return said if done.returncode == 0 else f"exit code {done.returncode}\n{done.stderr}"


def pack(run: Path) -> Path:
    """Write ``recorded/NAME.zip``: the scrubbed tables of a run."""
    packed = RECORDED / f"{run.name}.zip"
    with tempfile.TemporaryDirectory() as temporary:
        copy, tables, scrubbed = (Path(temporary, kind, run.name) for kind in ("run", "tables", "scrubbed"))
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns("tables"))
        # The build of the system does not matter for the samples.
        manifest = copy / "manifest.json"
        stated = json.loads(manifest.read_text(encoding="utf-8"))
        for key in ("container", "kernel", "os"):
            stated.get("machine", {}).pop(key, None)
        manifest.write_text(json.dumps(stated), encoding="utf-8")
        tables.parent.mkdir()
        subprocess.run([*TRACEVIZ, "convert", str(copy), "-o", str(tables)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*TRACEVIZ, "scrub", str(tables), "-o", str(scrubbed)], check=True, stdout=subprocess.DEVNULL)
        _check_nothing_private(scrubbed)
        RECORDED.mkdir(exist_ok=True)
        with zipfile.ZipFile(packed, "w") as archive:
            for path in sorted(scrubbed.rglob("*.*")):
                entry = zipfile.ZipInfo(str(path.relative_to(scrubbed)), _EARLIEST)
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed


def _check_nothing_private(folder: Path) -> None:
    """Search the bytes of all files and the texts of all tables for facts that identify this machine and its user.

    Raises:
        SystemExit: Something was found. Nothing is packed.
    """
    told = {
        *(str(place) for place in (REPOSITORY, Path.home(), Path(sys.prefix))),
        *(value for value in (socket.gethostname(), socket.getfqdn(), getpass.getuser()) if len(value) >= _TELLING),
        *(value for name, value in os.environ.items() if len(value) >= _TELLING and name not in _RECORDED),
    }
    for path in sorted(folder.rglob("*.*")):
        texts = [path.read_bytes()]
        if path.suffix == ".parquet":
            texts.append(
                pl.read_parquet(path).select(pl.selectors.string(), pl.selectors.categorical()).write_csv().encode()
            )
        for private in told:
            if any(private.encode() in text for text in texts):
                sys.exit(f"{path.name} of {folder.name} still holds a value of this machine: {private}")


@contextmanager
def unpacked(packed: Path) -> Iterator[Path]:
    """Yield the recording of a program, as a folder of tables that exists during the context."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, packed.stem)
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)
        yield folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("record", "pack"))
    parser.add_argument("folder", type=Path, help="where the run folders are")
    parser.add_argument("--only", default="", help="only programs with this in their name")
    parser.add_argument("--with", default="", dest="collectors", help="what to record with (the defaults of collect)")
    options = parser.parse_args(arguments)
    for program in programs():
        if options.only not in program["name"]:
            continue
        if options.what == "record":
            print(f"{program['name']}\n{record(program, options.folder.absolute(), options.collectors)}", flush=True)
        else:
            packed = pack(options.folder / program["name"])
            print(f"{packed.relative_to(REPOSITORY)}: {packed.stat().st_size / 1000:.0f} kB", flush=True)
    shutil.rmtree(CAUSES / "programs" / "__pycache__", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
