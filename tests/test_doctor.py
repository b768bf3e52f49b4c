"""``traceviz doctor``: checks of made-up machines and of tiny traces, as text and as JSON."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.analyses.builders import tables
from traceviz import doctor, doctor_machine
from traceviz.cli import main
from traceviz.collectors import registry
from traceviz.collectors.base import Availability, Collector
from traceviz.doctor_checks import Check
from traceviz.doctor_trace import trace_checks
from traceviz.errors import UsageError
from traceviz.nsys_program import Nsys

OLD_NSYS = Nsys(Path("/opt/nsys"), "2022.4.2.1", "")
READY, MISSING = Availability("ready", "There."), Availability("not-installed", "Not there.", "apt-get install it")


class Fake(Collector):
    def __init__(self, name, state):
        self.name, self._state = name, state

    def availability(self):
        return self._state


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without GPU, of an ordinary user, with one collector of two; its Python has what ``versions`` says."""
    versions = {"torch": "2.9.0", "nvtx": "0.2.13"}
    monkeypatch.setattr(doctor_machine.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor_machine, "package_versions", lambda _: versions)
    monkeypatch.setattr(doctor, "find_nsys", lambda: OLD_NSYS)
    monkeypatch.setattr(registry, "COLLECTORS", (Fake("good", READY), Fake("gone", MISSING)))
    return tmp_path


def checks_of(root, states=None, nsys=OLD_NSYS):
    return {check.name: check for check in doctor_machine.machine_checks(states or {}, nsys, root)}


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_collectors_are_listed_with_what_mends_them(machine):
    found = checks_of(machine, {"good": READY, "gone": MISSING})
    assert (found["good"].condition, found["gone"].condition) == ("ok", "missing")
    assert found["gone"].detail == "not installed: Not there."
    assert found["gone"].fix == "apt-get install it"


@pytest.mark.parametrize(("level", "condition"), [(-1, "ok"), (2, "ok"), (3, "limited"), (4, "limited")])
def test_perf_events_are_limited_above_two(machine, level, condition):
    write(machine, "proc/sys/kernel/perf_event_paranoid", f"{level}\n")
    found = checks_of(machine)["perf events"]
    assert (found.condition, bool(found.fix)) == (condition, condition == "limited")


@pytest.mark.parametrize(("restricted", "condition"), [(0, "ok"), (1, "limited")])
def test_counters_of_the_gpu_are_limited_where_the_driver_restricts_them(machine, restricted, condition):
    write(machine, "proc/driver/nvidia/params", f"Other: 7\nRmProfilingAdminOnly: {restricted}\n")
    found = doctor_machine._counters(machine)
    assert (found.condition, "RestrictProfilingToAdminUsers=0" in found.fix) == (condition, restricted == 1)


@pytest.mark.parametrize(("free", "condition"), [(5 * 10**9, "ok"), (5 * 10**9 - 1, "limited"), (10**8 - 1, "missing")])
def test_storage_is_judged_by_what_is_free(machine, monkeypatch, free, condition):
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(doctor_machine.shutil, "disk_usage", lambda _: usage)
    assert doctor_machine._storage(machine).condition == condition


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
    found = checks_of(machine)
    assert (found["NVTX"].condition, found["NVTX"].fix) == ("limited", "python -m pip install 'nvtx<0.2.12'")
    assert "torch 2.9.0" in found["frameworks"].detail
    assert "NVTX" not in checks_of(machine, nsys=None)


def test_versions_are_asked_of_another_python_without_importing_anything():
    found = doctor_machine.package_versions(doctor_machine.sys.executable)
    assert found is not None
    assert set(found) <= set(doctor_machine.FRAMEWORKS)
    assert doctor_machine.package_versions("/no/such/python") is None


@pytest.mark.parametrize(("wanted", "code"), [("auto", 0), ("good", 0), ("gone", 3), ("good,gone", 3)])
def test_the_exit_code_is_that_of_the_collectors_asked_for(machine, wanted, code):
    assert CliRunner().invoke(main, ["doctor", "--with", wanted]).exit_code == code


def test_an_unknown_collector_is_a_mistake_in_use(machine):
    with pytest.raises(UsageError, match="Known: auto, gone, good"):
        doctor.examine_machine(("nysys",))
    assert CliRunner().invoke(main, ["doctor", "--with", "nysys"]).exit_code == 2


def test_json_holds_every_check_and_who_is_not_ready(machine):
    told = json.loads(CliRunner().invoke(main, ["doctor", "--with", "gone,good", "--json"]).stdout)
    assert (told["kind"], told["version"], told["not_ready"]) == ("traceviz.doctor", 1, ["gone"])
    assert [check["name"] for check in told["checks"]][:2] == ["good", "gone"]
    assert set(told["checks"][0]) == {"group", "name", "condition", "detail", "fix"}


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_page(machine, width):
    lines = doctor.to_text(doctor.examine_machine(("gone",)), width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[-1].startswith("2 ok") or "Cannot record: gone." in " ".join(lines[-2:])
    assert "\033" not in "".join(lines)


def test_a_hostile_message_cannot_steer_the_terminal():
    check = Check("machine", "x", "limited", "a\033[2Jb\nc", "d\re")
    text = doctor.to_text(doctor.Diagnosis("t", (check,)))
    assert "\033" not in text
    assert "a [2Jb c" in text


def of_trace(found):
    return {check.name: check for check in trace_checks(found)}


def test_an_absent_table_is_missing_and_an_empty_one_was_recorded():
    found = of_trace(tables(kernels=[(0, 10, "gemm")], cuda_api=[]))
    assert (found["GPU work"].condition, found["GPU work"].detail) == ("ok", "Kernels, copies, idle gaps: 1 kernels.")
    assert found["CUDA API"].condition == "limited"
    assert (found["OS calls"].condition, found["OS calls"].fix) == ("missing", "traceviz collect --with nsys")


def test_steps_that_the_program_marks_are_fine_and_none_are_missing():
    marked = [(start * 100, 90, f"step {start}") for start in range(8)]
    found = of_trace(tables(nvtx=marked))
    assert (found["steps"].condition, found["NVTX"].detail) == ("ok", "8 ranges and marks.")
    assert of_trace(tables(kernels=[(0, 10, "gemm")]))["steps"].condition == "missing"
    assert of_trace(tables(kernels=[(0, 10, "gemm")]))["NVTX"].condition == "missing"
    assert of_trace(tables(nvtx=[]))["NVTX"].condition == "limited"


def test_input_is_known_where_a_range_loads_data():
    loading = [(start * 100, 40, "data loading") for start in range(8)]
    assert of_trace(tables(nvtx=loading))["input"].condition == "ok"
    assert of_trace(tables(nvtx=[(0, 40, "forward")]))["input"].condition == "missing"


def test_losses_are_said_once_and_other_warnings_have_their_own_line():
    notes = [
        ("damaged", "warning", "Cut off after 10 events."),
        ("clock-skew", "warning", "Clocks differ."),
        ("route", "info", "Read by x."),
    ]
    found = of_trace(tables(kernels=[(0, 10, "gemm")], notes=notes))
    assert found["events"].detail == "The file is cut off or broken: Cut off after 10 events."
    assert found["clock-skew"].detail == "Clocks differ."
    assert "damaged" not in found
    assert "route" not in found
    assert of_trace(tables(kernels=[(0, 10, "gemm")]))["events"].condition == "ok"
