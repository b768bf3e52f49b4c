"""An installed plugin, from the command line: the example, and broken ones."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import traceviz.plugins
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.process

EXAMPLE = REPOSITORY / "examples" / "plugin"
SAMPLE = EXAMPLE / "sample.acme"
HEALTHY = REPOSITORY / "sample_traces" / "synthetic" / "healthy.sqlite"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The example, installed by pip without a network; packages in this folder can be imported."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", folder / "target")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, source], check=True, capture_output=True)
    return folder / "target"


def run(*arguments, plugins, command=("-m", "traceviz")):
    environment = {**os.environ, "PYTHONPATH": str(plugins)}
    line = [sys.executable, *command, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment, cwd=plugins)


def test_a_report_on_a_trace_of_the_plugin_has_its_section_and_its_finding(installed):
    done = run("report", SAMPLE, "--format", "json", plugins=installed)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["run"]["format"]) == (0, "", "acme")
    (finding,) = (finding for finding in report["findings"] if finding["code"] == "ACME101")
    assert finding["cost_ns"] == 18_000
    assert "acme_short_kernels" in [section["slug"] for section in report["sections"]]


def test_a_page_shows_the_finding_of_the_plugin(installed):
    arguments = ("--section", "acme_short_kernels", "--reader", "acme", "--format", "html")
    done = run("report", SAMPLE, *arguments, plugins=installed)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Short kernels (ACME)") >= 1


def test_the_plugin_is_known_to_explain_section_and_reader(installed):
    assert "between two kernels" in run("explain", "acme-short-kernels", plugins=installed).stdout
    assert "nvprof-sqlite, resources" in run("report", SAMPLE, "--reader", "acm", plugins=installed).stderr


def test_the_example_keeps_the_contracts_of_traceviz(installed):
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", EXAMPLE)
    done = run(*options, EXAMPLE / "tests", plugins=installed, command=("-m", "pytest"))
    assert done.returncode == 0, done.stdout
    assert "20 passed" in done.stdout


def test_traces_of_others_have_the_same_report_with_the_plugin(installed, tmp_path):
    with_plugin, without = (run("report", HEALTHY, "--format", "json", plugins=p) for p in (installed, tmp_path))
    assert with_plugin.stdout == without.stdout


def broken(folder, group, name, home, code="raise RuntimeError('half installed')"):
    """Make a package whose entry point fails; it writes a file when it is imported."""
    metadata = folder / "broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[traceviz.{group}]\n{name} = {home}\n")
    (folder / "broken.py").write_text(f"open({str(folder / 'imported')!r}, 'w').close()\n{code}\n")


def test_a_report_that_does_not_need_a_broken_reader_warns_and_succeeds(tmp_path):
    broken(tmp_path, "readers", "acme", "broken:X")
    done = run("report", HEALTHY, "--section", "steps", plugins=tmp_path)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert (
        "warning: The plugin broken 1.0 failed: reader 'acme' cannot be loaded. RuntimeError: half installed." in line
    )
    assert "pip uninstall broken" in line


@pytest.mark.parametrize(
    ("group", "arguments"),
    [
        ("readers", ("report", HEALTHY, "--reader", "acme")),
        ("renderers", ("report", HEALTHY, "--format", "acme")),
        ("analyses", ("report", HEALTHY, "--section", "acme")),
    ],
)
def test_naming_a_broken_item_ends_with_3_and_the_reason(tmp_path, group, arguments):
    broken(tmp_path, group, "acme", "broken:X")
    done = run(*arguments, plugins=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "half installed" in done.stderr


def test_an_error_about_a_path_imports_no_plugin(tmp_path):
    for group in ("readers", "analyses"):
        shutil.rmtree(tmp_path / "broken-1.0.dist-info", ignore_errors=True)
        broken(tmp_path, group, "acme", "broken:X")
        done = run("report", "gone.nsys-rep", plugins=tmp_path)
        assert (done.returncode, (tmp_path / "imported").exists()) == (3, False)
        assert done.stderr.startswith("error: No such file")


def test_an_analysis_that_fails_is_skipped_and_the_rest_is_reported(tmp_path):
    code = (
        "from traceviz.plugins import AnalysisEntry\nENTRY = AnalysisEntry('acme', 'broken:Gone', needs=('kernels',))"
    )
    broken(tmp_path, "analyses", "acme", "broken:ENTRY", code)
    done = run("report", HEALTHY, "--format", "json", plugins=tmp_path)
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert "section 'acme'" in done.stderr
    assert {"slug": "acme", "reason": "its plugin failed: AttributeError", "tables": []} in report["skipped"]
    assert len(report["sections"]) > 10


def test_a_reader_that_fails_to_recognise_a_file_matches_nothing(tmp_path):
    code = (
        "from traceviz.plugins import Reader\nclass X(Reader):\n    format = 'acme'\n    title = 'ACME'\n"
        "    def sniff(self, head, path):\n        return head[10**9]\n"
        "    def read(self, path, options):\n        yield"
    )
    broken(tmp_path, "readers", "acme", "broken:X", code)
    done = run("report", HEALTHY, "--section", "steps", plugins=tmp_path)
    assert done.returncode == 0
    assert "The plugin broken 1.0 failed: an error in broken, line 7. IndexError" in done.stderr


def test_all_30_names_that_plugins_use_exist():
    values = [getattr(traceviz.plugins, name) for name in traceviz.plugins.__all__]
    assert len(values) >= 30
    with pytest.raises(AttributeError, match="Gone"):
        _ = traceviz.plugins.Gone
