"""The commands of `traceviz archive`: what they print, and their exit codes."""

import json

import polars as pl
import pytest
from click.testing import CliRunner

from tests.archive.made_sources import INPUT_BOUND, LAUNCH_BOUND, POINTER, make_sources
from traceviz.archive.archive import Archive
from traceviz.cli.main import main


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["archive", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def place(filled_once):
    return filled_once / "archive"


def id_of(place, source):
    return Archive(place).rows().filter(pl.col("source") == source)["trace_id"][0]


def test_add_says_what_was_added_known_and_quarantined_and_strict_fails(tmp_path, samples):
    sources = make_sources(tmp_path / "sources", samples)
    output = run("add", tmp_path / "a", sources, "--workers", "2", "--tag", "branch=main", "--job", "j1")
    assert output.splitlines()[0] == f"{tmp_path / 'a'}: 5 traces added, 2 quarantined."
    assert f"  {POINTER} (" in output
    assert "unknown-format: " in output
    rows = Archive(tmp_path / "a").rows().filter(pl.col("state") == "ready")
    assert set(rows["job"]) == {"j1"}
    output = run("add", tmp_path / "a", sources, "--workers", "1", "--strict", code=1)
    assert "0 traces added, 5 known, 2 quarantined." in output
    assert "Quarantined before, not tried again (--retry does):" in output
    assert "Not every trace was added." in output


def test_add_refuses_options_that_contradict_each_other_and_tags_that_are_none(tmp_path, samples):
    trace = samples / "synthetic" / INPUT_BOUND
    assert "key=value" in run("add", tmp_path / "a", trace, "--tag", "fast", code=2)
    run("add", tmp_path / "a", trace, "--workers", "2", "--scheduler", "tcp://127.0.0.1:1", code=2)
    run("add", tmp_path / "a", tmp_path / "no-such-file", code=2)
    assert not (tmp_path / "a" / "catalogue").exists()


def test_list_filters_sorts_and_prints_every_format(place):
    page = run("list", place, "--where", "format = 'nsys'", "--sort=-step_median", "--width", "80")
    assert page.index(INPUT_BOUND[:9]) < page.index(LAUNCH_BOUND[:9])
    assert max(map(len, page.splitlines())) <= 80
    document = json.loads(run("list", place, "--columns", "source,gpu", "--format", "json", "--limit", "1"))
    (row,) = document["sections"][0]["blocks"][0]["rows"]
    assert set(row) == {"source", "gpu"}
    assert run("list", place, "--format", "csv", "--columns", "all").startswith("trace_id,rank,state")
    assert "framework" in run("list", place, "--where", "framwork = 'x'", code=2)
    run("list", place, "--format", "junit", code=2)
    assert "names no column" in run("list", place, "--columns", " , ", code=2)


def test_list_writes_a_file_once(place, tmp_path):
    run("list", place, "-o", tmp_path / "list.csv", "--format", "csv")
    run("list", place, "-o", tmp_path / "list.csv", "--format", "csv", code=2)
    run("list", place, "-o", tmp_path / "list.csv", "--format", "csv", "--force")


def test_show_prints_the_report_and_its_sections(place):
    trace_id = id_of(place, INPUT_BOUND)
    assert "Input-bound: steps wait for data 46.3 %" in " ".join(
        run("show", place, trace_id[:6]).replace("▌", "").split()
    )
    first, whole = run("show", place, trace_id), run("show", place, trace_id, "--all")
    assert ("all 17 sections: --all" in first, "Step time breakdown" in first) == (True, False)
    assert "Step time breakdown" in whole
    document = json.loads(run("show", place, trace_id, "--format", "json", "--section", "steps"))
    assert [section["slug"] for section in document["sections"]] == ["steps"]
    run("show", place, "zzzz", code=2)
    assert "git-lfs" in run("show", place, id_of(place, POINTER), code=3)


def test_verify_ends_with_1_until_what_it_names_is_mended(filled):
    place = filled / "archive"
    assert run("verify", place).splitlines()[0].endswith("0 faults.")
    kernels = next(place.glob("traces/format=nsys/*/kernels.parquet"))
    source = json.loads((kernels.parent / "manifest.json").read_text())["source"]
    kernels.unlink()
    output = run("verify", place, "--quick", code=1)
    assert "damaged: traces/format=nsys/" in output
    assert "kernels.parquet: it is missing" in output
    output = run("verify", place, "--repair")
    assert "1 fault mended.\nTaken out of the archive: add their sources again:\n" in output
    assert f"  {source} (" in output
    run("verify", place)


def test_remove_and_export_want_to_know_which(filled, tmp_path):
    place = filled / "archive"
    assert "Traces are selected either by" in run("remove", place, code=2)
    assert "Traces are selected either by" in run("export", place, "-o", tmp_path / "out", code=2)
    assert run("remove", place, id_of(place, LAUNCH_BOUND)[:8]).endswith(": 1 trace removed.\n")
    assert run("export", place, "--where", "format = 'nsys'", "-o", tmp_path / "out").endswith(": 1 trace.\n")
    output = run("export", place, "--where", "true", "--table", "kernels", "-o", tmp_path / "k.parquet")
    assert output.endswith(": 510 rows of kernels of 4 traces.\n")
    assert pl.read_parquet(tmp_path / "k.parquet").height == 510


def test_no_command_makes_an_archive_but_add(tmp_path):
    for arguments in (["list"], ["verify"], ["show", "abcd"], ["remove", "abcd"], ["export", "abcd", "-o", "x"]):
        command, *others = arguments
        assert "is not an archive" in run(command, tmp_path, *others, code=2)
    assert list(tmp_path.iterdir()) == []


def test_the_group_lists_its_commands_in_the_order_of_use():
    lines = run("--help").partition("Commands:")[2].splitlines()
    commands = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert commands[0] == "add"
    assert set(commands) == {"add", "list", "show", "report", "trend", "query", "verify", "remove", "export"}


@pytest.mark.parametrize("source", ["empty", "notes", "unreachable"])
def test_an_add_that_finds_no_trace_is_an_error_and_makes_no_archive(tmp_path, source):
    (tmp_path / "src").mkdir()
    if source == "notes":
        (tmp_path / "src" / "notes.txt").write_text("no trace")
    named = "memory://nowhere/a.sqlite" if source == "unreachable" else tmp_path / "src"
    output = run("add", tmp_path / "new", named, "--workers", "1", code=3)
    assert "No trace was found in the sources." in output
    assert ("All files were refused" in output) == (source == "unreachable")
    assert not (tmp_path / "new").exists()


def test_a_file_is_no_archive_and_a_folder_of_others_is_not_to_become_one(tmp_path):
    (tmp_path / "t.zip").write_text("PK")
    for command in (("list", tmp_path / "t.zip"), ("add", tmp_path / "t.zip", tmp_path)):
        assert "t.zip is a file, not an archive" in run(*command, code=2)
    assert "traceviz archive add" not in run("list", tmp_path, code=2)


def test_json_that_is_longer_than_max_size_is_not_read_until_more_is_given(tmp_path, samples):
    place, source = tmp_path / "new", samples / "synthetic" / "torch_healthy.pt.trace.json.gz"
    assert "give --max-size" in run("add", place, source, "--workers", "1", "--max-size", "1kB")
    assert "1 trace added." in run("add", place, source, "--workers", "1", "--max-size", "1GB", "--retry")
