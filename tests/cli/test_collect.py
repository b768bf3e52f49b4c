"""``traceviz collect`` at the command line: what it refuses before anything starts, and what it prints."""

import contextlib
import os
import shlex
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.collectors.run import driven
from tests.collectors.run.driven import collect, command, manifest, python
from traceviz.cli.main import main
from traceviz.collectors import registry


@pytest.fixture
def collect_here(monkeypatch, tmp_path):
    """``traceviz collect`` in this process, with ``tmp_path`` as the current folder."""
    monkeypatch.chdir(tmp_path)
    return partial(driven.collect_here, monkeypatch)


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def test_help_names_the_options_and_the_4_exit_codes():
    said = CliRunner().invoke(main, ["collect", "--help"]).stdout
    # The list of collectors is written out: loading them all would slow every command's start.
    assert all(f"{collector.name}," in said or f"{collector.name};" in said for collector in registry.COLLECTORS)
    for word in ("--with", "--steps", "--nsys-args", "--keep-private", "--dry-run", "125", "126", "127", "128"):
        assert word in said


def test_what_would_run_is_printed_and_nothing_is_created(collect_here, tmp_path):
    arguments = ("--dry-run", "--with", "fake", "--steps", "2:5", "-o", "run")
    done = collect_here(*arguments, "--", "sh", "-c", "touch ran", collectors="fake,missing")
    assert (done.exit_code, done.stderr, listing(tmp_path)) == (0, "", [])
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines() if not line.startswith("collector"))
    assert lines["folder"] == str(tmp_path / "run")
    assert shlex.split(lines["command"]) == ["env", "WRAPPED=yes", "sh", "-c", "touch ran"]
    assert lines["steps"] == "2:5"
    assert "fake        on: always there" in done.stdout
    assert "missing     off, not-installed: It is not there. Fix: pip install it" in done.stdout
    assert f"PYTHONPATH={'/fake:'}" in done.stdout


