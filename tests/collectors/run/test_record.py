"""A run from its start to its end, with real programs: exit codes, what is left, what goes wrong on the way."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import traceviz
from tests.collectors.run import driven
from tests.collectors.run.driven import DRIVER, begin, collect, is_alive, manifest, python, wait_for
from traceviz import CollectOptions, api
from traceviz.collectors import collect as collect_module
from traceviz.collectors.base import Plan, Problem, Window
from traceviz.collectors.collect import _lines_to_show
from traceviz.collectors.frameworks.profilers import JaxCollector
from traceviz.collectors.program import supervise
from traceviz.collectors.program.processes import _descendants_by_parent, descendants
from traceviz.collectors.program.start import find_program
from traceviz.collectors.run.manifest import CollectorEntry, Manifest
from traceviz.collectors.run.tables import Tables, parse_answer
from traceviz.core.errors import CommandNotFoundError, NotExecutableError

READ = {"TRACEVIZ_TEST_READ": "yes"}


@pytest.fixture
def collect_here(monkeypatch):
    return partial(driven.collect_here, monkeypatch)


@pytest.fixture
def short_patience(monkeypatch):
    """Programs whose time is over are killed after a moment, not after ten seconds."""
    monkeypatch.setattr(supervise, "KILL_AFTER_S", 0.3)


ENDINGS = (
    ("pass", (0, "finished", None)),
    ("raise SystemExit(1)", (1, "failed", None)),
    ("import os; os._exit(3)", (3, "failed", None)),
    ("raise SystemExit(137)", (137, "failed", None)),
    ("1 / 0", (1, "failed", None)),
    ("import os; os.kill(os.getpid(), 9)", (137, "killed", 9)),
    ("import os; os.kill(os.getpid(), 15)", (143, "killed", 15)),
    ("import os; os.abort()", (134, "killed", 6)),
)


@pytest.mark.parametrize(
    ("wrapper", "code", "ending"),
    [*(("fake", *ending) for ending in ENDINGS), *(("launched", *ENDINGS[place]) for place in (2, 5, 7))],
)
def test_the_programs_exit_code_is_ours_and_the_manifest_says_how_it_ended(
    collect_here, tmp_path, wrapper, code, ending
):
    done = collect_here("-o", tmp_path / "run", *python(code), collectors=wrapper)
    document = manifest(tmp_path / "run")
    if wrapper == "launched":
        assert document["pid"] == int((tmp_path / "run/raw/launched/program.pid").read_text())
    assert (done.exit_code, document["status"], document["exit"]["signal"]) == ending
    assert document["exit"]["code"] == done.exit_code


@pytest.mark.parametrize(
    ("code", "exit_of_program"),
    [
        ("import time; time.sleep(60)", {"code": 143, "signal": 15}),
        (
            "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(60)",
            {"code": 0, "signal": None},
        ),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", {"code": 137, "signal": 9}),
    ],
)
@pytest.mark.parametrize("wrapper", ["fake", "launched"])
@pytest.mark.usefixtures("short_patience")
def test_a_program_whose_time_is_over_ends_with_what_it_started_and_124(
    collect_here, tmp_path, wrapper, code, exit_of_program
):
    pid = tmp_path / "pid"
    program = f"import os; open({str(pid)!r}, 'w').write(str(os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '60'))); {code}"
    done = collect_here("-o", tmp_path / "run", "--time-limit", "1500ms", *python(program), collectors=wrapper)
    document = manifest(tmp_path / "run")
    assert (done.exit_code, document["status"], document["exit"]) == (124, "timed-out", exit_of_program)
    assert document["ending"] == {"outcome": "timed-out", "reason": "timed out after 1.5 s", "last_lines": []}
    wait_for(lambda: not is_alive(int(pid.read_text())), 5)


@pytest.mark.parametrize(("wrapper", "problems"), [("killed", ["wrapper-killed"]), ("stalled", ["wrapper-stalled"])])
def test_a_wrapper_that_breaks_down_costs_no_exit_code(collect_here, tmp_path, wrapper, problems):
    done = collect_here("-o", tmp_path / "run", *python("import time; time.sleep(1); exit(3)"), collectors=wrapper)
    document = manifest(tmp_path / "run")
    assert (done.exit_code, document["status"], document["exit"]["code"]) == (3, "failed", 3)
    assert [problem["code"] for problem in document["problems"]] == problems
    if wrapper == "stalled":
        message = document["problems"][0]["message"]
        assert "stalled did not end within" in message
        assert "These processes waited, and computed and wrote nothing: python" in message
    written = [(tmp_path / "run/raw" / wrapper / f"program.{name}").stat().st_mtime_ns for name in ("pid", "code")]
    assert document["duration_ns"] > 1e9
    assert (document["started_unix_ns"], document["duration_ns"]) == (written[0], written[1] - written[0])


def test_processor_time_is_that_of_the_program_and_not_of_what_wraps_it(collect_here, tmp_path):
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    collect_here("-o", tmp_path / "run", *python(burn), collectors="launched")
    usage = manifest(tmp_path / "run")["usage"]
    assert sorted(usage) == ["system_ns", "user_ns"]
    assert usage["user_ns"] + usage["system_ns"] == pytest.approx(0.55e9, abs=0.15e9)


@pytest.mark.parametrize(("asked", "problems"), [(("--with", "idle"), ["unused"]), ((), [])])
def test_what_was_asked_for_by_name_and_recorded_nothing_is_named(collect_here, tmp_path, asked, problems):
    collect_here("-o", tmp_path / "run", *asked, "--nvtx", "off", *python("pass"), collectors="fake,idle")
    document = manifest(tmp_path / "run")
    states = {entry["name"]: entry["state"] for entry in document["collectors"]}
    assert (states["idle"], [problem["code"] for problem in document["problems"]]) == ("unused", problems)
    assert all("idle" in problem["message"] for problem in document["problems"])


def test_a_folder_of_path_that_may_not_be_entered_is_passed_over(tmp_path, monkeypatch):
    closed, stat = tmp_path / "closed", os.stat

    def stat_as_another_user(path, **options):
        if closed in Path(path).parents:
            raise PermissionError(13, "Permission denied")
        return stat(path, **options)

    (tmp_path / "tool").touch(mode=0o755)
    monkeypatch.setattr(os, "stat", stat_as_another_user)
    assert find_program("tool", {"PATH": f"{closed}:{tmp_path}"}) == tmp_path / "tool"
    with pytest.raises(CommandNotFoundError):
        find_program("tool", {"PATH": str(closed)})
    with pytest.raises(NotExecutableError, match="may not be entered"):
        find_program(str(closed / "tool"), {})


def test_the_name_of_a_capture_does_not_tell_the_machines(tmp_path):
    plan = Plan(tmp_path, (), ("jax",))
    left = plan.raw("jax") / "pid7/plugins/profile/2026"
    left.mkdir(parents=True)
    for name in ("ann-laptop", "bob"):
        (left / f"{name}.xplane.pb").write_text(name)
    for _ in range(2):
        sources = JaxCollector().harvest(plan).sources
        assert [(path.name, path.read_text()) for path in sources] == [
            ("host.xplane.pb", "ann-laptop"),
            ("host1.xplane.pb", "bob"),
        ]


def test_the_manifest_has_times_usage_tags_and_what_the_collector_found(collect_here, tmp_path):
    code = "import time, os; time.sleep(0.2); open(os.environ['FAKE_RAW'] + '/trace.txt', 'w').write('1')"
    collect_here("-o", tmp_path / "run", "--name", "first", "--tag", "batch=8", *python(code))
    document = manifest(tmp_path / "run")
    assert (document["name"], document["tags"]) == ("first", {"batch": "8"})
    assert document["duration_ns"] > 200_000_000
    assert document["ended_unix_ns"] - document["started_unix_ns"] == document["duration_ns"]
    assert document["usage"]["max_rss_bytes"] > 1_000_000
    assert set(document["overhead"]) == {"before_ns", "harvest_ns", "tables_ns"}
    (entry,) = document["collectors"]
    assert (entry["name"], entry["state"], entry["facts"]["files"]) == ("fake", "recorded", 2)
    assert entry["sources"] == ["raw/fake/companion.txt", "raw/fake/trace.txt"]
    assert document["versions"]["fakeflow"] == "1.2"


def test_a_companion_is_started_beside_the_program_and_stopped_after_it(collect_here, tmp_path):
    collect_here("-o", tmp_path / "run", *python("pass"))
    pid = manifest(tmp_path / "run")["pid"]
    assert (tmp_path / "run/raw/fake/companion.txt").read_text() == f"started beside {pid}\nstopped\n"


def test_a_collector_wraps_the_command_and_sets_its_variables(tmp_path):
    code = "import os; print(os.environ['WRAPPED'], os.environ['PYTHONPATH'])"
    done = collect("-o", tmp_path / "run", *python(code), env={"PYTHONPATH": "/mine"})
    assert done.stdout == "yes /fake:/mine\n"


def test_nothing_of_ours_gets_into_the_programs_output(tmp_path):
    payload = bytes(range(256)) * 4096
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    done = collect("-o", tmp_path / "run", *python(code), text=False, input=payload)
    assert (done.returncode, done.stdout == payload) == (0, True)
    assert all(line.startswith(b"traceviz: ") for line in done.stderr.splitlines())
    assert len(done.stderr.splitlines()) <= 4


def test_the_manifest_says_nothing_private_unless_told_to(collect_here, tmp_path):
    secret = "s3cret-token"
    collect_here("-o", tmp_path / "run", *python(f"'{secret}'"))
    assert secret not in (tmp_path / "run/manifest.json").read_text()
    assert manifest(tmp_path / "run")["left_out"] == ["command line", "host name", "environment"]
    collect_here("-o", tmp_path / "run", "--force", "--keep-private", *python(f"'{secret}'"))
    document = manifest(tmp_path / "run")
    kept = (secret in document["command"], document["left_out"], bool(document["machine"]["host"]))
    assert kept == (True, ["environment"], True)


def test_a_collector_that_fails_costs_neither_the_exit_code_nor_the_others(tmp_path):
    where, program = ("-o", tmp_path / "run"), python("raise SystemExit(3)")
    done = collect(*where, *program, collectors="again,broken,fake,troubled", env=READ)
    document = manifest(tmp_path / "run")
    assert done.returncode == 3
    assert [(entry["name"], entry["state"]) for entry in document["collectors"]] == [
        ("again", "failed"),
        ("broken", "failed"),
        ("fake", "recorded"),
        ("troubled", "failed"),
    ]
    assert [problem["code"] for problem in document["problems"]] == ["not-started", "no-tables"]
    for part in ("The companion has no room", "No space left on device", "The program made no steps. Give --steps 0:5"):
        assert part in done.stderr
    lines = done.stderr.splitlines()
    assert lines.count("traceviz: The program made no steps. Give --steps 0:5.") == 1  # two collectors reported it


def test_a_program_that_nothing_records_still_leaves_its_manifest(collect_here, tmp_path):
    done = collect_here("-o", tmp_path / "run", *python("raise SystemExit(5)"), collectors="")
    assert (done.exit_code, manifest(tmp_path / "run")["exit"]["code"]) == (5, 5)
    assert "recording nothing but the exit code and the times" in done.stderr


def test_a_grandchild_that_lives_on_with_our_output_does_not_hold_the_run_up(tmp_path):
    code = (
        "import subprocess, sys, pathlib\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))\n"
    )
    running = begin("-o", tmp_path / "run", "--no-report", *python(code))
    assert running.wait(timeout=60) == 0
    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)
    os.kill(pid, 9)


def test_workers_of_the_program_end_with_it_in_order(tmp_path):
    script = tmp_path / "launcher.py"
    script.write_text(
        "import multiprocessing as m, os, sys\n"
        "def work(rank):\n    os.write(1, f'rank {rank}\\n'.encode()); sys.exit(rank)\n"
        "if __name__ == '__main__':\n"
        "    m.set_start_method('spawn')\n"
        "    workers = [m.Process(target=work, args=(rank,)) for rank in range(3)]\n"
        "    [worker.start() for worker in workers]\n    [worker.join() for worker in workers]\n"
        "    sys.exit(sum(worker.exitcode for worker in workers))\n"
    )
    done = collect("-o", tmp_path / "run", "--", sys.executable, script)
    assert (done.returncode, sorted(done.stdout.split())) == (3, ["0", "1", "2", "rank", "rank", "rank"])


def test_a_recording_that_is_killed_leaves_a_manifest_that_says_running(tmp_path):
    code = f"import time; open({str(tmp_path / 'up')!r}, 'w'); time.sleep(0.3); open({str(tmp_path / 'done')!r}, 'w')"
    running = begin("-o", tmp_path / "run", *python(code))
    wait_for((tmp_path / "up").exists)
    running.kill()
    running.wait()
    document = manifest(tmp_path / "run")
    assert (document["status"], document["exit"]["code"], document["collectors"][0]["state"]) == (
        "running",
        None,
        "recording",
    )
    wait_for((tmp_path / "done").exists)  # the program itself keeps running


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A run that is recorded by the product's own collector, of a program that writes down what its parent loaded.

    The program runs until samples are on the disk, for any delay by a busy machine.
    """
    folder = tmp_path_factory.mktemp("real")
    code = (
        "import os, pathlib, shutil, time\n"
        f"shutil.copy(f'/proc/{{os.getppid()}}/maps', {str(folder / 'maps')!r})\n"
        f"raw, end = pathlib.Path({str(folder / 'run/raw/resources')!r}), time.monotonic() + 60\n"
        "while not list(raw.glob('part-*.parquet')) and time.monotonic() < end:\n"
        "    time.sleep(0.05)\n"
        "raise SystemExit(3)"
    )
    line = [sys.executable, "-m", "traceviz", "collect", "--with", "resources", "-o", str(folder / "run")]
    return folder, subprocess.run([*line, *python(code)], capture_output=True, text=True, check=False)


