"""The command line of ``nsys profile``, and what is made of what it leaves, with programs that act like it."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collectors.run.driven import wait_for
from traceviz.collectors import registry
from traceviz.collectors.base import Plan, Window
from traceviz.collectors.frameworks.nvtx import NvtxCollector
from traceviz.collectors.nsys.collector import NsysCollector, given, profile_flags
from traceviz.collectors.nsys.report import LOG, REPORT, STREAM, TEMPORARY
from traceviz.collectors.nsys.window import session_of, stop_after
from traceviz.collectors.program.processes import watched_signals
from traceviz.collectors.run.plan import CollectOptions
from traceviz.collectors.run.record import Prepared, _announcement
from traceviz.core import nsys_program
from traceviz.core.errors import UsageError

FAKE = """#!{python}
import sys
from pathlib import Path
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA Nsight Systems version {version}-abc")
elif arguments == ["profile", "--help"]:
    print("{help_text}")
elif arguments[:1] == ["export"] and "--help" not in arguments:
    import sqlite3
    output = arguments[arguments.index("-o") + 1]
    database = sqlite3.connect(output)
    {body}
    database.commit()
"""


def plan(folder: Path, *nsys_args: str, **options) -> Plan:
    made = Plan(folder, ("python", "train.py"), ("nsys",), nsys_args=nsys_args, **options)
    made.raw("nsys").mkdir(parents=True, exist_ok=True)
    return made


def plan_with_report(folder: Path, **options) -> Plan:
    made = plan(folder, **options)
    (made.raw("nsys") / REPORT).write_bytes(b"report")
    return made


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put an nsys in place whose export does ``body``."""

    def put(body="database.execute('CREATE TABLE StringIds (id, value)')", version="2022.4.2.1", help_text="") -> Path:
        program = tmp_path / "bin" / "nsys"
        program.parent.mkdir()
        program.write_text(FAKE.format(python=sys.executable, body=body, version=version, help_text=help_text))
        program.chmod(0o755)
        monkeypatch.setenv(nsys_program.OVERRIDE, str(program))
        monkeypatch.setattr(nsys_program, "IMPORTER_INSTALLED_AT", ())
        return program

    return put


@pytest.fixture
def no_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def no_nsys(no_path, monkeypatch):
    monkeypatch.delenv(nsys_program.OVERRIDE, raising=False)
    monkeypatch.setattr(nsys_program, "INSTALLED_AT", ())
    monkeypatch.setattr(nsys_program, "IMPORTER_INSTALLED_AT", ())


def test_the_trace_set_is_small_and_samples_nothing(tmp_path):
    assert profile_flags(plan(tmp_path), "")[:-1] == (
        "--trace=cuda,nvtx,osrt",
        "--sample=none",
        "--cpuctxsw=none",
        "--cuda-graph-trace=node",
        "--wait=primary",
        "--kill=none",
        "--force-overwrite=true",
    )


@pytest.mark.parametrize(
    ("flags", "gone"),
    [
        (("-t", "nvtx"), "--trace=cuda,nvtx,osrt"),
        (("--trace", "nvtx"), "--trace=cuda,nvtx,osrt"),
        (("--trac=nvtx",), "--trace=cuda,nvtx,osrt"),
        (("-w", "true", "--force=false"), "--force-overwrite=true"),
        (("--sample", "process-tree"), "--sample=none"),
        (("--cuda-graph-trace=graph",), "--cuda-graph-trace=node"),
        (("--kill=sigterm",), "--kill=none"),
    ],
)
def test_a_flag_of_the_user_replaces_ours_and_no_other(tmp_path, flags, gone):
    ours = profile_flags(plan(tmp_path), "")
    both = profile_flags(plan(tmp_path, *flags), "")
    assert both == (*(flag for flag in ours if flag != gone), *flags)
    assert len(both) == len(ours) - 1 + len(flags)


