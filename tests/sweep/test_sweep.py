"""``traceviz sweep`` with real programs: one crashes, one hangs, one is killed; it is interrupted and resumes."""

import json
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.collectors.run.driven import wait_for
from tests.support.command import run
from tests.support.pseudo_terminal import seen
from traceviz.collectors.program.processes import with_variable
from traceviz.sweep.child import MARK
from traceviz.sweep.file import read_sweep
from traceviz.sweep.orders import plan
from traceviz.sweep.run import run_there

pytestmark = pytest.mark.process

PROGRAM = """
import os, signal, sys, time
kind = sys.argv[1]
print(f"{kind} begins", flush=True)
if kind == "crash":
    raise ValueError("of a user")
if kind == "memory":
    raise MemoryError
if kind == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if kind == "hang":
    os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    time.sleep(60)
while kind == "wait" and not os.path.exists("go"):
    time.sleep(0.01)
"""
FILE = """
command = "{python} program.py {{kind}}"
repeats = 1
collect = ["--with", ""]
[settings]
kind = [{kinds}]
"""
LIMITS = {"hang": 1, "it's": 6000}
"""Seconds that the kinds of programs may run."""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Writes a sweep of these kinds of programs, and gives the folder of its runs."""
    monkeypatch.chdir(tmp_path)

    def write(*kinds, text=FILE):
        (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
        listed = ", ".join(f'{{name = "{kind}", time-limit = "{LIMITS.get(kind, 60)} s"}}' for kind in kinds)
        (tmp_path / "s.toml").write_text(text.format(python=sys.executable, kinds=listed))
        return tmp_path / "traceviz-runs" / "s"

    return write


def sweep(*options):
    return run("sweep", "s.toml", "--no-table", *options)


def manifest(run):
    return json.loads((run / "manifest.json").read_text())


def has_begun(run):
    """Return whether the program of a run has been started."""
    return (run / "manifest.json").exists() and manifest(run)["pid"] is not None


def endings(folder):
    return {run.name: manifest(run)["ending"]["reason"] for run in folder.glob("*=*")}


def test_a_sweep_with_5_kinds_of_ends_that_was_interrupted_goes_on_and_has_every_result(study, tmp_path):
    folder = study("ok", "crash", "memory", "hang", "killed", "wait")
    command = [sys.executable, "-m", "traceviz", "sweep", "s.toml", "--seed", "3", "--no-table"]
    begun = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: has_begun(folder / "kind=wait+1"))
    begun.send_signal(signal.SIGINT)
    said = begun.communicate(timeout=60)[1]
    assert begun.returncode == 130
    assert "Interrupted. What was recorded stays in traceviz-runs/s; to go on: traceviz sweep s.toml" in said
    assert manifest(folder / "kind=wait+1")["ending"]["outcome"] == "interrupted"
    before = {run.name: (run / "manifest.json").stat().st_mtime_ns for run in folder.glob("*=*")}
    (tmp_path / "go").touch()
    done = sweep()
    assert done.returncode == 0, done.stderr
    assert "6 settings, all 6 runs made, of which 4 did not finish." in done.stdout
    assert endings(folder) == {
        "kind=ok+1": "",
        "kind=wait+1": "",
        "kind=crash+1": "exit code 1: ValueError",
        "kind=memory+1": "out of memory",
        "kind=hang+1": "timed out after 1 s",
        "kind=killed+1": "SIGKILL",
    }
    kept = before.keys() - {"kind=wait+1"}
    assert len(kept) == 6 - done.stderr.count("] kind=")
    assert all((folder / name / "manifest.json").stat().st_mtime_ns == before[name] for name in kept)
    assert with_variable(MARK, str(folder / "kind=hang+1")) == set()  # what the program had started ended with it
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    ended = {row[0]: " ".join(row[-3:]) for row in rows}
    assert ended["memory"].endswith("of memory")
    assert ended["killed"].endswith("killed (SIGKILL)")
    assert sweep("--strict").returncode == 1


def test_a_failure_is_kept_with_its_last_lines_and_what_it_wrote(study):
    folder = study("crash")
    done = sweep()
    assert "[1/1] kind=crash, repeat 1" in done.stderr
    assert "crashed: ValueError · ValueError: of a user" in done.stderr
    run = folder / "kind=crash+1"
    stated = manifest(run)
    assert stated["exit"] == {"code": 1, "signal": None}
    assert stated["tags"] == {"kind": "crash", "repeat": "1"}
    lines = stated["ending"]["last_lines"]
    assert lines[-1] == "ValueError: of a user"
    assert lines[0] == "crash begins"
    assert (run / "output.log").read_text().count("crash begins") == 1


def test_a_command_that_is_not_there_is_a_result_where_another_one_is(study, tmp_path):
    folder = study(
        "ok",
        text='command = ["{python}", "-c", ""]\nrepeats = 1\ncollect = ["--with", ""]\n'
        '[settings]\nkind = [{kinds}, {{name = "gone", command = ["no-such-program", "{{kind}}"]}}]\n',
    )
    done = sweep()
    assert done.returncode == 0, done.stderr
    assert endings(folder) == {"kind=ok+1": "", "kind=gone+1": "command not found"}
    assert manifest(folder / "kind=gone+1")["status"] == "failed"


def test_the_table_shows_reasons_whole_and_wrapped(tmp_path, monkeypatch):
    """Of a name that is wider than the table, nothing is cut."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    reason = "a_table_with_a_name_that_goes_on_and_on is not a table of the data base at all"
    (tmp_path / "p.py").write_text(f"raise SystemExit({reason!r})")
    settings = "\n".join(f'tag_number_{number} = ["{"v" * 12}"]' for number in range(5))
    command = " ".join(f"{{tag_number_{number}}}" for number in range(5))
    text = f'command = "{sys.executable} p.py {command}"\nrepeats = 2\ncollect = ["--with", ""]\n[settings]\n{settings}'
    (tmp_path / "s.toml").write_text(text)
    done = sweep("--no-table")
    assert f"2 × crashed, exit code 1 ({reason})." in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_program_gets_the_environment_of_the_user_and_that_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    text = 'command = "env"\nrepeats = 1\ncollect = ["--with", ""]\n[environment]\nA_NUMBER = 1\n'
    (tmp_path / "s.toml").write_text(text)
    assert sweep().returncode == 0
    written = (tmp_path / "traceviz-runs/s/run+1/output.log").read_text()
    assert "A_NUMBER=1\n" in written
    assert "OPENBLAS_NUM_THREADS" not in written  # as this process has it once it has read a trace


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('command = "no-such-program {kind}"\n[settings]\nkind = [1, 2]', 127, "'no-such-program' was not found."),
        ('command = "true"\ncollect = ["--stpes", "1:2"]', 2, "are no options of traceviz collect"),
        ('command = "true"\ncollect = ["--steps", "2:1"]', 2, "--steps '2:1' names no steps."),
        ('command = "true"\ncollect = ["-o", "here"]', 2, "--output cannot be an option of the runs of a sweep."),
        ('command = "true"\ncollect = ["--dry-run"]', 2, "--dry-run cannot be an option of the runs of a sweep."),
        ('command = "true"\ncollect = ["--force"]', 2, "--force cannot be an option of the runs of a sweep."),
        ('command = "true"\ncollect = ["--report"]', 2, "--report cannot be an option of the runs of a sweep."),
        ('command = "true"\ncollect = ["--tag", "a=1"]', 2, "--tag cannot be an option of the runs of a sweep."),
        ('command = "true"\ncollect = ["--time-limit", "1s"]', 2, "and write time-limit."),
        ('command = "true"\ncollect = ["--help"]', 2, "'--help' asks for help in the place of a recording."),
        ('command = "true"\ncollect = ["--", "touch", "PWNED"]', 2, "'touch' would start the command."),
        ('command = "true"\ncollect = ["--with", "resources", "touch", "PWNED"]', 2, "'touch' would start the command"),
        ('command = "true"\ncollect = ["--with", "resources", "--"]', 2, "'--' would start the command."),
        ('command = "true"\ncollect = ["--name"]', 2, "are no options of traceviz collect"),
        ('command = "true {a}"\ncollect = ["{a}"]\n[settings]\na = ["--", "touch"]', 2, "would start the command."),
        (
            f'command = "true {{a}}"\ncollect = ["--name", "x{{a}}"]\n[settings]\na = {[*range(101)]}',
            2,
            "The runs are recorded in 101 different ways",
        ),
    ],
)
def test_what_would_fail_in_every_run_is_refused_before_the_first(tmp_path, monkeypatch, text, code, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(text)
    done = sweep()
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"s.toml"}  # and nothing of it ran


