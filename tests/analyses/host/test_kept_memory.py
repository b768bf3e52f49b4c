"""Memory that rises from training to training within one process."""

import pytest

from tests.analyses.builders import trace
from tests.analyses.host_literals import ANALYSIS, EIGHT, SECOND, percent, series
from tests.analyses.stacks import sampled

MIB = 1 << 20


def found(*mebibytes, processes=1):
    """Return findings for trainings of two seconds; the amounts are memory at each start, in between it is higher."""
    amounts = [amount for start in mebibytes for amount in (start, start + 500)]
    count = [1] * (len(amounts) - 2) + [processes] * 2
    samples = [
        *percent("program CPU", *[100] * len(amounts)),
        *series("program memory", [amount * MIB for amount in amounts], "bytes"),
        *series("program processes", count),
    ]
    fits = [((1 + 2 * n) * SECOND, 2 * SECOND, "train", "fit", {"thread_id": 0}) for n in range(len(mebibytes))]
    steps = [((1 + 2 * n) * SECOND, SECOND, "step", "keras", {"thread_id": 0, "number": n}) for n in range(len(fits))]
    rows = sampled((0, SECOND, "train.py:9 main"))
    view = trace(samples=samples, settings=list(EIGHT.items()), phases=[*fits, *steps], span_ns=0, **rows)
    return {finding.code: finding for finding in ANALYSIS.judge(ANALYSIS.run(view))}.get("TV620")


class TestKeptMemory:
    def test_what_each_training_keeps_is_said_from_the_second_on(self):
        assert found(100, 400, 450, 500, 550).message == (
            "Memory is kept from one training to the next: it rises from 419 MB to 577 MB over 5 trainings in one "
            "process, 52.4 MB with each."
        )

    @pytest.mark.parametrize(
        "amounts",
        [(100, 400, 500), (100, 400, 500, 450, 600), (100, 400, 401, 402), (100, 4000, 4040, 4090)],
        ids=["three", "returned", "hardly", "4 %"],
    )
    def test_no_growth_is_said_where_there_is_none(self, amounts):
        assert found(*amounts) is None

    def test_new_processes_explain_growth(self):
        assert found(100, 400, 500, 600, processes=2) is None