def test_flags_that_an_old_nsys_does_not_know_are_left_out(tmp_path):
    help_text = "\t-t, --trace=\n\t-s, --sample=\n\t-f, --force-overwrite=\n\t--kill=\n\t--trace-fork-before-exec=\n"
    made = plan(tmp_path, window=Window(0, None, 0.0, 5.0))
    flags = profile_flags(made, help_text)
    assert [flag.partition("=")[0] for flag in flags[:-1]] == ["--trace", "--sample", "--kill", "--force-overwrite"]
    assert len(profile_flags(made, "a help that names no flag")) == 9


def test_the_report_stays_in_the_run_folder(tmp_path):
    assert profile_flags(plan(tmp_path), "")[-1] == f"--output={tmp_path}/raw/nsys/report"
    for flags in (("-o", "mine"), ("--output=mine",), ("-omine",), ("--outp", "mine")):
        with pytest.raises(UsageError, match="--output"):
            profile_flags(plan(tmp_path, *flags), "")


def test_a_delay_is_passed_on_in_whole_seconds(tmp_path):
    assert "--delay=3" in profile_flags(plan(tmp_path, window=Window(0, None, 2.6, 5.0)), "")
    assert not given(profile_flags(plan(tmp_path, window=Window(0, None, 0.0, 5.0)), ""), "--delay", "-y")


def test_a_report_is_exported_at_once_and_both_are_kept(tmp_path, fake):
    fake()
    made = plan_with_report(tmp_path)
    (made.raw("nsys") / TEMPORARY).mkdir()
    harvest = NsysCollector().harvest(made)
    assert [source.name for source in harvest.sources] == ["report.sqlite", "report.nsys-rep"]
    assert (harvest.problems, harvest.facts["version"], harvest.facts["report_bytes"]) == ((), "2022.4.2.1", 6)
    assert sorted(entry.name for entry in made.raw("nsys").iterdir()) == ["report.nsys-rep", "report.sqlite"]
    with sqlite3.connect(harvest.sources[0]) as database:
        assert database.execute("SELECT COUNT(*) FROM StringIds").fetchone() == (0,)


def test_half_an_export_is_removed_and_the_report_is_kept(tmp_path, fake):
    fake("database.execute('CREATE TABLE Something (id)')")
    made = plan_with_report(tmp_path)
    harvest = NsysCollector().harvest(made)
    assert [source.name for source in harvest.sources] == ["report.nsys-rep"]
    assert [problem.code for problem in harvest.problems] == ["nsys-not-exported"]
    assert len(list(made.raw("nsys").iterdir())) == 1


def test_the_stream_of_an_nsys_that_was_killed_is_kept(tmp_path, fake, monkeypatch):
    fake()
    monkeypatch.setenv("PATH", str(tmp_path))
    made = plan(tmp_path)
    temporary = made.raw("nsys") / TEMPORARY
    temporary.mkdir()
    (temporary / "nsys-report-1234.qdstrm").write_bytes(b"half a stream")
    harvest = NsysCollector().harvest(made)
    assert [(source.name, source.read_bytes()) for source in harvest.sources] == [(STREAM, b"half a stream")]
    assert [problem.code for problem in harvest.problems] == ["nsys-ended-early", "nsys-stream-only"]
    assert not temporary.exists()


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("unrecognised option '--nonsense'\n\nusage: nsys profile [<args>]\n", "nsys-refused", "--nonsense"),
        ("[1/1] [0%  ] a\rImport of /home/me/x failed\n", "no-report", "Import of [path] failed"),
        ("", "no-report", "probably killed"),
    ],
)
def test_why_there_is_no_report_is_said_in_the_words_of_nsys(tmp_path, fake, said, code, words):
    fake()
    made = plan(tmp_path)
    (made.raw("nsys") / LOG).write_text(said)
    (problem,) = NsysCollector().harvest(made).problems
    assert problem.code == code
    assert words in problem.message


def test_a_duration_names_a_session_that_can_be_stopped_and_leaves_the_flag_to_the_user(tmp_path):
    made = plan(tmp_path, window=Window(0, None, 2.6, 5.0))
    flags = profile_flags(made, "")
    assert not given(flags, "--duration", "-d")
    assert f"--session-new={session_of(made)}" in flags
    assert re.fullmatch(r"traceviz-[0-9a-f]{12}", session_of(made))
    assert session_of(made) != session_of(plan(tmp_path / "other"))


