"""Cores of several memory nodes that work for one program."""

import pytest

from tests.analyses.host_literals import TEN_STEPS, findings, percent, recorded

TWO = {"machine.memory_node.0.cores": "0-1,4-5", "machine.memory_node.1.cores": "2-3,6-7"}


def found(cores, program, *, settings=TWO, machine=None):
    """Return the busy percent of each core, and of the program, in ten steps that the host computes."""
    of_cores = [row for number, busy in enumerate(cores) for row in percent(f"core {number}", *[busy] * 12)]
    used = percent("machine CPU", *[sum(cores) if machine is None else machine] * 12)
    view = recorded(of_cores, percent("program CPU", *[program] * 12), used, settings=settings, steps=TEN_STEPS)
    return {finding.code: finding for finding in findings(view)}.get("TV619")


class TestMemoryNodes:
    def test_work_that_would_fit_into_one_node_is_named_with_its_cores(self):
        finding = found([100, 100, 80, 70, 0, 0, 0, 0], 350)
        assert finding.message == (
            "Cores of 2 memory nodes work for the steps (2 and 1.5 busy cores), and its 3.5 busy cores would fit into "
            "one of 4 cores."
        )

    @pytest.mark.parametrize(
        ("cores", "program", "settings", "machine"),
        [
            ([100, 100, 80, 70, 0, 0, 0, 0], 350, {}, None),
            ([100, 100, 10, 10, 90, 90, 0, 0], 400, TWO, None),
            ([100, 100, 100, 100, 100, 0, 0, 0], 500, TWO, None),
            ([100, 100, 80, 70, 0, 0, 0, 0], 250, TWO, 350),
        ],
        ids=["one node", "bound to one", "more than one node", "others"],
    )
    def test_it_is_silent_where_nothing_shows_that_binding_would_help(self, cores, program, settings, machine):
        assert found(cores, program, settings=settings, machine=machine) is None