def test_no_library_that_reads_traces_is_loaded_while_the_program_runs(real):
    loaded = (real[0] / "maps").read_text()
    assert "libc" in loaded
    assert not any(name in loaded for name in ("polars", "pyarrow", "numpy", "pandas"))


def test_the_resources_of_a_real_run_become_tables_and_a_report(real, tmp_path):
    run, done = real[0] / "run", real[1]
    document = manifest(run)
    assert (done.returncode, document["problems"]) == (3, [])
    assert document["tables"]["samples"] == pl.read_parquet(run / "tables/samples.parquet").height > 0
    assert f"traceviz report {run}" in done.stderr
    assert "The program ended with code 3, and no step of it was recorded that could be judged." in done.stderr
    untold = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("tables"))
    first, *others = (api.report_on(folder).sections for folder in (run, run / "tables", untold))
    assert "host" in {section.slug for section in first}
    assert others == [first, first]


KILLS = (
    "import os, pathlib, signal, time\n"
    "raw, end = pathlib.Path({raw!r}), time.monotonic() + 60\n"
    "while not list(raw.glob('part-*.parquet')) and time.monotonic() < end: time.sleep(0.05)\n"
    "for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
    "    try: words = path.read_bytes().split(b'\\0')\n"
    "    except OSError: continue\n"
    "    if b'traceviz.collectors.sampler' in words and str(os.getpid()).encode() in words:\n"
    "        os.kill(int(path.parent.name), signal.SIGKILL)\n"
    "time.sleep(3)\n"
)
"""A program that kills its sampler of resources after a first save, and runs on for 3 s."""


