"""Deciding what records: pure functions from options and states to a plan."""

from pathlib import Path

import pytest

from traceviz.collectors.base import Availability, Collector, Plan, Window
from traceviz.collectors.run.plan import (
    CollectOptions,
    added_environment,
    file_name,
    make_plan,
    parse_tags,
    program_name,
    split_arguments,
    traces_cuda,
    window_of,
    wrapped_command,
)
from traceviz.core.errors import MissingToolError, UsageError

NAMES = ("jax", "nsys", "nvtx", "resources", "tensorflow", "torch")
COMMAND = ("python", "train.py")


def states(**others):
    ready = dict.fromkeys(NAMES, Availability("ready", "fine"))
    return {**ready, **{name: Availability(state, "No.", f"install {name}") for name, state in others.items()}}


def plan(machine=None, **options):
    return make_plan(CollectOptions(**options), COMMAND, Path("/runs/a"), machine or states())


def test_auto_takes_all_6_that_are_ready():
    assert plan().collectors == NAMES


def test_auto_leaves_ranges_out_where_nsys_cannot_record_them():
    made = plan(states(nsys="not-installed"))
    assert made.collectors == ("jax", "resources", "tensorflow", "torch")
    assert not made.nvtx


def test_ranges_that_are_switched_off_are_not_recorded():
    made = plan(nvtx=False)
    assert ("nvtx" in made.collectors, made.nvtx, len(made.collectors)) == (False, False, 5)


def test_names_are_taken_in_the_order_of_the_registry_and_once():
    assert plan(collectors=("torch", "resources", "torch")).collectors == ("resources", "torch")


def test_nsys_by_name_brings_the_ranges_that_it_records():
    assert plan(collectors=("nsys",)).collectors == ("nsys", "nvtx")
    assert plan(collectors=("nsys",), nvtx=False).collectors == ("nsys",)
    assert plan(states(nvtx="unsupported"), collectors=("nsys",)).collectors == ("nsys",)


def test_a_name_that_cannot_record_says_what_mends_it_and_what_would_record_instead():
    with pytest.raises(MissingToolError) as caught:
        plan(states(nsys="too-old"), collectors=("resources", "nsys"))
    assert caught.value.fix == "install nsys"
    assert "nsys cannot record here (too old)" in caught.value.what
    assert caught.value.why == "Without --with, these would record: jax, resources, tensorflow, torch."


def test_where_nothing_else_can_record_either_it_says_so():
    with pytest.raises(MissingToolError, match="Nothing else can record here either"):
        plan(states(**dict.fromkeys(NAMES, "no-device")), collectors=("nsys",))


def test_an_unknown_collector_is_named_with_the_7_that_are_known():
    with pytest.raises(UsageError, match="no collector 'perf'") as caught:
        plan(collectors=("perf",))
    assert caught.value.fix == "Known: auto, jax, nsys, nvtx, resources, tensorflow, torch."


def test_a_rate_of_0_leaves_stacks_out_and_contradicts_their_name():
    machine = states() | {"stacks": Availability("ready", "fine")}
    assert plan(machine).collectors == (*NAMES, "stacks")
    assert plan(machine, stacks_hz=0.0).collectors == NAMES
    with pytest.raises(UsageError, match="--with stacks and --stacks-rate 0 contradict"):
        plan(machine, collectors=("stacks",), stacks_hz=0.0)


def test_ranges_asked_for_and_switched_off_contradict_each_other():
    with pytest.raises(UsageError, match="contradict"):
        plan(collectors=("nsys", "nvtx"), nvtx=False)


@pytest.mark.parametrize(
    ("options", "tracer"),
    [
        ({}, "nsys"),
        ({"nsys_args": ("--trace=nvtx,osrt",)}, None),
        ({"nsys_args": ("-t", "nvtx"), "collectors": ("nsys", "torch")}, "torch"),
        ({"collectors": ("torch", "resources")}, "torch"),
        ({"collectors": ("torch", "jax")}, None),
        ({"collectors": ("resources",)}, None),
    ],
)
def test_one_collector_at_most_is_given_the_device(options, tracer):
    assert plan(**options).device_tracer == tracer


