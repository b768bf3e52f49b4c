"""Traces of an archive with private data: the catalogue marks them, and a user who adds them again is notified."""

import polars as pl
import pytest
from click.testing import CliRunner

from tests.archive.made_sources import INPUT_BOUND, LAUNCH_BOUND
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.cli.main import main


@pytest.fixture
def mixed(filled_once, tmp_path):
    """An archive of two traces; one was added with its private data."""
    archive = Archive(tmp_path / "archive")
    sources = filled_once / "sources"
    archive.add(sources / INPUT_BOUND, keep_private=True, runner=SerialRunner())
    archive.add(sources / LAUNCH_BOUND, runner=SerialRunner())
    return archive, sources


def test_the_catalogue_tells_which_traces_hold_what_is_private(mixed):
    archive, _ = mixed
    assert {row["source"]: row["private"] for row in archive.rows().to_dicts()} == {
        INPUT_BOUND: True,
        LAUNCH_BOUND: False,
    }
    answer = archive.query("SELECT source FROM catalogue WHERE private")
    assert answer["source"].to_list() == [INPUT_BOUND]


def test_adding_private_traces_again_without_that_says_that_it_is_still_there(mixed):
    archive, sources = mixed
    named = [sources / INPUT_BOUND, sources / LAUNCH_BOUND]
    done = archive.add(*named, runner=SerialRunner())
    assert (done.known, done.known_private) == (2, 1)
    assert archive.add(*named, keep_private=True, runner=SerialRunner()).known_private == 0
    assert archive.remove(condition="private") == 1
    done = archive.add(*named, runner=SerialRunner())
    assert (done.added, done.known, done.known_private) == (1, 1, 0)
    assert not archive.rows().filter(pl.col("state") == "ready")["private"].any()


def test_a_quarantined_trace_tells_it_too(filled_once, tmp_path):
    archive = Archive(tmp_path / "archive")
    archive.add(filled_once / "sources" / "pointer.sqlite", keep_private=True, runner=SerialRunner())
    assert archive.rows()["private"].to_list() == [True]


def test_the_command_says_what_to_do(mixed, in_process):
    archive, sources = mixed
    ran = CliRunner().invoke(main, ["archive", "add", archive.store.url, str(sources / INPUT_BOUND), "--workers", "1"])
    assert ran.exit_code == 0
    assert "1 of them was added with --keep-private, and what is private is still in there." in ran.output
    assert f"To have it removed: traceviz archive remove {archive.store.url} --where private; then add" in ran.output
    ran = CliRunner().invoke(
        main, ["archive", "list", archive.store.url, "--columns", "source,private", "--where", "private"]
    )
    assert ran.exit_code == 0
    assert INPUT_BOUND in ran.output
    assert LAUNCH_BOUND not in ran.output