@pytest.mark.parametrize(
    ("window", "help_text", "told"),
    [
        (Window(), "--trace=", ("the whole run", [])),
        (Window(5, 10), "--trace=", ("the whole run", ["nsys-whole-run"])),
        (Window(0, None, 2.6, None), "--trace=", ("from 3 s after the start to the end", [])),
        (Window(0, None, 0.0, 5.0), "--trace= --session-new=", ("5 s from the start", [])),
        (Window(0, None, 2.0, 0.5), "--trace= --session-new=", ("0.5 s from 2 s after the start", [])),
        (Window(0, None, 0.0, 5.0), "--trace=", ("the whole run", ["nsys-to-the-end"])),
    ],
)
def test_the_manifest_says_which_part_nsys_recorded(tmp_path, fake, window, help_text, told):
    fake(help_text=help_text)
    made = plan_with_report(tmp_path, window=window)
    harvest = NsysCollector().harvest(made)
    assert (harvest.facts["window"], [problem.code for problem in harvest.problems]) == told


@pytest.mark.parametrize("name", ["\udcfe", "caf\u00e9"])
def test_only_names_that_are_not_unicode_are_refused_before_1_program_starts(tmp_path, fake, name):
    fake()
    if name == "\udcfe":
        for ask in (NsysCollector().command, NsysCollector().typed):
            with pytest.raises(UsageError, match="UTF-8"):
                ask(("echo", name), plan(tmp_path))
    else:
        assert NsysCollector().command(("echo", name), plan(tmp_path))[-1] == name


def test_the_command_to_type_is_nsys_around_the_program_without_shells(tmp_path, fake):
    fake()
    typed, started = (ask(("echo", "1"), plan(tmp_path)) for ask in (NsysCollector().typed, NsysCollector().command))
    assert (Path(typed[0]).name, typed[1], typed[-2:]) == ("nsys", "profile", ("echo", "1"))
    assert "/bin/sh" not in typed
    assert " ".join(typed[:-2]) in " ".join(started)


SLOW_TO_STOP = """#!{python}
import os, signal, sys, time
from pathlib import Path
if sys.argv[1] == "sessions":
    print(" 1 Collection 00:01 program {session}")
else:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    Path({folder!r}, "begun").touch()
    time.sleep(0.5)
    Path({folder!r}, "saved").touch()
"""
"""As nsys does, it handles SIGTERM even if that was ignored."""


@pytest.mark.parametrize(("seconds", "saved"), [(0.0, ["begun", "saved"]), (60.0, [])])
def test_1_report_that_is_being_written_is_waited_for_and_the_end_of_the_time_is_not(tmp_path, seconds, saved):
    (tmp_path / "left").mkdir()
    program = tmp_path / "nsys"
    folder = str(tmp_path / "left")
    program.write_text(SLOW_TO_STOP.format(python=sys.executable, session=session_of(plan(tmp_path)), folder=folder))
    program.chmod(0o755)
    with watched_signals():  # as while a program runs: processes started then have them blocked
        stopper = stop_after(seconds, program, plan(tmp_path), os.getpid())
        wait_for(lambda: seconds > 0 or (tmp_path / "left/begun").exists())
        stopper.stop()
    assert sorted(path.name for path in (tmp_path / "left").iterdir()) == saved


def test_the_end_of_the_time_is_not_waited_for_by_an_nsys_that_never_recorded(tmp_path):
    (tmp_path / "nsys").write_text("#!/bin/sh\n")
    (tmp_path / "nsys").chmod(0o755)
    with subprocess.Popen(["sleep", "600"]) as recording:
        stopper = stop_after(600.0, tmp_path / "nsys", plan(tmp_path), recording.pid)
        recording.kill()
        wait_for(lambda: not stopper.is_waiting)


def test_nothing_is_stopped_in_a_run_without_a_duration(tmp_path, fake):
    fake(help_text="--trace= --session-new=")
    assert NsysCollector().start(plan(tmp_path, window=Window(0, None, 2.0, None)), 1) is None
    mine = plan(tmp_path, "--session-new=mine", window=Window(0, None, 0.0, 5.0))
    assert NsysCollector().start(mine, 1) is None


