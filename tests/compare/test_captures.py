"""Comparisons of whole captures: sides that have neither steps nor a total time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compare.sections_of import facts, run, section, table
from traceviz import api
from traceviz.compare.compare import compare
from traceviz.compare.effect import Outcome
from traceviz.compare.options import CompareOptions
from traceviz.compare.report.document import document
from traceviz.compare.sides.sides import Side
from traceviz.report import Section

US = 1_000
KERNELS = "name family calls total_ns mean_ns stddev_ns"


def kernels(scatter_ns: float = 1.0, **events: tuple[int, int]) -> Section:
    """Return kernels of a whole capture: calls, and time of a call in µs."""
    rows = [(name, "gemm", calls, calls * us * US, us * US, scatter_ns) for name, (calls, us) in events.items()]
    return section("kernels", table("", KERNELS, *rows), table("In steady steps", "name family calls total_ns"))


def capture(label: str, *sections: Section) -> Side:
    return Side(label, (replace(run(0), sections=sections),))


def compared(base: Section | tuple[Section, ...], new: Section | tuple[Section, ...], **options: bool):
    sides = [
        capture(label, *(sections if isinstance(sections, tuple) else (sections,)))
        for label, sections in (("a", base), ("b", new))
    ]
    result = compare(sides, CompareOptions(**options))
    return result.shown, document(result).verdict.sentence


def test_the_same_kernels_called_equally_often_are_judged_by_their_time():
    before = kernels(attention=(60, 400), gemm=(200, 50), pack=(100, 10))  # 24 + 10 + 1 ms
    after = kernels(attention=(60, 300), gemm=(200, 50), pack=(100, 10))  # 18 + 10 + 1 ms
    pair, sentence = compared(before, after)
    assert pair.judgement.outcome is Outcome.FASTER
    assert sentence.startswith("Kernel time 1.21× shorter: 35.0 → 29.0 ms (−17.1 %, 95 % interval −17.1 to −17.1 %).")
    assert "attention 6.00 ms less (24.0 → 18.0 ms)." in sentence
    assert {change.name: change.status.value for change in pair.kernels.changes} == {
        "attention": "faster",
        "gemm": "same",
        "pack": "same",
    }


def test_equal_captures_are_no_change():
    same = kernels(attention=(60, 400), gemm=(200, 50))
    pair, sentence = compared(same, same)
    assert pair.judgement.outcome is Outcome.NO_CHANGE
    assert sentence == "No change: kernel time 34.0 → 34.0 ms (0.0 %, 95 % interval 0.0 to 0.0 %)."


@pytest.mark.parametrize(("us", "outcome"), [(9_810, Outcome.NO_CHANGE), (9_790, Outcome.FASTER)])
def test_less_than_2_percent_may_be_the_clock_of_the_device(us, outcome):
    pair, _ = compared(kernels(gemm=(10, 10_000)), kernels(gemm=(10, us)))
    assert pair.judgement.outcome is outcome


def test_launches_that_scatter_more_than_they_changed_are_not_judged():
    pair, sentence = compared(kernels(9e6, gemm=(10, 10_000)), kernels(9e6, gemm=(10, 9_000)))
    assert pair.judgement.outcome is Outcome.UNKNOWN
    assert "the difference may be anything" in sentence


def test_fewer_passes_of_the_same_loop_are_other_work_and_compared_by_call():
    before = kernels(attention=(68, 4000), send=(66, 385))
    after = kernels(attention=(60, 4010), send=(62, 544))
    pair, sentence = compared(before, after)
    assert pair.judgement.outcome is Outcome.UNKNOWN
    assert sentence == (
        "Kernel time 297 → 274 ms (−7.8 %), but the work differs: "
        "attention 31.4 ms less (272 → 241 ms; 68 → 60 calls, each 4.00 → 4.01 ms, +0.2 %); "
        "send 8.32 ms more (25.4 → 33.7 ms; 66 → 62 calls, each 385 → 544 µs, +41.3 %). "
        "Cannot judge: the captures hold different work: counts differ (attention runs 68 → 60 times; 1 other kernel "
        "too). If it is the same work, say so with --same-work."
    )
    assert {change.name: change.status.value for change in pair.kernels.changes} == {
        "attention": "same",  # fewer calls, each as long
        "send": "slower",
    }


@pytest.mark.parametrize(("calls", "is_judged"), [(96, True), (94, False)])
def test_counts_may_differ_by_5_percent(calls, is_judged):
    pair, _ = compared(kernels(gemm=(100, 100)), kernels(gemm=(calls, 50)))
    assert (pair.judgement.outcome is Outcome.FASTER) == is_judged


def test_other_work_is_judged_if_the_user_vouches_for_it():
    pair, _ = compared(kernels(gemm=(100, 100)), kernels(gemm=(50, 100)), same_work=True)
    assert pair.judgement.outcome is Outcome.FASTER


def test_a_kernel_of_one_side_only_is_other_work_and_named_with_its_side():
    pair, sentence = compared(kernels(gemm=(10, 100)), kernels(gemm=(10, 100), softmax=(10, 50)))
    assert pair.judgement.outcome is Outcome.UNKNOWN
    assert "counts differ (softmax runs only in b)" in sentence
    assert "softmax 500 µs more (only in b)" in sentence


def programs(**events: tuple[int, float]) -> Section:
    """Return compiled programs: runs, and time of a run in ms."""
    rows = [
        (f"{name}({number})", runs, round(runs * ms * 1e6), 1e4)
        for number, (name, (runs, ms)) in enumerate(events.items())
    ]
    return section("device_programs", table("By program", "name calls total_ns stddev_ns", *rows))


def test_programs_are_compared_by_run_whatever_their_number_and_their_compilation():
    sides = [capture("a", programs(jit_step=(100, 67.2), jit_init=(1, 9))), capture("b", programs(jit_step=(50, 65.7)))]
    result = compare([*sides, capture("c", programs(jit_x=(1, 0.1), jit_step=(100, 63.8)))])
    verdicts = [(change.judgement.outcome.value, change.judgement.basis.name) for change in result.path]
    assert verdicts == [("faster", "programs"), ("faster", "programs")]
    assert "jit_step 3.40 ms less (67.2 → 63.8 ms)" in document(result).verdict.sentence


def test_another_program_is_other_work():
    pair, sentence = compared(programs(jit_step=(100, 67.2)), programs(jit_eval=(100, 20.0)))
    assert pair.judgement.outcome is Outcome.UNKNOWN
    assert "jit_eval runs only in b" in sentence or "jit_step runs only in a" in sentence


def operators(**events: tuple[int, int]) -> Section:
    rows = [(name, calls, calls * us * US) for name, (calls, us) in events.items()]
    return section("operators", table("", "name calls host_self_ns", *rows))


@pytest.mark.parametrize(("us", "outcome"), [(70, Outcome.FASTER), (90, Outcome.UNKNOWN), (100, Outcome.NO_CHANGE)])
def test_operators_of_a_cpu_are_compared_too_but_a_small_change_may_be_chance(us, outcome):
    pair, _ = compared(operators(mm=(10, 100)), operators(mm=(10, us)))
    assert (pair.judgement.outcome, pair.judgement.basis.name) == (outcome, "operators")


def ranges(**events: int) -> Section:
    rows = [(name, 10, busy * US, busy * US) for name, busy in events.items()]
    return section("ranges", table("With running numbers as N", "name calls total_ns device_busy_ns", *rows))


def test_the_innermost_range_whose_device_time_changed_as_much_is_named():
    before = kernels(gemm=(10, 100), copy=(10, 50)), ranges(forward=1500, layer=1000, loss=500)
    after = kernels(gemm=(10, 150), copy=(10, 50)), ranges(forward=2000, layer=1500, loss=500)
    _, sentence = compared(before, after)
    assert "gemm 500 µs more (1.00 → 1.50 ms) in layer." in sentence


def shared(share: float | None) -> Section:
    return section("communication", facts(shared_share=share))


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((1.0, 1.0), "share a stream on both sides, so they cannot overlap."),
        ((0.0, 0.9), "share a stream in b, so they cannot overlap."),
        ((0.0, None), ""),
    ],
)
def test_streams_that_communication_shares_with_compute_are_named(shares, words):
    before, after = ((kernels(gemm=(10, 100)), shared(share)) for share in shares)
    _, sentence = compared(before, after)
    assert ("share a stream" in sentence) == bool(words)
    assert words in sentence


def use(idle_us: int, extent_us: int = 2000) -> Section:
    row = "GPU 0", 1000 * US, idle_us * US, extent_us * US
    return section("device_use", table("", "device busy_ns inner_idle_ns extent_ns", row))


@pytest.mark.parametrize(("idle_us", "is_named"), [(519, False), (521, True)])
def test_idle_time_is_named_if_it_changed_by_1_percent_of_the_time_of_the_devices(idle_us, is_named):
    _, sentence = compared((kernels(gemm=(10, 100)), use(500)), (kernels(gemm=(10, 100)), use(idle_us)))
    named = f"Devices are idle for 25.0 → 26.1 % of the time from their first to their last work (500 → {idle_us} µs)."
    assert (named in sentence) == is_named


@pytest.mark.parametrize(("idle_us", "is_named"), [(1790, False), (1690, True)])
def test_idle_time_that_is_most_of_a_capture_is_named_if_it_changed_itself(idle_us, is_named):
    """The share stays: with 1,690 of 1,878 µs it is 90 % as before, and the capture 112 µs shorter."""
    before, after = (
        (kernels(gemm=(10, 100)), use(idle, extent)) for idle, extent in ((1800, 2000), (idle_us, round(idle_us / 0.9)))
    )
    _, sentence = compared(before, after)
    assert (
        "Devices are idle for 90.0 % of the time from their first to their last work (1.80 → 1.69 ms)." in sentence
    ) == (is_named)


def operator_waits(**causes: int) -> Section:
    columns = "cause where label time_ns share_of_judged operator range"
    rows = [(name, None, "operators", us * US, 0.1, name, None) for name, us in causes.items()]
    return section("host_waits", table("Causes", columns, *rows))


def test_what_the_host_did_in_the_time_that_devices_are_idle_is_named():
    before = kernels(gemm=(10, 100)), use(500), operator_waits(copy=300, item=200)
    after = kernels(gemm=(10, 100)), use(900), operator_waits(copy=690, item=210)
    _, sentence = compared(before, after)
    assert "(500 → 900 µs), most of all copy (300 → 690 µs)." in sentence


def test_kernels_of_one_side_only_are_summed_by_family():
    before = table("", KERNELS, *[(f"sgemm_{size}", "gemm", 10, 10 * US, US, 1.0) for size in range(4)])
    after = table("", KERNELS, *[(f"hgemm_{size}", "gemm", 16, 8 * US, US / 2, 1.0) for size in range(4)])
    empty = table("In steady steps", "name family calls total_ns")
    _, sentence = compared(section("kernels", before, empty), section("kernels", after, empty))
    assert (
        "matrix multiplication 8.00 µs less (40.0 → 32.0 µs; 40 → 64 calls, each 1.00 µs → 500 ns, −50.0 %)" in sentence
    )


def test_instances_of_one_kernel_have_one_sum():
    events = {"pack<float>": (10, 100), "pack<int>": (10, 50)}
    _, sentence = compared(kernels(gemm=(10, 900)), kernels(gemm=(10, 900), **events))
    assert "pack 1.50 ms more (only in b)" in sentence


def test_two_changes_that_cancel_are_followed_by_a_third():
    before = kernels(flash=(10, 240), gemm=(100, 90))
    after = kernels(sage=(10, 250), gemm=(100, 91), quantize=(10, 100))
    _, sentence = compared(before, after)
    assert all(
        f"{name} {more}" in sentence for name, more in (("sage", "2.50"), ("flash", "2.40"), ("quantize", "1.00"))
    )


def test_operators_called_more_often_in_a_capture_are_other_work():
    """All operators are in both captures, and fill memory: 2 calls are not the work of 17."""
    before = kernels(add=(2, 8)), operators(fill=(2, 80), uniform=(2, 80))
    after = kernels(conv=(10, 1000)), operators(fill=(2, 80), uniform=(17, 28_000))
    pair, sentence = compared(before, after)
    assert pair.judgement.outcome is Outcome.UNKNOWN
    assert "Cannot judge: the captures hold different work" in sentence


def lanes(**events: int) -> Section:
    rows = [("main", name, 10, us * US) for name, us in events.items()]
    return section("lanes", table("Events, without those inside", "lane name calls self_ns", *rows))


def test_events_of_other_programs_are_compared_by_name():
    pair, sentence = compared(lanes(render=900, wait=100), lanes(render=300, wait=100))
    assert pair.judgement.outcome is Outcome.FASTER
    assert "render 600 µs less (900 → 300 µs)" in sentence


NVPROF = """==7== NVPROF is profiling process 7, command: ./solve
==7== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Device","Context","Stream","Name"
us,us,,,,,,,,,,
"""


def nvprof(path: Path, times_us: Mapping[str, float]) -> Path:
    rows = [
        f'{1000 * index},{time},8,1,1,128,1,1,"Tesla V100 (0)","1","7","{name}(float*) [{index}]"'
        for index, (name, time) in enumerate((name, time) for _ in range(12) for name, time in times_us.items())
    ]
    path.write_text(NVPROF + "\n".join(rows) + "\n")
    return path


def test_two_prints_of_nvprof_are_compared_by_kernel(tmp_path):
    before = nvprof(tmp_path / "before.csv", {"stencil": 300.0, "norm": 40.0})
    after = nvprof(tmp_path / "after.csv", {"stencil": 200.0, "norm": 40.0})
    sentence = document(api.compare(before, after)).verdict.sentence
    assert sentence.startswith("Kernel time 1.42× shorter: 4.08 → 2.88 ms (−29.4 %")
    assert "stencil 1.20 ms less (3.60 → 2.40 ms)." in sentence
    assert document(api.compare(before, before)).verdict.code == "no-change"


@pytest.mark.process
def test_captures_of_two_gpus_without_steps_hold_other_amounts_of_work(public_cases2):
    """60 passes of attention after, and 68 before; the transfer takes longer, and shares its stream."""
    pair = [public_cases2 / "nsys" / f"pair_no_steps_{name}.sqlite" for name in ("before", "after")]
    sentence = document(api.compare(*pair)).verdict.sentence
    assert sentence.startswith(
        "Kernel time 535 → 489 ms (−8.7 %), but the work differs: flash::flash_fwd_kernel 31.6 ms less"
    )
    assert "ncclDevKernel_SendRecv 8.34 ms more (25.4 → 33.7 ms" in sentence
    assert "Communication and compute share a stream on both sides" in sentence


@pytest.mark.process
def test_mixed_precision_calls_a_layer_once_for_the_comparison(public_cases2):
    pair = [public_cases2 / "kineto" / f"pair_{name}.pt.trace.json" for name in ("fp32", "amp")]
    result = document(api.compare(*pair))
    assert result.verdict.sentence == (
        "Kernel time per step 5.18 → 2.64 ms (−49.1 %), for the same layers and inputs. "
        "Mean step 32.0 → 54.2 ms (+69.6 %): input wait 19.4 → 43.7 ms; device compute 5.15 → 2.58 ms. "
        "Changed: matrix products in f16 rather than f32. "
        "Cannot judge: pair_fp32 has 3 steady steps, and 5 are needed."
    )
