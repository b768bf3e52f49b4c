"""``traceviz doctor``: checks of made-up machines and of tiny traces, as text and as JSON."""

import json
import platform
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.analyses.builders import tables
from traceviz.analyses.run import analyze
from traceviz.cli.main import main
from traceviz.collectors import registry
from traceviz.collectors.base import Availability, Collector
from traceviz.core.errors import UsageError
from traceviz.core.nsys_program import Nsys
from traceviz.doctor import doctor
from traceviz.doctor import machine as doctor_machine
from traceviz.doctor.checks import Check
from traceviz.doctor.machine import ProgramPython
from traceviz.doctor.trace import trace_checks

OLD_NSYS = Nsys(Path("/opt/no/nsys"), "2022.4.2.1", "")
TORCH = ProgramPython("/venv/bin/python", "3.12.1", {"torch": "2.9.0", "nvtx": "0.2.13"})
SYS_ADMIN, NOTHING = "0000000000200000", "0000000000000000"
READY, MISSING = Availability("ready", "There."), Availability("not-installed", "Not there.", "apt-get install it")


class Fake(Collector):
    def __init__(self, name, state):
        self.name, self._state = name, state

    def availability(self):
        return self._state


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without GPU, of an ordinary user, with one collector of two; its Python is :data:`TORCH`."""
    monkeypatch.setattr(doctor, "read_python", lambda _: TORCH)
    monkeypatch.setattr(doctor, "find_nsys", lambda: OLD_NSYS)
    monkeypatch.setattr(registry.COLLECTORS, "all", lambda: (Fake("good", READY), Fake("gone", MISSING)))
    return tmp_path


def checks_of(root, states=None, nsys=OLD_NSYS, python=TORCH):
    return {check.name: check for check in doctor_machine.machine_checks(states or {}, nsys, python, root)}


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_collectors_are_listed_with_what_mends_them(machine):
    checks = checks_of(machine, {"good": READY, "gone": MISSING})
    assert (checks["good"].condition, checks["gone"].condition) == ("ok", "missing")
    assert checks["gone"].detail == "not installed: Not there."
    assert checks["gone"].fix == "apt-get install it"


@pytest.mark.parametrize(
    ("name", "packages", "condition", "words"),
    [
        ("torch", {"torch": "2.9.0"}, "ok", "torch 2.9.0 in /venv/bin/python."),
        ("torch", {"torch": "2.0.0+cpu"}, "ok", "torch 2.0.0+cpu in /venv/bin/python."),
        (
            "torch",
            {"torch": "1.13.1"},
            "missing",
            "too old: /venv/bin/python has torch 1.13.1; 2.0 or newer is recorded.",
        ),
        ("torch", {"jax": "0.10.2"}, "missing", "not installed: /venv/bin/python has no torch."),
        (
            "tensorflow",
            {"tensorflow": "2.15.1"},
            "missing",
            "too old: /venv/bin/python has tensorflow 2.15.1; 2.16 or newer",
        ),
    ],
)
def test_a_framework_is_judged_by_the_python_that_runs_the_program(machine, name, packages, condition, words):
    python = ProgramPython("/venv/bin/python", "3.12.1", packages)
    checks = checks_of(machine, {name: READY}, python=python)
    assert (checks[name].condition, checks[name].detail[: len(words)]) == (condition, words)
    assert checks[name].fix.startswith("/venv/bin/python -m pip install '") is (condition == "missing")
    assert checks["Python"].condition == "ok"


@pytest.mark.parametrize(("version", "condition"), [("3.8.18", "missing"), ("3.9.0", "ok"), ("3.14.0", "ok")])
def test_stacks_need_a_program_in_python_3_9_or_later(machine, version, condition):
    checks = checks_of(machine, {"stacks": READY}, python=ProgramPython("python", version, {}))
    assert checks["stacks"].condition == condition


def test_a_python_without_any_framework_is_probably_another_one(machine):
    check = checks_of(machine, python=ProgramPython("/venv/bin/python", "3.12.1", {"nvtx": "0.2.11"}))["Python"]
    assert (check.condition, check.fix) == ("limited", "traceviz doctor --python PATH")
    gone = checks_of(machine, python=ProgramPython("/venv/bin/python", None, {}))["Python"]
    assert (gone.condition, gone.fix) == ("missing", "/venv/bin/python -V")


@pytest.mark.parametrize(
    ("level", "capabilities", "condition"),
    [(-1, NOTHING, "ok"), (2, NOTHING, "ok"), (3, NOTHING, "limited"), (4, NOTHING, "limited"), (4, SYS_ADMIN, "ok")],
)
def test_perf_events_are_limited_above_two_without_the_capability(machine, level, capabilities, condition):
    write(machine, "proc/sys/kernel/perf_event_paranoid", f"{level}\n")
    write(machine, "proc/self/status", f"Name:\tpython\nCapEff:\t{capabilities}\n")
    check = checks_of(machine)["perf events"]
    assert (check.condition, bool(check.fix)) == (condition, condition == "limited")


@pytest.mark.parametrize(("tried", "condition"), [("OK", "ok"), ("Fail", "limited")])
def test_nsys_is_believed_where_it_may_not_sample_though_the_kernel_would_allow_it(machine, tried, condition):
    write(machine, "proc/sys/kernel/perf_event_paranoid", "1\n")
    check = doctor_machine._sampling(machine, f"CPU Profiling Environment (process-tree): {tried}\n")
    assert check.condition == condition


@pytest.mark.parametrize(
    ("restricted", "capabilities", "condition"), [(0, NOTHING, "ok"), (1, NOTHING, "limited"), (1, SYS_ADMIN, "ok")]
)
def test_counters_of_the_gpu_are_limited_where_the_driver_restricts_them(machine, restricted, capabilities, condition):
    write(machine, "proc/driver/nvidia/params", f"Other: 7\nRmProfilingAdminOnly: {restricted}\n")
    write(machine, "proc/self/status", f"CapEff:\t{capabilities}\n")
    check = doctor_machine._counters(machine)
    assert (check.condition, "RestrictProfilingToAdminUsers=0" in check.fix) == (condition, condition == "limited")


@pytest.mark.parametrize(
    ("free", "condition"),
    [(5 * 10**9, "ok"), (5 * 10**9 - 1, "limited"), (2**28, "limited"), (2**28 - 1, "missing")],  # what nsys needs
)
def test_storage_is_judged_by_what_is_free(machine, monkeypatch, free, condition):
    monkeypatch.setattr(doctor_machine, "room", lambda _: free)
    assert doctor_machine._storage(machine).condition == condition


def test_a_folder_that_cannot_be_written_to_takes_1_other_folder(machine, monkeypatch):
    monkeypatch.setattr(doctor_machine.os, "access", lambda *_: False)
    check = doctor_machine._storage(machine)
    assert (check.condition, check.fix) == ("limited", "traceviz collect -o FOLDER")


@pytest.mark.parametrize(
    ("nvtx", "nsys", "lost"),
    [
        ("0.2.11", "2022.4.2.1", False),
        ("0.2.12", "2022.4.2.1", True),
        ("0.2.13", "2023.4.4", True),
        ("0.2.13", "2024.1.1", False),
    ],
)
def test_nvtx_and_nsys_that_lose_ranges_together_are_known(nvtx, nsys, lost):
    assert doctor_machine.loses_ranges(nvtx, nsys) is lost


def test_a_program_whose_ranges_would_be_lost_is_warned(machine):
    checks = checks_of(machine)
    assert (checks["NVTX"].condition, checks["NVTX"].fix) == (
        "limited",
        "/venv/bin/python -m pip install 'nvtx<0.2.12'",
    )
    assert checks["Python"].detail == "Python 3.12.1 at /venv/bin/python, with torch 2.9.0, nvtx 0.2.13."
    assert "NVTX" not in checks_of(machine, nsys=None)


def test_versions_are_asked_of_another_python_without_importing_anything(tmp_path, monkeypatch):
    for name, version in (("tensorflow_cpu", "2.21.0"), ("nvtx", "0.2.11"), ("keras", "3.15.1")):
        write(
            tmp_path,
            f"{name}-{version}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        )
        write(tmp_path, f"{name.partition('_')[0]}.py", "raise SystemExit('was imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    python = doctor_machine.read_python(doctor_machine.sys.executable)
    known = {"tensorflow": "2.21.0", "nvtx": "0.2.11", "keras": "3.15.1"}
    assert (python.version, known.items() <= python.packages.items()) == (platform.python_version(), True)
    assert doctor_machine.read_python("/no/such/python") == ProgramPython("/no/such/python", None, {})


def test_the_python_is_the_one_named_else_the_one_on_path(tmp_path, monkeypatch):
    for name in ("one/python", "two/python3.9"):
        write(tmp_path, name, "#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/one:{tmp_path}/two")
    assert doctor_machine.program_python() == f"{tmp_path}/one/python"
    assert doctor_machine.program_python("python3.9") == f"{tmp_path}/two/python3.9"
    done = CliRunner().invoke(main, ["doctor", "--python", "python2.7"])
    assert (done.exit_code, "--python 'python2.7' is not a program" in done.output) == (2, True)


@pytest.mark.parametrize(("names", "code"), [("auto", 0), ("good", 0), ("gone", 3), ("good,gone", 3)])
def test_the_exit_code_is_that_of_the_collectors_asked_for(machine, names, code):
    assert CliRunner().invoke(main, ["doctor", "--with", names]).exit_code == code


def test_an_unknown_collector_is_a_mistake_in_use(machine):
    with pytest.raises(UsageError, match="Known: auto, gone, good"):
        doctor.examine_machine(("nysys",))
    assert CliRunner().invoke(main, ["doctor", "--with", "nysys"]).exit_code == 2


@pytest.mark.parametrize("options", [["--json"], ["--format", "json"]])
def test_json_holds_every_check_and_who_is_not_ready(machine, options):
    document = json.loads(CliRunner().invoke(main, ["doctor", "--with", "gone,good", *options]).stdout)
    assert (document["kind"], document["version"], document["not_ready"]) == ("traceviz.doctor", 1, ["gone"])
    assert [check["name"] for check in document["checks"]][:2] == ["good", "gone"]
    assert set(document["checks"][0]) == {"group", "name", "condition", "detail", "fix"}


def test_a_framework_that_was_asked_for_and_is_not_there_is_not_ready(machine, monkeypatch):
    monkeypatch.setattr(registry.COLLECTORS, "all", lambda: (Fake("jax", READY), Fake("torch", READY)))
    assert CliRunner().invoke(main, ["doctor", "--with", "torch"]).exit_code == 0
    assert CliRunner().invoke(main, ["doctor", "--with", "torch,jax"]).exit_code == 3


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_page(machine, width):
    done = CliRunner().invoke(main, ["doctor", "--with", "gone", "--width", str(width)], color=True)
    lines = done.stdout.splitlines()
    assert len(lines) > 15
    assert max(map(len, lines)) <= width
    assert "Cannot record: gone." in " ".join(lines[-2:])
    assert "\033" not in done.stdout


def test_a_flag_stays_whole_so_that_it_can_be_copied():
    check = Check("machine", "x", "limited", f"{'word ' * 9}--cap-add=SYS_ADMIN", "run --with-a-flag=yes")
    for width in (40, 60, 80):
        lines = doctor.to_text(doctor.Diagnosis("t", (check,)), width).splitlines()
        assert sum("--cap-add=SYS_ADMIN" in line for line in lines) == 1
        assert sum("--with-a-flag=yes" in line for line in lines) == 1


@pytest.mark.parametrize(
    "words", [["trace", "--with", "nsys"], ["trace", "--python", "python"], ["--run", "a"], ["--max-size", "1GB"]]
)
def test_an_option_of_the_other_question_is_a_mistake_in_use(machine, words):
    done = CliRunner().invoke(main, ["doctor", *words])
    assert (done.exit_code, "is about" in done.output) == (2, True)


def test_a_hostile_message_cannot_steer_the_terminal():
    check = Check("machine", "x", "limited", "a\033[2Jb\nc", "d\re")
    text = doctor.to_text(doctor.Diagnosis("t", (check,)))
    assert "\033" not in text
    assert "a␛[2Jb c" in text


def of_trace(trace):
    return {check.name: check for check in trace_checks(trace)}


def test_an_absent_table_is_missing_and_an_empty_one_was_recorded():
    checks = of_trace(tables(kernels=[(0, 10, "gemm")], cuda_api=[]))
    work = checks["device work"]
    assert (work.condition, work.detail) == ("ok", "Kernels, copies, idle gaps: 1 kernel.")
    assert checks["CUDA API"].condition == "limited"
    assert (checks["OS calls"].condition, checks["OS calls"].fix) == ("missing", "traceviz collect --with nsys")


def test_steps_that_the_program_marks_are_fine_and_none_are_missing():
    marked = [(start * 100, 90, f"step {start}") for start in range(8)]
    checks = of_trace(tables(nvtx=marked))
    assert (checks["steps"].condition, checks["steps"].detail) == ("ok", "8, NVTX ranges.")
    assert checks["NVTX"].detail == "8 ranges and marks."
    assert of_trace(tables(kernels=[(0, 10, "gemm")]))["steps"].condition == "missing"
    assert of_trace(tables(kernels=[(0, 10, "gemm")]))["NVTX"].condition == "missing"
    assert of_trace(tables(nvtx=[]))["NVTX"].condition == "limited"


def test_a_single_step_has_nothing_to_be_compared_with():
    check = of_trace(tables(steps=[(0, 90, 0)], kernels=[(0, 10, "gemm")]))["steps"]
    assert (check.condition, check.detail[:24]) == ("limited", "1, declared by the trace")


def test_input_is_known_where_a_range_loads_data():
    loading = [(start * 100, 40, "data loading") for start in range(8)]
    assert of_trace(tables(nvtx=loading))["input"].condition == "ok"
    assert of_trace(tables(nvtx=[(0, 40, "forward")]))["input"].condition == "missing"


def test_losses_are_said_once_and_other_warnings_have_their_own_line():
    notes = [
        ("damaged", "warning", "Cut off after 10 events."),
        ("clock-skew", "warning", "Clocks differ."),
        ("profiler-diagnostic", "warning", "Nsight Systems: The driver is not supported."),
        ("profiler-diagnostic", "warning", "Nsight Systems: No NVTX events collected. Does the process use NVTX?"),
        ("route", "info", "Read by x."),
    ]
    checks = of_trace(tables(kernels=[(0, 10, "gemm")], notes=notes))
    assert checks["events"].detail == "The file is cut off or broken: Cut off after 10 events."
    assert checks["clock-skew"].detail == "Clocks differ."
    assert checks["profiler"].detail == "Nsight Systems: The driver is not supported."
    assert "damaged" not in checks
    assert "route" not in checks
    assert of_trace(tables(kernels=[(0, 10, "gemm")]))["events"].condition == "ok"


def test_what_profilers_took_to_stop_and_save_is_told_with_the_overhead_as_the_report_has_it():
    costs = {"torch": "72000000", "jax": "300000"}
    stated = {"run.status": "finished", **{f"collector.{name}.state": "recorded" for name in costs}}
    stated |= {f"collector.{name}.stop_cost_ns": cost for name, cost in costs.items()}
    settings = [(key, value, {"process_id": None}) for key, value in stated.items()]
    trace = tables(kernels=[(0, 10, "gemm")], settings=settings)
    words = "The trace does not say what the profiler itself took while it recorded."
    assert of_trace(trace)["overhead"].detail == f"{words} Stopping and saving took 72.3 ms besides."
    assert analyze(trace).fact("run", "stop_cost_ns") == 72_300_000
    assert "topping" not in of_trace(tables(kernels=[(0, 10, "gemm")]))["overhead"].detail


def test_rows_of_tables_are_told_in_words():
    checks = of_trace(tables(host_ops=[(0, 5, "op"), (5, 5, "op")], samples=[(0, "program CPU", 1.0)]))
    assert checks["framework ops"].detail == "Time by operation: 2 host operations."
    assert checks["resources"].detail == "CPU, memory, threads over time: 1 sampled value."
