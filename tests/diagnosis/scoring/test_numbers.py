import pytest

from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.loader import SINGLE
from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span, ThreadFacts, Work
from benchmarks.diagnosis.score import read_report
from benchmarks.diagnosis.scoring.numbers import account_of, find_errors
from benchmarks.diagnosis.truth import run
from benchmarks.diagnosis.worlds import World


def device(work, start, end):
    return DeviceSpan(0, 7, work, "", start, end, correlation=1)


def test_time_of_several_classes_belongs_to_the_first():
    #  0    10   20   30   40   50   60   70   80   90  100
    #  |input    |kernel        |collective    |              device and loader
    #       |copy     |    |call               |    |host|    call: 40 to 80
    record = Record(
        spans=(
            Span(0, 1, Kind.RANGE, SINGLE, 0, 20),
            Span(0, 1, Kind.API, "cudaStreamSynchronize", 40, 80),
            Span(0, 1, Kind.RANGE, "gloo:all_reduce", 90, 95),
            Span(0, 100, Kind.API, "of another process", 80, 100),
        ),
        device=(device(Work.HOST_TO_DEVICE, 10, 30), device(Work.KERNEL, 20, 50), device(Work.COLLECTIVE, 45, 65)),
        threads=(ThreadFacts(0, 1, "python", 0), ThreadFacts(0, 100, "pt_data_worker", 1)),
        ranks=1,
        end=120,
    )

    assert account_of(record, 0, [(0, 100)]) == {
        "compute": 30,
        "communication": 15 + 5,
        "copies": 10,
        "input": 10,
        "calls": 15,
        "other": 100 - 90 + 5 + 5 - 10 + 5,
    }
    assert account_of(record, 0, [(5, 15), (85, 100)]) == {
        "compute": 0,
        "communication": 5,
        "copies": 5,
        "input": 5,
        "calls": 0,
        "other": 10,
    }


def test_launched_work_counts_as_its_call_until_it_starts_and_the_capture_of_a_graph_is_none():
    record = Record(
        spans=(
            Span(0, 1, Kind.API, "cudaLaunchKernel", 10, 14, correlation=1),
            Span(0, 1, Kind.API, "cudaGraphInstantiate", 40, 80),
        ),
        device=(device(Work.KERNEL, 17, 30),),
        threads=(ThreadFacts(0, 1, "python", 0),),
        ranks=1,
        end=100,
    )
    account = account_of(record, 0, [(0, 100)])

    assert (account["compute"], account["calls"], account["other"]) == (13, 4 + 3, 80)


@pytest.mark.parametrize("format_", [Format.NSYS, Format.KINETO])
def test_the_report_on_a_clean_capture_agrees_with_the_simulator(format_, tmp_path):
    record = run(World(1, steps=6, layers=3, workers=0, strengths={Knob.SLOW_LOADER: 1.0}))
    report = read_report(write_capture(record, Capture(format_), 1, tmp_path))

    assert max(find_errors(record, record, report).values()) < 0.001
    one_step_more = Record(
        (*record.spans, Span(0, 1, Kind.STEP, "", record.end, record.end + 1)),
        record.device,
        record.threads,
        1,
        record.end + 1,
    )
    assert find_errors(one_step_more, one_step_more, report) == {}
