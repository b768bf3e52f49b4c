"""Parts of the device work that public captures did not record."""

import pytest

from traceviz import api
from traceviz.analyses.derived.view import TraceView

SGLANG = "kineto/AMD-AGI__TraceLens__inference_sglang_decode__sglang_Qwen3-8B_decode.json.gz"
VLLM = "kineto/AMD-AGI__TraceLens__inference_vllm_decode_full__graph_execution.json.gz"
RANK = "kineto/facebookresearch__HolisticTraceAnalysis__rank0.json.gz"
TWO = "nsys/GindaChen__nsys-ai__h100_2gpu_1s.sqlite"


@pytest.fixture
def windows(public_cases):
    return lambda name: TraceView(api.open_trace(public_cases / name)).device_windows


@pytest.mark.parametrize(
    ("name", "begin_ns", "held_up_ns"), [(SGLANG, 463_380_240, 463_251_758), (VLLM, 8_370_878, 7_826_151)]
)
def test_devices_that_worked_on_what_came_before_the_capture_are_not_idle(windows, name, begin_ns, held_up_ns):
    (window,) = windows(name).values()
    assert (window.begin_ns, window.held_up_ns, window.lacks_last) == (begin_ns, held_up_ns, 0)


def test_neither_97_9_percent_idle_nor_all_of_it_computing_is_said(public_cases):
    report = api.report_on(public_cases / SGLANG)
    said = [report.verdict.sentence, *(finding.message for finding in report.findings)]
    assert "What the device did in the first 463 ms of the capture is not known." in said[0]
    assert not any(words in text for text in said for words in ("97.9 %", "100.0 %", "idle in"))


def test_work_that_was_launched_before_the_capture_is_counted(windows):
    assert [window.launched_before for window in windows(RANK).values()] == [872]
    before = {process: (window.launched_before, window.lacks_last) for process, window in windows(TWO).items()}
    assert before == {0: (1_138, 857), 1: (1_138, 857)}