def test_a_sampler_that_is_killed_costs_the_program_nothing_and_the_report_says_until_when_it_recorded(tmp_path):
    run = tmp_path / "run"
    line = [sys.executable, "-m", "traceviz", "collect", "--no-report", "--with", "resources", "-o", str(run)]
    done = subprocess.run([*line, *python(KILLS.format(raw=str(run / "raw/resources")))], check=False, timeout=90)
    assert done.returncode == 0
    notes = {row["code"]: row["message"] for row in api.open_trace(run).arrow("notes").to_pylist()}
    assert notes["recorder-ended-early"].startswith("resources ended early: it recorded ")
    assert {"sampler-not-ended", "recorder-ended-early"} <= notes.keys()


def test_what_the_profilers_wrote_is_dropped_only_once_there_are_tables(tmp_path):
    collect("--no-keep-raw", "--no-report", "-o", tmp_path / "unread", *python("pass"), env=READ)
    assert (tmp_path / "unread/raw/fake/companion.txt").exists()


@pytest.mark.parametrize("whole", [True, False])
def test_raw_recordings_are_dropped_only_if_all_of_them_are_in_the_tables(monkeypatch, tmp_path, whole):
    tables = Tables({"run": 1}, whole=whole)
    monkeypatch.setattr(collect_module, "make_tables", lambda *_, **__: tables)
    options = CollectOptions(output=tmp_path / "run", collectors=("resources",), keep_raw=False)
    assert traceviz.collect(options, [sys.executable, "-c", "pass"]).exit_code == 0
    assert (tmp_path / "run/raw").exists() is not whole


