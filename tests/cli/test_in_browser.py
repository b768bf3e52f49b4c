"""Pages go to a file, a pipe or a browser."""

import sys
import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner

from traceviz.cli import in_browser
from traceviz.cli.main import main
from traceviz.core.errors import UsageError

TRACE = str(Path(__file__).parents[2] / "sample_traces" / "synthetic" / "healthy.sqlite")


@pytest.fixture
def opened(monkeypatch, tmp_path):
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return addresses


def test_a_page_on_a_terminal_is_refused_with_2_ways_out(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(UsageError) as raised:
        in_browser.check_page("html", None, opens=False)
    assert "-o report.html" in raised.value.fix
    assert "--open" in raised.value.fix
    in_browser.check_page("html", Path("report.html"), opens=False)
    in_browser.check_page("html", None, opens=True)
    in_browser.check_page("terminal", None, opens=False)


@pytest.mark.process
def test_a_page_goes_to_a_pipe():
    result = CliRunner().invoke(main, ["report", TRACE, "--format", "html"])
    assert (result.exit_code, result.stdout[:15], result.stderr) == (0, "<!doctype html>", "")


@pytest.mark.process
def test_open_without_a_file_writes_one_that_stays_and_that_1_user_can_read(opened, tmp_path):
    result = CliRunner().invoke(main, ["report", TRACE, "--open"])
    (page,) = tmp_path.iterdir()
    assert (result.exit_code, result.stdout) == (0, "")
    assert opened == [page.as_uri()]
    assert f"the page: {page}" in result.stderr
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600
    assert page.suffix == ".html"


@pytest.mark.process
def test_open_with_a_file_opens_that_and_replaces_none_of_1(opened, tmp_path):
    page = tmp_path / "report.html"
    first = CliRunner().invoke(main, ["report", TRACE, "--open", "-o", str(page)])
    second = CliRunner().invoke(main, ["report", TRACE, "--open", "-o", str(page)])
    assert (first.exit_code, second.exit_code, opened) == (0, 2, [page.as_uri()])
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.process
def test_where_1_browser_is_missing_the_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    page = tmp_path / "report.html"
    result = CliRunner().invoke(main, ["report", TRACE, "--open", "-o", str(page)])
    assert result.exit_code == 0
    assert f"no browser could be started here: open {page} in yours" in result.stderr


@pytest.mark.parametrize("command", ["report", "compare"])
def test_open_and_another_format_are_refused_before_the_work_of_1_trace(command):
    result = CliRunner().invoke(main, [command, TRACE, TRACE, "--open", "--format", "json"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--open shows a page, and --format json is none." in result.stderr


@pytest.mark.process
def test_two_traces_compare_in_a_page(tmp_path):
    page = tmp_path / "comparison.html"
    result = CliRunner().invoke(main, ["compare", TRACE, TRACE, "--format", "html", "-o", str(page)])
    assert result.exit_code == 0, result.stderr
    assert "traceviz · Comparison" in page.read_text()


def test_a_temporary_file_that_cannot_be_written_is_said_with_1_way_out(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(in_browser.OutputError, match="temporary file"):
        in_browser.temporary_page("<!doctype html>")
