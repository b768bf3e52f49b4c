"""``traceviz convert``: a trace as a folder of Parquet tables."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from traceviz.cli.options import ReadingOptions, print_lines, progress_bar_on_stderr, reading_options, traces_argument


@click.command()
@traces_argument
@reading_options
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder to create.")
@click.option("--force", is_flag=True, help="Replace an existing traceviz folder.")
@click.option("--keep-private", is_flag=True, help="Store command line and host name too.")
def convert(
    traces: tuple[Path, ...], reading: ReadingOptions, output: Path, *, force: bool, keep_private: bool
) -> None:
    """Write TRACE as a folder of Parquet tables; traces of several ranks become one folder."""
    from traceviz import api

    with progress_bar_on_stderr() as progress:
        api.convert(
            traces,
            output,
            keep_private=keep_private,
            force=force,
            progress=progress,
            **asdict(reading),
        )
    from traceviz.trace.tables import read_manifest

    counts = {name: count for name, count in read_manifest(output)["tables"].items() if count}
    print_lines([f"{output}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items())])