def test_the_library_returns_what_the_command_line_prints(tmp_path):
    options = CollectOptions(output=tmp_path / "run", collectors=("resources",), keep_raw=False)
    outcome = traceviz.collect(options, [sys.executable, "-c", "import time; time.sleep(0.4); raise SystemExit(4)"])
    assert (outcome.exit_code, outcome.status, outcome.folder) == (4, "failed", tmp_path / "run")
    assert outcome.tables["samples"] > 0
    assert outcome.verdict == ()
    assert sorted(path.name for path in outcome.folder.iterdir()) == ["manifest.json", "tables"]


def test_advice_on_what_could_not_be_judged_is_left_out_where_the_run_says_why():
    def said(status, *problems, code="cannot-judge", cause=""):
        entry = CollectorEntry("torch", "failed", problems=problems)
        known = Manifest("a", "a", Window(), 10.0, (entry,), {}, {}, {}, status=status, code=2)
        verdict = {"code": code, "cause": cause}
        return _lines_to_show(Tables(lines=("Cannot judge.", "TV1 Mark the steps."), verdict=verdict), known)

    assert said("failed") == ("The program ended with code 2, and no step of it was recorded that could be judged.",)
    assert said("finished", Problem("not-started", "It ended after 8 steps.")) == ()
    assert len(said("finished")) == len(said("failed", code="input-bound")) == 2


