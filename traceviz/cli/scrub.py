"""``traceviz scrub``: a trace without secrets and personal data."""

from __future__ import annotations

from pathlib import Path

import click

from traceviz.cli.options import Source, in_lean_process, print_lines


@click.command()
@click.argument("trace", type=Source())
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File or folder to create.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
@in_lean_process
def scrub(trace: Path, output: Path, *, force: bool) -> None:
    """Copy TRACE without secrets and personal data.

    Removes environment, arguments, host and user names, addresses, paths, captured output and the names of other
    processes from an nsys SQLite or Parquet export, an nvprof database, an XPlane capture, a JSON trace of PyTorch,
    TensorFlow or JAX, a traceviz folder, a run folder, or a folder of such files. Verifies on the raw bytes that all of
    it is gone, and lists what was removed in scrubbed.json, in the output folder or next to the output file.
    """
    from traceviz.scrub import scrub as remove_private

    result = remove_private(trace, output, force=force)
    lines = [f"{output}: scrubbed, {result.verified_bytes:,} bytes verified. Removed:"]
    lines += [f"  {count:>7,}  {kind}" for kind, count in result.removed]
    lines += [f"  left out  {name}: {reason}" for name, reason in result.left_out]
    print_lines(lines)