def test_a_window_of_time_is_printed_as_such(collect_here, tmp_path):
    done = collect_here("--dry-run", "--delay", "1500ms", "--duration", "2", "--", "true")
    assert "window       1.5 s after the start, 2 s long" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 125, "There is no command to run"),
        (("--no-such-option", "--", "true"), 125, "No such option"),
        (("--rate", "1e9", "--", "true"), 125, "is not in the range"),
        (("--stacks-rate", "-1", "--", "true"), 125, "is not in the range"),
        (("--with", "perf", "--", "true"), 125, "no collector 'perf'"),
        (("--with", "missing", "--", "true"), 125, "pip install it"),
        (("--steps", "5:5", "--", "true"), 125, "names no steps"),
        (("--steps", "1:2", "--delay", "1", "--", "true"), 125, "cannot be combined"),
        (("--tag", "x", "--", "true"), 125, "key=value"),
        (("--nsys-args", "'", "--", "true"), 125, "cannot be split"),
        (("--", "no-such-program"), 127, "is in no folder of PATH"),
        (("--", "./no-such-program"), 127, "was not found"),
        (("--", "/"), 126, "It is a folder"),
        (("--", "./data.txt"), 126, "chmod +x data.txt"),
        (("--", "./train.py"), 126, "traceviz collect -- python train.py"),
        (("--", "train.py"), 127, "traceviz collect -- python train.py"),
        (("--", "./orphan"), 127, "interpreter that its first line names is missing"),
        (("--", "./empty"), 126, "Exec format error"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_code_and_leaves_nothing(collect_here, tmp_path, arguments, code, said):
    for name, text, mode in (
        ("data.txt", "text", 0o644),
        ("train.py", "pass", 0o644),
        ("orphan", "#!/no/such/interpreter\n", 0o755),
        ("empty", "", 0o755),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    # a test's collector wraps in `env`, and then it is `env` that finds out; here nothing wraps
    collectors = "missing" if "./orphan" in arguments or "./empty" in arguments else "fake,missing"
    done = collect_here(*arguments, collectors=collectors)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr
    assert listing(tmp_path) == ["data.txt", "empty", "orphan", "train.py"]


def test_a_collector_that_is_missing_says_what_would_record_instead(collect_here, tmp_path):
    done = collect_here("--with", "missing", "--", "true", collectors="fake,missing")
    assert "missing cannot record here (not installed)" in done.stderr
    assert "Without --with, these would record: fake." in done.stderr


def test_where_the_run_is_is_said_in_full_unless_it_is_below_here(collect_here, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for output, said in (("run", "is in run;"), ("../away", f"is in {tmp_path / 'away'};")):
        assert said in collect_here("-o", output, "--", "true").stderr


def test_a_program_that_changes_its_folder_leaves_its_run_where_it_was_asked_for(collect_here, tmp_path):
    collect_here("-o", "run", *python("import os; os.chdir('/')"))
    assert manifest(tmp_path / "run")["collectors"][0]["state"] == "recorded"


def test_arguments_that_are_no_unicode_and_very_many_reach_the_program(tmp_path):
    many = (os.fsdecode(b"caf\xe9"), *("x" * 100_000 for _ in range(10)))
    code = "import os, sys; print(len(sys.argv), os.fsencode(sys.argv[1]))"
    done = collect("-o", tmp_path / "run", "--keep-private", *python(code), *many)
    assert (done.returncode, done.stdout) == (0, "12 b'caf\\xe9'\n")
    assert manifest(tmp_path / "run")["exit"]["code"] == 0


def test_a_recording_within_a_recording_is_one_of_its_own(tmp_path):
    inner, environment = command("-o", tmp_path / "inner", *python("raise SystemExit(3)"))
    done = collect("-o", tmp_path / "outer", "--", *inner, env=environment)
    assert done.returncode == 3
    for name in ("inner", "outer"):
        assert manifest(tmp_path / name)["exit"] == {"code": 3, "signal": None}
        assert (tmp_path / name / "raw/fake/companion.txt").exists()


def test_without_names_what_is_ready_records_and_the_rest_is_said(collect_here, tmp_path):
    done = collect_here("-o", "run", "--", "true", collectors="fake,missing")
    assert "traceviz: recording fake; cannot record: missing (not installed)" in done.stderr
    states = {entry["name"]: entry["state"] for entry in manifest(tmp_path / "run")["collectors"]}
    assert states == {"fake": "recorded", "missing": "not-installed"}


def test_the_default_folder_is_named_after_the_script_and_the_time(collect_here, tmp_path):
    (tmp_path / "train.py").write_text("pass")
    collect_here("--no-report", "--", sys.executable, "train.py")
    collect_here("--name", "big batch", "--", sys.executable, "train.py")
    names = listing(tmp_path / "traceviz-runs")
    assert [name.rsplit("-", 2)[0] for name in names] == ["big-batch", "train"]
    stamp = names[1].split("-", 1)[1]
    assert abs(time.mktime(time.strptime(stamp, "%Y%m%d-%H%M%S")) - time.time()) < 600


def test_options_behind_the_command_are_the_commands(tmp_path):
    done = collect("-o", tmp_path / "run", "echo", "--force", "-o", "x", "--help")
    assert done.stdout == "--force -o x --help\n"


def test_a_run_is_replaced_only_with_force(collect_here, tmp_path):
    run = tmp_path / "run"
    collect_here("-o", run, "--name", "one", "--", "true")
    (run / "mine.txt").write_text("kept while the run is")
    again = collect_here("-o", run, "--name", "two", *python(f"open({str(tmp_path / 'ran')!r}, 'w')"))
    assert (again.exit_code, "already exists" in again.stderr, "recording" in again.stderr) == (125, True, False)
    assert (manifest(run)["name"], (tmp_path / "ran").exists()) == ("one", False)
    assert collect_here("-o", run, "--name", "two", "--force", "--", "true").exit_code == 0
    assert (manifest(run)["name"], (run / "mine.txt").exists()) == ("two", False)
    assert listing(tmp_path) == ["run"]


def test_a_run_is_not_lost_to_one_that_cannot_start(collect_here, tmp_path):
    run = tmp_path / "run"
    collect_here("-o", run, "--name", "one", "--", "true")
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    done = collect_here("-o", run, "--force", "--", orphan, collectors="")
    assert (done.exit_code, manifest(run)["name"]) == (127, "one")
    assert listing(tmp_path) == ["orphan", "run"]


def test_a_folder_that_is_no_run_is_never_replaced(collect_here, tmp_path):
    (tmp_path / "thesis.txt").write_text("three years of work")
    done = collect_here("-o", tmp_path, "--force", "--", "true")
    assert (done.exit_code, "is not replaced, even with --force" in done.stderr) == (125, True)
    assert listing(tmp_path) == ["thesis.txt"]


def test_an_empty_folder_is_used_and_missing_parents_are_made(collect_here, tmp_path):
    (tmp_path / "empty").mkdir()
    assert collect_here("-o", tmp_path / "empty", "--", "true").exit_code == 0
    assert collect_here("-o", tmp_path / "a/b/c", "--", "true").exit_code == 0
    assert manifest(tmp_path / "empty")["status"] == manifest(tmp_path / "a/b/c")["status"] == "finished"


def test_a_file_in_the_way_is_said_before_the_program_starts(collect_here, tmp_path):
    (tmp_path / "file").write_text("")
    done = collect_here("-o", "file/run", *python(f"open({str(tmp_path / 'ran')!r}, 'w')"))
    assert (done.exit_code, "cannot be written" in done.stderr) == (125, True)
    assert listing(tmp_path) == ["file"]


def test_no_folder_is_left_where_the_program_cannot_start(collect_here, tmp_path):
    (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
    (tmp_path / "orphan").chmod(0o755)
    done = collect_here("-o", "a/b/run", "--", "./orphan", collectors="")
    assert (done.exit_code, listing(tmp_path)) == (127, ["orphan"])


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB; root only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=False)


def test_a_full_disk_is_said_before_the_program_starts(collect_here, small_disk, tmp_path):
    with (small_disk / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 4096):
            pass
    done = collect_here("-o", small_disk / "run", *python(f"open({str(tmp_path / 'ran')!r}, 'w')"))
    assert (done.exit_code, "No space left on device" in done.stderr) == (125, True)
    assert ((tmp_path / "ran").exists(), listing(small_disk)) == (False, ["ballast"])


def test_a_disk_that_fills_up_costs_neither_the_exit_code_nor_the_manifest(small_disk):
    code = (
        "import os\n"
        "try:\n"
        "    with open(os.environ['FAKE_RAW'] + '/trace', 'wb', buffering=0) as file:\n"
        "        while True: file.write(b'0' * 4096)\n"
        "except OSError: os._exit(3)\n"
    )
    done = collect("-o", small_disk / "run", *python(code), env={"TRACEVIZ_TEST_READ": "yes"})
    assert done.returncode == 3
    assert (manifest(small_disk / "run")["status"], manifest(small_disk / "run")["exit"]["code"]) == ("failed", 3)
    assert "Traceback" not in done.stderr
    assert "was not made into tables" in done.stderr
    assert "The disk is full" in done.stderr
    assert "disk-full" in {problem["code"] for problem in manifest(small_disk / "run")["problems"]}
    assert "trace" in listing(small_disk / "run/raw/fake")


def test_what_would_break_the_program_for_want_of_room_is_not_started(collect_here, small_disk, tmp_path):
    done = collect_here("-o", small_disk / "run", *python(f"open({str(tmp_path / 'ran')!r}, 'w')"), collectors="roomy")
    assert (done.exit_code, "too little room for roomy" in done.stderr, "-o" in done.stderr) == (125, True, True)
    assert ((tmp_path / "ran").exists(), listing(small_disk)) == (False, [])


def test_a_read_only_folder_is_said_before_the_program_starts(collect_here, small_disk, tmp_path):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = collect_here("-o", small_disk / "run", *python(f"open({str(tmp_path / 'ran')!r}, 'w')"))
    assert (done.exit_code, "Read-only file system" in done.stderr) == (125, True)
    assert not (tmp_path / "ran").exists()


def test_a_terminal_that_is_gone_costs_no_exit_code(tmp_path):
    with Path("/dev/full").open("w") as full:
        done = collect("-o", tmp_path / "run", *python("raise SystemExit(3)"), capture_output=False, stderr=full)
    assert (done.returncode, manifest(tmp_path / "run")["exit"]["code"]) == (3, 3)