def test_a_verdict_that_names_what_takes_the_time_is_shown_though_the_input_cannot_be_judged():
    known = Manifest("a", "a", Window(), 10.0, (), {}, {}, {}, status="failed", code=2)
    shown = {}
    for cause in ("", "unexplained", "blocked"):
        verdict = {"code": "cannot-judge", "sentence": "It waits.", "cause": cause}
        shown[cause] = _lines_to_show(Tables(lines=("It waits.",), verdict=verdict), known)
    ended = ("The program ended with code 2, and no step of it was recorded that could be judged.",)
    assert shown == {"": ended, "unexplained": ended, "blocked": ("It waits.",)}


@pytest.mark.parametrize(
    ("status", "said", "complained", "tables", "problem"),
    [
        (0, b'{"tables": {"run": 1}, "whole": true}\n{"lines": ["Fine."]}\n', "", {"run": 1}, ""),
        (3, b'{"error": {"message": "It is damaged.", "fix": "Again."}}\n', "", {}, "no-tables"),
        (1, b"", "Traceback\nValueError: odd\n", {}, "no-tables"),
        (1, b'{"tables": {"run": 1}}\n', "Traceback\nValueError: odd\n", {"run": 1}, "no-verdict"),
        (-9, b"", "", {}, "no-tables"),
    ],
)
def test_however_reading_ends_what_came_of_it_is_known(status, said, complained, tables, problem):
    made = parse_answer(status, said, complained)
    assert (made.rows, made.whole) == (tables, bool(tables) and not problem)
    assert [entry.code for entry in made.problems] == ([problem] if problem else [])
    if status == -9:
        assert "killed by signal 9" in made.problems[0].message


def test_the_driver_of_these_tests_is_the_product_with_other_collectors():
    done = subprocess.run([sys.executable, str(DRIVER), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("traceviz, version 0.1.0")


def test_descendants_are_those_of_all_threads_and_no_strangers():
    code = (
        "import subprocess, sys, threading\n"
        "started = []\n"
        "def start(): started.append(subprocess.Popen(['sleep', '60']))\n"
        "thread = threading.Thread(target=lambda: (start(), done.wait()))\n"
        "done = threading.Event(); thread.start(); start()\n"
        "while len(started) < 2: pass\n"
        "print(*(child.pid for child in started), flush=True)\n"
        "sys.stdin.read(); done.set()\n"
        "for child in started: child.kill(); child.wait()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        children = {int(word) for word in process.stdout.readline().split()}
        assert len(children) == 2
        assert descendants(process.pid) == _descendants_by_parent(process.pid) == children
        assert children <= descendants(os.getpid())
        process.stdin.close()