def test_an_export_of_the_users_own_is_replaced_by_ours(tmp_path, fake):
    fake("database.execute('CREATE TABLE StringIds (id, value)')")
    made = plan_with_report(tmp_path)
    (made.raw("nsys") / "report.sqlite").mkdir()
    ((made.raw("nsys") / "report.sqlite") / "theirs").touch()
    assert [source.name for source in NsysCollector().harvest(made).sources] == ["report.sqlite", "report.nsys-rep"]
    assert (made.raw("nsys") / "report.sqlite").is_file()


def test_the_importer_is_the_one_of_the_nsys_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(nsys_program, "IMPORTER_INSTALLED_AT", ())
    for name in ("one", "two"):
        for program in (f"{name}/target-linux-x64/nsys", f"{name}/host-linux-x64/QdstrmImporter"):
            path = tmp_path / program
            path.parent.mkdir(parents=True)
            path.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "one" / "target-linux-x64"))
    assert nsys_program.find_importer() == tmp_path / "one/host-linux-x64/QdstrmImporter"
    two = nsys_program.find_importer(tmp_path / "two/target-linux-x64/nsys")
    assert two == tmp_path / "two/host-linux-x64/QdstrmImporter"


def test_nvtx_is_ready_where_an_nsys_is_that_packages_hide(fake, no_path, monkeypatch):
    program = fake()
    monkeypatch.delenv(nsys_program.OVERRIDE)
    monkeypatch.setattr(nsys_program, "INSTALLED_AT", (str(program),))
    assert NvtxCollector().availability().state == "ready"
    monkeypatch.setattr(nsys_program, "INSTALLED_AT", ())
    assert NvtxCollector().availability().state == "not-installed"
    assert NvtxCollector().availability().fix == NsysCollector().availability().fix != ""


def test_availability_without_nsys_names_what_installs_it(no_nsys):
    availability = NsysCollector().availability()
    assert (availability.state, availability.is_ready) == ("not-installed", False)
    assert "nsight-systems" in availability.fix


@pytest.mark.parametrize(
    ("version", "state"), [("2019.5.2", "too-old"), ("2020.3.1", "ready"), ("2024.10.1", "ready"), ("?", "unsupported")]
)
def test_availability_depends_on_the_version(fake, version, state):
    fake(version=version)
    assert NsysCollector().availability().state == state


def test_a_layout_without_importer_is_ready_and_says_what_is_lost(tmp_path, monkeypatch, fake):
    program = fake()
    folder = tmp_path / "lib" / "target-linux-x64"
    folder.mkdir(parents=True)
    moved = program.rename(folder / "nsys")
    monkeypatch.setenv(nsys_program.OVERRIDE, str(moved))
    monkeypatch.setenv("PATH", str(tmp_path))
    availability = NsysCollector().availability()
    assert (availability.state, "QdstrmImporter is missing" in availability.detail) == ("ready", True)
    importer = tmp_path / "host-linux-x64" / "QdstrmImporter"
    importer.parent.mkdir()
    importer.touch(0o755)
    monkeypatch.setattr(nsys_program, "IMPORTER_INSTALLED_AT", (str(importer),))
    assert NsysCollector().availability().fix == f"sudo ln -s {importer.parent} {tmp_path}/lib/host-linux-x64"


@pytest.mark.parametrize(
    ("collectors", "window", "told"),
    [
        (("nsys", "torch"), Window(3, 4), True),
        (("nsys", "torch"), Window(), False),
        (("nsys",), Window(0, None, 2.0, 5.0), False),
        (("torch",), Window(3, 4), False),
    ],
)
def test_that_steps_do_not_bound_nsys_is_said_before_the_1_program_starts(tmp_path, collectors, window, told):
    recorded, chosen = Plan(tmp_path, (), collectors, window=window), CollectOptions(collectors=collectors)
    kinds = tuple(collector for collector in registry.COLLECTORS if collector.name in collectors)
    words = _announcement(Prepared(recorded, chosen, kinds, states={}, environment={}, versions={}))
    assert words.startswith(f"recording {', '.join(collectors)}")
    assert ("nsys records the whole run" in words) is told
