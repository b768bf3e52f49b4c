"""The figures of a whole run: times without the recording's own, epochs, rates, latency, energy, memory, its end."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.run import analyze

S = 1_000_000_000
MS = 1_000_000
APPLIES = [("process.gradients", "0", {"process_id": 0})]


def report(*, settings=(), **literals):
    of_run = [row if isinstance(row[-1], dict) else (*row, {"process_id": None}) for row in settings]
    return analyze(tables(settings=of_run, **literals), sections=["measures"])


def measures(**literals):
    return {row["key"]: row for row in report(**literals).rows("measures")}


def ended(status="finished", seconds=20, **more):
    return [("run.status", status), ("run.duration_ns", str(seconds * S)), *more.items()]


def program(seconds, *phases):
    return [(0, seconds * S, "program", "train.py", {"thread_id": None}), *phases]


def steps(begin, count, each, source="torch_optimizer", first=0):
    return [(begin + at * each, each, "step", source, {"number": first + at}) for at in range(count)]


def facts(report):
    return {fact.key: fact.value for fact in report.facts("measures")}


def test_times_of_a_run_leave_out_what_the_recording_took():
    recording = (4 * S, 2 * S, "recording", "torch")
    phases = program(20, *steps(3 * S, 1, S), recording, *steps(6 * S, 100, 100 * MS, first=1))
    found = measures(phases=phases, settings=ended())
    values = {key: found[key]["value"] for key in ("total_ns", "training_ns", "start_ns", "steps")}
    assert values == {"total_ns": 18 * S, "training_ns": 14 * S, "start_ns": 3 * S, "steps": 101}
    assert found["total_ns"]["better"] == "lower"
    assert found["steps"]["better"] == ""


@pytest.mark.parametrize("status", ["failed", "killed", "interrupted"])
def test_a_run_that_did_not_finish_has_no_total_time_and_3_s_until_its_first_step(status):
    found = measures(phases=program(20, *steps(3 * S, 10, S)), settings=ended(status))
    assert found["start_ns"]["value"] == 3 * S
    assert found.keys().isdisjoint({"total_ns", "training_ns"})


def test_steps_of_training_count_and_not_the_500_calls_after_it():
    phases = program(20, *steps(3 * S, 100, 100 * MS, "keras"), *steps(13 * S, 500, 10 * MS, "tf_call"))
    found = measures(phases=phases, settings=ended())
    assert (found["steps"]["value"], found["training_ns"]["value"]) == (100, 13 * S)
    assert "latency_p50_ns" not in found


def test_steps_that_were_noted_ten_as_one_count_as_ten():
    phases = program(20, *steps(3 * S, 3, S), (6 * S, S, "step", "torch_optimizer", {"number": 12}))
    assert measures(phases=phases)["steps"]["value"] == 13


def test_what_repeats_between_epochs_is_an_evaluation_and_no_step():
    epochs = [(S, 4 * S, "epoch", "tf.data", {"number": 0}), (6 * S, 4 * S, "epoch", "tf.data", {"number": 1})]
    phases = program(20, *epochs, *steps(S, 100, 100 * MS, "tf_iterator"))
    found = measures(phases=phases, settings=ended())
    assert (found["steps"]["value"], found["training_ns"]["value"]) == (80, 10 * S)


def test_epochs_that_the_program_marks_itself_are_those_of_a_trace_without_hooks():
    marks = [(at * S, S // 2 + at, f"epoch {at}") for at in range(4)]
    others = [(at * S, S // 4, "epoch loading") for at in range(4)]
    found = measures(nvtx=[*marks, *others])
    assert (found["first_epoch_ns"]["value"], found["epoch_ns"]["value"]) == (S // 2, S // 2 + 2)


def test_of_a_loop_that_is_found_while_it_goes_on_nobody_knows_the_first_of_its_12_steps():
    found = measures(phases=program(20, *steps(3 * S, 12, S, "found_update SGD.update")), settings=ended())
    assert ("start_ns" in found, found["training_ns"]["value"], found["steps"]["value"]) == (False, 15 * S, 12)
    assert found["steps"]["about"] == "of SGD.update, which is taken for what ends a step"


def test_an_epoch_lasts_without_its_validation_and_checkpoints_and_the_first_is_apart():
    epochs = [(at * 10 * S, 10 * S, "epoch", "keras", {"number": at}) for at in range(8)]
    others = [(8 * S, S, "validation", "keras evaluate"), (19 * S, S, "saving", "torch.save")]
    found = measures(phases=program(90, *epochs, *others))
    assert (found["first_epoch_ns"]["value"], found["epochs"]["value"]) == (9 * S, 8)
    epoch = found["epoch_ns"]
    assert (epoch["value"], epoch["count"], epoch["low"], epoch["high"]) == (10 * S, 7, 9 * S, 10 * S)
    assert epoch["about"].startswith("median of 7 epochs")


def test_one_epoch_is_the_first_and_has_no_median():
    found = measures(phases=program(20, (S, 5 * S, "epoch", "keras", {"number": 0})))
    assert found["first_epoch_ns"]["value"] == 5 * S
    assert "epoch_ns" not in found


def test_samples_per_second_are_those_of_steady_steps_that_no_profiler_recorded():
    phases = program(
        20, *steps(0, 1, 2 * S), *steps(2 * S, 20, 200 * MS, first=1), *steps(6 * S, 40, 100 * MS, first=21)
    )
    windows = [(2 * S, 4 * S, "host_ops")]
    batch = [("process.batch", "32", {"process_id": 0})]
    rate = measures(phases=phases, windows=windows, settings=[*ended(), *batch])["samples_per_second"]
    assert (rate["value"], rate["low"], rate["high"], rate["count"]) == pytest.approx((320, 320, 320, 40))
    assert rate["about"] == "batch 32; 40 steady steps"


def test_the_batch_of_hooks_counts_before_that_of_a_tag_and_for_each_of_2_processes():
    of_other = [(at, lasts, kind, name, {**extra, "process_id": 1}) for at, lasts, kind, name, extra in steps(0, 20, S)]
    phases = [*program(20), *steps(0, 20, S), *of_other]
    batch = [("process.batch", "32", {"process_id": 0}), ("tag.batch", "7")]
    assert measures(phases=phases, settings=batch)["samples_per_second"]["value"] == pytest.approx(64)
    rate = measures(phases=phases, settings=[("tag.batch_size", "7")])["samples_per_second"]
    assert (rate["value"], rate["about"]) == (pytest.approx(7), "batch 7, as tagged; 20 steady steps")


def test_calls_of_a_model_that_learns_nothing_have_a_latency():
    calls = [(at * 12 * MS, (10 if at % 20 else 12) * MS, "step", "torch_call", {"number": at}) for at in range(200)]
    found = measures(
        phases=program(20, *calls), settings=[*ended(), *APPLIES, ("process.batch", "8", {"process_id": 0})]
    )
    values = [found[f"latency_p{share}_ns"]["value"] for share in (50, 95, 99)]
    assert values == [10 * MS, pytest.approx(10.1 * MS, rel=0.01), 12 * MS]
    assert found["latency_p50_ns"]["low"] == found["latency_p50_ns"]["high"] == 10 * MS
    assert found["latency_p99_ns"]["about"] == "from call to call, batch 8; 200 calls"


@pytest.mark.parametrize(
    ("source", "gradients", "functions", "has"),
    [
        ("torch_call", "1", "forward", False),
        ("torch_call", "0", "forward", True),
        ("torch_call", None, "forward", False),
        ("paddle_call", None, "forward", True),
        ("paddle_call", None, "backward", False),
        ("torch_optimizer", "0", "forward", False),
        ("program_step", None, "forward", True),
        ("found_update SGD.update", None, "forward", False),
    ],
)
def test_200_calls_have_a_latency_where_no_gradients_were_computed_and_they_would_have_been_seen(
    source, gradients, functions, has
):
    settings = [] if gradients is None else [("process.gradients", gradients, {"process_id": 0})]
    stacks = {"stacks": [(0, S, 0, 100)], "stack_frames": [(0, None, functions, "train.py", 3)]}
    found = measures(phases=program(20, *steps(0, 200, 10 * MS, source)), settings=settings, **stacks)
    assert found["steps"]["value"] == 200
    assert ("latency_p50_ns" in found) == has


def test_energy_is_power_from_the_first_step_to_the_last_of_every_device():
    watts = [(at * S, "GPU power", 100 + 100 * (at >= 10), {"unit": "W"}) for at in range(21)]
    second = [(at * S, "GPU power", 50, {"unit": "W", "device_id": 1}) for at in range(21)]
    phases = program(20, *steps(5 * S, 10, S))
    batch = [("process.batch", "4", {"process_id": 0})]
    found = measures(phases=phases, samples=[*watts, *second], settings=batch)
    first = 4 * 100 + 150 + 5 * 200  # 5 to 9 s, the rise, 10 to 15 s
    assert found["energy_j"]["value"] == pytest.approx(first + 10 * 50)
    assert found["energy_per_step_j"]["value"] == pytest.approx((first + 500) / 10)
    assert found["energy_per_sample_j"]["value"] == pytest.approx((first + 500) / 40)


def test_power_of_less_than_the_training_is_no_energy_of_it():
    watts = [(at * S, "GPU power", 100, {"unit": "W"}) for at in range(8)]
    phases = program(20, *steps(5 * S, 10, S))
    found = measures(phases=phases, samples=watts)
    assert found["steps"]["value"] == 10
    assert "energy_j" not in found


def test_memory_and_cores_are_the_highest_and_the_mean_of_their_samples():
    none = {"device_id": None}
    samples = [(at * S, "program memory", at * 1000, {"unit": "bytes", **none}) for at in range(5)]
    samples += [(at * S, "program CPU", 150 + at, {"unit": "%", **none}) for at in range(5)]
    samples += [(S, "GPU memory used", 7000, {"unit": "bytes"})]
    found = measures(samples=samples)
    values = {key: row["value"] for key, row in found.items()}
    assert values == {"host_memory_peak_bytes": 4000, "device_memory_peak_bytes": 7000, "cpu_mean": 1.52}


def test_memory_of_a_device_is_what_the_allocator_gave_where_that_is_known():
    events = [(S, "alloc", 10, {"in_use_bytes": 500}), (2 * S, "free", 10, {"in_use_bytes": 490, "peak_bytes": 900})]
    sampled = [(S, "GPU memory used", 7000, {"unit": "bytes"})]
    assert measures(memory_events=events, samples=sampled)["device_memory_peak_bytes"]["value"] == 900


@pytest.mark.parametrize(
    ("settings", "outcome", "reason"),
    [
        ([("run.status", "failed"), ("run.exit.code", "3")], "failed", "exit code 3"),
        ([("run.status", "killed"), ("run.exit.signal", "9")], "killed", "signal 9 (SIGKILL)"),
        ([("run.status", "killed"), ("run.ending.outcome", "timed-out"), ("run.ending.reason", "timed out after 60 s")],
         "timed-out", "timed out after 60 s"),
        ([("run.status", "finished"), ("run.exit.code", "0")], "finished", None),
    ],
)  # fmt: skip
def test_facts_say_how_the_program_ended(settings, outcome, reason):
    found = facts(report(settings=settings))
    assert (found["outcome"], found.get("reason")) == (outcome, reason)


def test_a_run_that_goes_on_has_no_outcome_and_nothing_measured_is_no_section():
    result = report(settings=[("run.status", "running")])
    assert (len(result.sections), result.skipped[0].reason) == (0, "nothing of the whole run was measured")