def test_failed_and_changed_runs_are_made_again_only_where_that_is_asked_for(study, tmp_path):
    folder = study("ok", "crash")
    assert sweep().stderr.count("] kind=") == 2
    assert sweep().stderr.count("] kind=") == 0
    assert sweep("--retry-failed").stderr.count("] kind=") == 1
    (tmp_path / "s.toml").write_text((tmp_path / "s.toml").read_text().replace("program.py", "-X dev program.py"))
    refused = sweep()
    assert refused.returncode == 2
    assert "2 runs in" in refused.stderr
    assert "are of another command than the sweep file has now" in refused.stderr
    assert sweep("--retry-changed").stderr.count("] kind=") == 2
    assert len(endings(folder)) == 2


def test_2_jobs_run_side_by_side(study, tmp_path):
    study("wait", "go")
    (tmp_path / "program.py").write_text(
        "import os, sys, time\nopen(sys.argv[1], 'w').close()\n"
        "while not (os.path.exists('wait') and os.path.exists('go')): time.sleep(0.01)\n"
    )
    done = sweep("--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("finished") == 2


@pytest.mark.slow
def test_a_second_sweep_in_the_same_folder_is_refused(study, tmp_path):
    folder = study("wait")
    command = [sys.executable, "-m", "traceviz", "sweep", "s.toml", "--no-table"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as first:
        wait_for((folder / "kind=wait+1" / "manifest.json").exists)
        second = sweep()
        (tmp_path / "go").touch()
        assert first.wait(60) == 0
    assert second.returncode == 2
    assert "A sweep is running in" in second.stderr


@pytest.mark.slow
def test_a_sweep_in_the_background_ends_its_run_when_it_is_asked_to(study):
    folder = study("wait")
    command = [sys.executable, "-m", "traceviz", "sweep", "s.toml", "--no-table"]
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    with subprocess.Popen(ignoring, stderr=subprocess.DEVNULL) as begun:
        wait_for(lambda: has_begun(folder / "kind=wait+1"))
        begun.send_signal(signal.SIGTERM)
        assert begun.wait(30) == 143
    assert manifest(folder / "kind=wait+1")["ending"]["outcome"] == "interrupted"


@pytest.mark.slow
def test_a_run_that_a_killed_sweep_left_behind_is_ended_and_made_again(study, tmp_path):
    folder = study("wait")
    run = folder / "kind=wait+1"
    command = [sys.executable, "-m", "traceviz", "sweep", "s.toml", "--no-table"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as first:
        wait_for(lambda: has_begun(run))
        first.kill()
    left = with_variable(MARK, str(run))
    assert len(left) == 2  # traceviz collect, and the program
    (tmp_path / "go").touch()
    done = sweep()
    assert done.returncode == 0, done.stderr
    assert endings(folder) == {"kind=wait+1": ""}
    assert with_variable(MARK, str(run)) == set()


def test_a_preview_lists_6_runs_and_creates_nothing(study, tmp_path):
    study("ok", "it's")
    done = sweep("--dry-run", "--repeats", "3", "--seed", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "s: 2 settings × 3 repeats = 6 runs"
    assert lines[2] == "to make   6 runs: at most 5 h in their programs (time-limit)"
    assert done.stdout.count("""program.py 'it'"'"'s'""") == done.stdout.count("program.py ok") == 3
    assert not (tmp_path / "traceviz-runs").exists()


def test_a_terminal_sees_which_run_is_under_way(study):
    study("ok")
    code, page = seen("sweep", "s.toml", columns=100)
    assert code == 0
    assert "kind=ok, repeat 1: 0 s · 0 more" in page
    assert "[1/1] kind=ok, repeat 1" in page


class Follower:
    """Notes which runs ended in which way, and may ask for the end as Ctrl-C does."""

    def __init__(self, *, ends=False):
        self.outcomes = {}
        self._ends = ends

    def ended(self, order, result):
        self.outcomes[order.folder.name] = result.outcome
        if self._ends:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_a_cluster_makes_4_runs_of_which_one_fails_and_none_once_it_was_interrupted(study, tmp_path):
    from distributed import Client, LocalCluster

    from traceviz.archive.runners.dask import DaskRunner

    folder = study("ok", "wait", "crash", "killed")
    planned = {
        order.task.tags["kind"]: order for order in plan(read_sweep(tmp_path / "s.toml"), "s", tmp_path, 1).orders
    }
    orders = [planned[kind] for kind in ("ok", "wait", "crash", "killed")]
    local = {"processes": False, "dashboard_address": ":0", "local_directory": tmp_path}
    with LocalCluster(n_workers=1, threads_per_worker=1, **local) as cluster, Client(cluster) as client:
        with pytest.raises(KeyboardInterrupt):
            run_there(orders, DaskRunner(client), Follower(ends=True))
        wait_for(lambda: not with_variable(MARK, str(folder / "kind=wait+1")))
        assert {run.name for run in folder.glob("*=*")} <= {"kind=ok+1", "kind=wait+1"}
        (tmp_path / "go").touch()
        run_there(orders, DaskRunner(client), follower := Follower())
    assert follower.outcomes == {
        "kind=ok+1": "finished",
        "kind=crash+1": "failed",
        "kind=wait+1": "finished",
        "kind=killed+1": "killed",
    }
    assert endings(folder)["kind=killed+1"] == "SIGKILL"
