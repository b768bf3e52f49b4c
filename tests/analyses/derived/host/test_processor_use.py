"""Times in which a program works, by samples of its processor time."""

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.processor_use import working

CPU, QUEUED = "program CPU", "program waits for a core"


def bounds(**given: list[tuple[object, ...]]) -> list[tuple[int, int]] | None:
    found = working(trace(nvtx=[(0, 100, "run")], **given))
    return None if found is None else list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))


def test_a_sample_stands_for_the_time_since_the_one_before_it() -> None:
    samples = [(0, CPU, 200.0), (10, CPU, 100.0), (20, CPU, 3.0), (30, CPU, 50.0), (40, CPU, 49.9)]
    assert bounds(samples=samples) == [(0, 10), (20, 30)]


def test_waiting_for_a_core_counts_although_it_is_sampled_at_other_times() -> None:
    samples = [(0, CPU, 0.0), (10, CPU, 10.0), (20, CPU, 10.0), (30, CPU, 10.0), (15, QUEUED, 0.0), (35, QUEUED, 80.0)]
    assert bounds(samples=sorted(samples)) == [(10, 30)]


def test_without_samples_it_is_not_known() -> None:
    assert bounds() is None
    assert bounds(samples=[(0, CPU, 100.0)]) is None
    assert bounds(samples=[(0, "machine CPU", 100.0), (10, "machine CPU", 100.0)]) is None