@pytest.mark.parametrize(
    ("flags", "traces"),
    [
        ((), True),
        (("--trace=cuda,nvtx",), True),
        (("-t", "cublas"), True),
        (("-tosrt",), False),
        (("--trace", "none"), False),
        (("-t",), False),
        (("--trace=cuda", "--trace=nvtx"), False),
        (("--tra=osrt",), False),
        (("--trac", "osrt"), False),
        (("--trace-fork-before-exec=true",), True),
        (("--stats=true", "-y", "5"), True),
    ],
)
def test_flags_of_nsys_say_whether_it_traces_cuda(flags, traces):
    assert traces_cuda(flags) is traces


@pytest.mark.parametrize(
    ("steps", "delay", "duration", "window"),
    [
        (None, None, None, Window(10, 20)),
        ("2:5", None, None, Window(2, 3)),
        ("7:", None, None, Window(7, None)),
        (":4", None, None, Window(0, 4)),
        (":", None, None, Window(0, None)),
        (None, 1.5, None, Window(0, None, 1.5, None)),
        (None, None, 3.0, Window(0, None, 0.0, 3.0)),
        (None, 1.0, 2.0, Window(0, None, 1.0, 2.0)),
    ],
)
def test_windows_are_read_as_half_open(steps, delay, duration, window):
    assert window_of(steps, delay, duration) == window


@pytest.mark.parametrize("steps", ["5", "5:5", "9:3", "a:b", "", "-1:4", "1:2:3"])
def test_steps_that_are_none_are_refused(steps):
    with pytest.raises(UsageError, match="names no steps"):
        window_of(steps, None, None)


def test_steps_and_times_exclude_each_other():
    with pytest.raises(UsageError, match="cannot be combined"):
        window_of("1:2", 0.5, None)


def test_tags_are_split_at_the_first_equals_sign():
    assert parse_tags(("batch=256", " note = a=b ")) == {"batch": "256", "note": "a=b"}


@pytest.mark.parametrize("tags", [("batch",), ("=1",), ("a=1", "a=2")])
def test_tags_without_a_key_or_given_twice_are_refused(tags):
    with pytest.raises(UsageError, match="--tag"):
        parse_tags(tags)


def test_flags_are_quoted_as_in_a_shell():
    assert split_arguments("--stats=true -o 'a b'") == ("--stats=true", "-o", "a b")
    with pytest.raises(UsageError, match="No closing quotation"):
        split_arguments("-o 'a")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "train.py"), "train"),
        (("/usr/bin/python3.11", "-u", "-W", "error", "src/my train.py", "--data=x.py"), "my-train"),
        (("python", "-m"), "python"),
        (("python", "-c", "print(1)"), "python"),
        (("torchrun", "--nproc-per-node=2", "train"), "torchrun"),
        (("./..",), "run"),
        (("x" * 300,), "x" * 60),
        (("torchrun", "--nproc-per-node", "2", "src/train.py"), "train"),
        (("python", "-m", "torch.distributed.run", "--standalone", "train.py"), "train"),
        (("torchrun", "-m", "pkg.train", "config.py"), "pkg.train"),
        (("env", "OMP_NUM_THREADS=1", "python", "train.py"), "train"),
        (("bash", "train.py"), "bash"),
    ],
)
def test_a_run_is_named_after_the_script_or_the_program(command, name):
    assert program_name(command) == name


def test_a_name_becomes_one_part_of_a_path():
    assert file_name("../batch 256/é") == "batch-256"


class Wrapper(Collector):
    def __init__(self, name):
        self.name = name

    title = "Wrapper"

    def availability(self):
        return Availability("ready", "")

    def command(self, command, plan):
        return (self.name, "--", *command)

    def environment(self, plan, inherited):
        return {"PYTHONPATH": f"/hooks:{inherited.get('PYTHONPATH', '')}", self.name.upper(): "1"}


def test_the_first_collector_wraps_innermost():
    made = Plan(Path("/runs/a"), COMMAND, ("a", "b"))
    assert wrapped_command(made, (Wrapper("a"), Wrapper("b"))) == ("b", "--", "a", "--", "python", "train.py")


def test_variables_that_two_collectors_set_alike_are_set_once():
    made = Plan(Path("/runs/a"), COMMAND, ("a", "b"))
    added = added_environment(made, (Wrapper("a"), Wrapper("b")), {"PYTHONPATH": "/mine"})
    assert added == {"PYTHONPATH": "/hooks:/mine", "A": "1", "B": "1"}
