import pytest

from benchmarks.diagnosis.captures import Capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.scoring.failures import clear_failures, shrink, write_failure, write_shortest
from benchmarks.diagnosis.truth import find_truth
from benchmarks.diagnosis.worlds import World

WORLD = World(5, steps=40, ranks=4, layers=6, operators=4, workers=2, strengths={Knob.SLEEP: 1.0, Knob.LOCK: 1.0})
CAPTURE = Capture(Format.KINETO, Flaw.WINDOW)


def test_the_smallest_world_that_fails_is_found():
    world, capture = shrink(WORLD, CAPTURE, lambda world, _: Knob.SLEEP in world.strengths and world.layers >= 4)

    assert world == World(
        5,
        steps=3,
        ranks=1,
        layers=4,
        operators=1,
        kernel_ns=WORLD.kernel_ns * 6,  # 24 operators have become 4
        workers=0,
        spread=0.0,
        strengths={Knob.SLEEP: 1.0},
    )
    assert capture == Capture(Format.KINETO, Flaw.NONE)


def test_tries_are_bounded():
    tried = []
    world, capture = shrink(WORLD, CAPTURE, lambda *smaller: bool(tried.append(smaller)), tries=3)

    assert (world, capture, len(tried)) == (WORLD, CAPTURE, 3)


def test_a_straggler_needs_two_ranks():
    world, _ = shrink(
        World(5, ranks=8, strengths={Knob.STRAGGLER: 1.0}), CAPTURE, lambda world, _: bool(world.strengths)
    )

    assert world.ranks == 2


@pytest.mark.process
def test_a_failure_is_files_to_look_at(tmp_path):
    truth = find_truth(World(5, steps=4, layers=1, operators=1, workers=0, spread=0.0, strengths={Knob.SLEEP: 9.0}))
    folder = write_failure(truth, Capture(Format.KINETO), tmp_path)
    shortest = write_shortest(truth, Capture(Format.KINETO), folder)

    assert folder.name == "5-kineto-none"
    assert {path.name for path in folder.iterdir()} == {"rank0.pt.trace.json", "report.txt", "truth.txt", "shortest"}
    assert "World(seed=5, steps=4" in (folder / "truth.txt").read_text()
    assert "World(seed=5, steps=3" in (folder / "shortest" / "truth.txt").read_text()
    assert shortest.lead
    (tmp_path / "kept").mkdir()
    clear_failures(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
