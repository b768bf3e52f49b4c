"""The parts of a run: their signs, their sum, and events that are not part of them."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.run_parts.parts import run_parts

MS = 1_000_000
PROGRAM = (0, 1_000 * MS, "program", "train.py", {"thread_id": None})
BESIDE = {"thread_id": 1}


def steps(count, each=20, begin=100, number=0):
    return [
        ((begin + at * each) * MS, each * MS, "step", "keras", {"number": number + at, "thread_id": 0})
        for at in range(count)
    ]


def phase(begin, end, kind, name="", **more):
    return (begin * MS, (end - begin) * MS, kind, name, more)


def sampled(begin, end, stack, samples=None, **more):
    return (begin * MS, (end - begin) * MS, stack, (end - begin) // 10 if samples is None else samples, more)


def parts_of(phases=(), stacks=None, frames=(), **more):
    tables = {} if stacks is None else {"stacks": list(stacks), "stack_frames": list(frames)}
    return run_parts(trace(phases=list(phases), **tables, **more))


def times_of(parts):
    return {key: time.total // MS for key, time in parts.times.items() if time.total}


def test_a_trace_without_phases_and_stacks_has_no_whole_run():
    assert run_parts(trace(kernels=[(0, 10, "gemm")])) is None


def test_time_before_the_first_and_after_the_last_step_is_start_up_and_end():
    parts = parts_of([PROGRAM, *steps(10)])
    assert times_of(parts) == {"preparation": 100, "steps": 200, "shutdown": 700}
    assert parts.run_ns == 1_000 * MS
    assert parts.share("steps") == 0.2


AFTER_STEPS = {"preparation": 100, "steps": 200, "shutdown": 700}
DIVISIONS = {
    "what another thread saves is no wait of the loop": (
        [PROGRAM, *steps(10), phase(100, 300, "saving", **BESIDE)],
        {},
        AFTER_STEPS,
    ),
    "a phase without an end takes no time": (
        [PROGRAM, *steps(10), (150 * MS, None, "saving", "torch.save")],
        {},
        AFTER_STEPS,
    ),
    "in a validation, a checkpoint and a compilation have their own time": (
        [
            *(PROGRAM, *steps(30)),
            *(phase(100, 700, "validation"), phase(200, 400, "saving"), phase(300, 500, "compilation")),
        ],
        {},
        {"preparation": 100, "compilation": 100, "saving": 200, "validation": 300, "shutdown": 300},
    ),
    "a long first step is warm-up, except what it compiles": (
        [
            *(PROGRAM, (100 * MS, 300 * MS, "step", "keras", {"number": 0})),
            *(*steps(15, begin=400, number=1), phase(150, 250, "compilation")),
        ],
        {},
        {"preparation": 100, "compilation": 100, "warmup": 200, "steps": 300, "shutdown": 300},
    ),
    "without steps, what was not sampled is no shut-down": (
        [PROGRAM, phase(400, 1_000, "unsampled")],
        {"stacks": [sampled(0, 400, 0)], "frames": [(0, None, "main", "train.py", 3, "program")]},
        {"other": 400, "unsampled": 600},
    ),
    "samples of other threads show nothing": (
        [PROGRAM, *steps(20)],
        {"stacks": [sampled(100, 400, 0, **BESIDE)], "frames": [(0, None, "save_checkpoint", "train.py", 30)]},
        {"preparation": 100, "steps": 400, "shutdown": 500},
    ),
    "ranges show what the program does between steps": (
        [PROGRAM, *steps(20)],
        {"nvtx": [(200 * MS, 100 * MS, "validation"), (300 * MS, 50 * MS, "save ckpt")]},
        {"preparation": 100, "steps": 250, "validation": 100, "saving": 50, "shutdown": 500},
    ),
    "a stack that is its own caller has no caller": (
        [PROGRAM, *steps(20)],
        {
            "stacks": [sampled(300, 450, 0), sampled(100, 200, 1), sampled(200, 300, 5)],
            "frames": [
                *((0, 0, "save_checkpoint", "train.py", 30), (1, 5, "work", "train.py", 31)),
                (5, 1, "f", "train.py", 32),
            ],
        },
        {"preparation": 100, "steps": 250, "saving": 150, "shutdown": 500},
    ),
}


@pytest.mark.parametrize(("phases", "more", "times"), DIVISIONS.values(), ids=DIVISIONS)
def test_each_moment_belongs_to_one_part(phases, more, times):
    assert times_of(parts_of(phases, **more)) == times


def test_what_was_not_sampled_is_neither_start_up_nor_shut_down_and_steps_that_hooks_count_stay_steps():
    parts = parts_of([PROGRAM, *steps(10), phase(50, 1_000, "unsampled", "stacks")])
    assert times_of(parts) == {"preparation": 50, "unsampled": 750, "steps": 200}
    assert (parts.run_ns // MS, parts.judged.run_ns // MS, parts.is_cut) == (1_000, 250, True)
    assert (parts.share("steps"), parts.judged.share("steps")) == (0.2, 0.8)
    assert (parts.words(), parts.judged.words()) == ("the sampled part of this run",) * 2


def test_with_a_profiler_around_what_was_not_sampled_is_not_its_saving():
    around = {"settings": [("collector.nsys.state", "recorded")]}
    parts = parts_of([PROGRAM, *steps(10), phase(300, 1_000, "unsampled")], **around)
    assert (times_of(parts), parts.recording_ns) == ({"preparation": 100, "steps": 200, "unsampled": 700}, 0)


def test_what_hooks_tell_lies_over_the_step_around_it():
    parts = parts_of([PROGRAM, *steps(10, each=50), phase(120, 180, "saving", "torch.save")])
    assert times_of(parts) == {"preparation": 100, "steps": 440, "saving": 60, "shutdown": 400}
    assert [(place.name, place.time_ns, place.samples) for place in parts.places["saving"]] == [
        ("torch.save", 60 * MS, None)
    ]


def test_time_between_steps_is_unexplained_where_nothing_was_seen_of_it():
    loop = [PROGRAM, *steps(10), *steps(10, begin=500)]
    frames = [(0, None, "shuffle", "data.py", 3)]
    assert times_of(parts_of(loop))["unexplained"] == 200
    seen = parts_of(loop, [sampled(300, 450, 0)], frames)
    assert (times_of(seen)["between"], times_of(seen)["unexplained"]) == (150, 50)
    assert seen.places["between"][0].name == "shuffle (data.py:3)"


VALIDATING = ((0, None, "train", "train.py", 9), (1, 0, "{}", "train.py", 30))


@pytest.mark.parametrize(
    ("function", "part"),
    [
        ("validate", "validation"),
        ("Trainer.evaluate_model", "validation"),
        ("run_validation", "validation"),
        ("test_epoch", "validation"),
        ("save_checkpoint", "saving"),
        ("saveModel", "saving"),
        ("Trainer.save", "saving"),
        ("write_snapshot", "saving"),
    ],
)
def test_functions_of_the_program_say_by_their_names_what_they_do(function, part):
    frames = [(number, parent, name.format(function), *rest) for number, parent, name, *rest in VALIDATING]
    parts = parts_of([PROGRAM, *steps(20)], [sampled(100, 300, 0), sampled(300, 450, 1)], frames)
    assert times_of(parts)[part] == 150
    assert [(place.name, place.samples) for place in parts.places[part]] == [(f"{function} (train.py:30)", 15)]


@pytest.mark.parametrize(
    "function",
    ["evaluation_loader", "invalidate", "valid_tokens", "contest", "load_checkpoint", "checkpoint_forward", "unsaved",
     "restore_from_checkpoint", "save_dir", "should_save", "interval", "test_ids"],
)  # fmt: skip
def test_other_functions_of_the_loop_are_none_of_these(function):
    frames = [(number, parent, name.format(function), *rest) for number, parent, name, *rest in VALIDATING]
    parts = parts_of([PROGRAM, *steps(20)], [sampled(100, 300, 0), sampled(300, 450, 1)], frames)
    assert times_of(parts) == {"preparation": 100, "steps": 400, "shutdown": 500}


def test_data_named_for_validation_is_prepared_before_the_first_step_and_validates_nothing():
    frames = [(0, None, "evaluate_dataset", "data.py", 30)]
    parts = parts_of([(0, 1_000 * MS, "program", ""), *steps(20, begin=500)], [sampled(100, 400, 0)], frames)
    assert times_of(parts)["preparation"] == 500


def test_fewer_than_ten_samples_explain_nothing():
    frames = [(0, None, "save_checkpoint", "train.py", 30)]
    assert "saving" not in times_of(parts_of([PROGRAM, *steps(20)], [sampled(300, 450, 0, samples=9)], frames))
    assert times_of(parts_of([PROGRAM, *steps(20)], [sampled(300, 450, 0, samples=10)], frames))["saving"] == 150


LIBRARY = {"origin": "library"}


def test_libraries_that_save_and_compile_are_known_by_file_and_function():
    frames = [
        (0, None, "main", "train.py", 9),
        (1, 0, "save", "torch/serialization.py", 900, LIBRARY),
        (2, 0, "load", "torch/serialization.py", 950, LIBRARY),
        (3, 0, "_compile", "torch/_dynamo/convert_frame.py", 70, LIBRARY),
    ]
    rows = [sampled(100, 200, 1), sampled(200, 300, 2), sampled(300, 400, 3)]
    parts = parts_of([PROGRAM, *steps(20)], rows, frames)
    assert times_of(parts) == {"preparation": 100, "compilation": 100, "steps": 200, "saving": 100, "shutdown": 500}
    assert parts.places["saving"][0].name == "main (train.py:9)"


RARE = [
    (0, None, "<module>", "train.py", 99),
    (1, 0, "main", "train.py", 50),
    (2, 1, "train_step", "train.py", 20),
    (3, 0, "main", "train.py", 60),
    (4, 3, "resample", "data.py", 7),
]


def looping(rare_stack=4, usual_stack=2, long=300):
    """Return twenty steps of 20 ms; ``long`` ms of other work follow the fifteenth before the next optimizer call."""
    phases, stacks, begin = [], [], 100
    for number in range(20):
        lasts = 20 + long * (number == 15)
        phases.append((begin * MS, lasts * MS, "step", "torch_optimizer", {"number": number}))
        stacks.append(sampled(begin, begin + 20, usual_stack))
        if lasts > 20:
            stacks.append(sampled(begin + 20, begin + lasts, rare_stack))
        begin += lasts
    return [PROGRAM, *phases], stacks


def test_what_ordinary_steps_never_do_is_no_part_of_a_long_one():
    parts = parts_of(*looping(), RARE)
    assert times_of(parts) == {"preparation": 100, "steps": 400, "between": 300, "shutdown": 200}
    assert parts.places["between"][0].name == "resample (data.py:7)"


def test_a_step_that_takes_long_at_what_all_steps_do_is_a_step():
    assert times_of(parts_of(*looping(rare_stack=2), RARE)) == {"preparation": 100, "steps": 700, "shutdown": 200}


def test_less_than_a_step_of_something_else_is_part_of_the_step():
    slow = looping(rare_stack=2)[0], [*looping(rare_stack=2)[1][:-1], sampled(700, 715, 4, samples=12)]
    assert times_of(parts_of(*slow, RARE)) == {"preparation": 100, "steps": 700, "shutdown": 200}


def test_of_two_kinds_of_steps_neither_is_something_else():
    phases = [phase(100 + 60 * at, 160 + 60 * at, "step", number=at) for at in range(5)]
    phases += [phase(400 + 10 * at, 410 + 10 * at, "step", number=at + 5) for at in range(10)]
    rows = [sampled(100, 400, 4), sampled(400, 500, 2)]
    assert times_of(parts_of([PROGRAM, *phases], rows, RARE))["steps"] == 400


def test_without_steps_the_samples_say_where_the_program_was():
    frames = [
        (0, None, "<module>", "prep.py", 3),
        (1, 0, "_find_and_load", "<frozen importlib._bootstrap>", 1, {"origin": "standard"}),
    ]
    parts = parts_of([PROGRAM], [sampled(0, 300, 1), sampled(300, 900, 0)], frames)
    assert times_of(parts) == {"imports": 300, "other": 600, "shutdown": 100}
    assert parts.places["other"][0].name == "the script prep.py (line 3)"


@pytest.mark.parametrize(
    ("function", "file", "inner", "lines", "name"),
    [
        ("<module>", "plain.py", None, (51, 49), "the script plain.py (51.0 % of it in line 6)"),
        ("<module>", "plain.py", None, (95, 5), "the script plain.py (line 6)"),
        ("main", "plain.py", None, (51, 49), "main (plain.py, 51.0 % of it in line 6)"),
        ("main", "plain.py", None, (95, 5), "main (plain.py:6)"),
        ("<module>", "cell", None, (60, 40), "the cell (60.0 % of it in line 6)"),
        ("<module>", "<string>", None, (60, 40), "the code in <string> (60.0 % of it in line 6)"),
        ("<module>", "<stdin>", None, (60, 40), "the script from stdin (60.0 % of it in line 6)"),
        (
            "<module>",
            "data.py",
            "<frozen importlib._bootstrap>",
            (60, 40),
            "the module data.py (60.0 % of it in line 6)",
        ),
    ],
)
def test_a_line_beside_a_function_has_its_own_share_and_the_top_level_of_a_file_is_its_script(
    function, file, inner, lines, name
):
    around = [(0, None, "_load", inner or "runner.py", 1, {"origin": "standard"})]
    frames = [*around, (1, 0, function, file, 6), (2, 0, function, file, 9)]
    rows = [sampled(0, 10 * lines[0], 1, samples=lines[0]), sampled(10 * lines[0], 1_000, 2, samples=lines[1])]
    parts = parts_of([PROGRAM], rows, frames)
    (key,) = (key for key, time in parts.times.items() if time.total)
    assert [(place.name, place.time_ns // MS) for place in parts.places[key]] == [(name, 1_000)]


def test_of_several_processes_the_one_with_most_steps_is_divided():
    other = {"process_id": 1, "thread_id": 1}
    of_other = [(begin, dur, kind, name, {**more, **other}) for begin, dur, kind, name, more in steps(12)]
    parts = parts_of([PROGRAM, *steps(10), (0, 2_000 * MS, "program", "", other), *of_other])
    assert (parts.process_id, parts.processes, parts.run_ns) == (1, 2, 2_000 * MS)


def test_the_main_thread_is_known_by_its_name_where_no_step_tells():
    frames = [(0, None, "work", "work.py", 30), (1, None, "wait", "work.py", 40)]
    threads = [(0, 0, "QueueFeederThread"), (1, 0, "MainThread")]
    stacks = [sampled(0, 900, 1), sampled(0, 900, 0, **BESIDE)]
    parts = parts_of([PROGRAM], stacks, frames, threads=threads)
    assert parts.places["other"][0].name == "work (work.py:30)"


def test_a_run_that_recorded_nothing_but_itself_has_no_parts_to_share():
    parts = parts_of([PROGRAM, phase(0, 1_000, "recording", "torch")])
    assert (parts.run_ns, parts.recording_ns, parts.share("steps")) == (0, 1_000 * MS, 0.0)


@pytest.mark.parametrize(
    ("function", "name"),
    [("main", "keras evaluate in main (train.py:30)"), ("<module>", "keras evaluate in the script train.py (line 30)"),
     ("validate", "validate (train.py:30)")],
)  # fmt: skip
def test_a_hook_names_what_no_function_of_the_program_stands_for(function, name):
    told = phase(200, 400, "validation", "keras evaluate")
    parts = parts_of([PROGRAM, *steps(20), told], [sampled(150, 450, 0)], [(0, None, function, "train.py", 30)])
    assert parts.places["validation"][0].name == name


@pytest.mark.parametrize(("state", "shutdown", "recording"), [("recorded", 0, 300), ("failed", 300, 0)])
def test_what_follows_the_last_sample_is_the_work_of_a_profiler_around_the_program(state, shutdown, recording):
    frames = [(0, None, "finish", "train.py", 30)]
    told = [("collector.nsys.state", state, {"process_id": None})]
    parts = parts_of([PROGRAM, *steps(20)], [sampled(500, 700, 0)], frames, settings=told)
    assert (times_of(parts)["after"], times_of(parts).get("shutdown", 0)) == (200, shutdown)
    assert parts.recording_ns // MS == recording


def test_samples_of_a_row_that_lies_in_two_parts_are_divided():
    frames = [(0, None, "finish", "train.py", 30)]
    parts = parts_of([PROGRAM, *steps(20)], [sampled(0, 100, 0), sampled(400, 900, 0)], frames)
    assert [(key, parts.places[key][0].samples) for key in ("preparation", "steps", "after")] == [
        ("preparation", 10),
        ("steps", 10),
        ("after", 40),
    ]


def test_work_between_steps_is_said_by_the_function_that_the_loop_calls():
    frames = [
        (0, None, "main", "train.py", 50),
        (1, 0, "train_step", "train.py", 20),
        (2, None, "main", "train.py", 60),
        (3, 2, "resample", "data.py", 7),
        (4, 3, "pick", "data.py", 17),
        (5, 4, "pick.<locals>.<listcomp>", "data.py", 18),
    ]
    loop = [PROGRAM, *steps(10), *steps(10, begin=500)]
    parts = parts_of(loop, [sampled(100, 300, 1), sampled(300, 500, 5), sampled(500, 700, 1)], frames)
    assert [(place.name, place.samples) for place in parts.places["between"]] == [("resample (data.py:7)", 20)]


def test_the_line_that_leads_to_half_of_a_part_is_said_where_no_place_has_half():
    frames = [
        (0, None, "prepare", "data.py", 7),
        *((1 + at, 0, f"helper_{at}", "data.py", 20 + at) for at in range(3)),
        (4, None, "other", "data.py", 90),
    ]
    rows = [*(sampled(at * 20, at * 20 + 20, 1 + at) for at in range(3)), sampled(60, 100, 4)]
    parts = parts_of([PROGRAM, *steps(20)], rows, frames)
    assert (parts.mostly["preparation"].name, parts.mostly["preparation"].time_ns) == ("prepare (data.py:7)", 60 * MS)
    assert "steps" not in parts.mostly


def test_what_is_nameless_in_a_function_is_that_function():
    frames = [(0, None, "tokenize", "data.py", 7), (1, 0, "tokenize.<locals>.<listcomp>", "data.py", 8)]
    parts = parts_of([PROGRAM, *steps(20)], [sampled(0, 100, 1)], frames)
    assert [place.name for place in parts.places["preparation"]] == ["tokenize (data.py:7)"]


LOOP_FRAMES = (
    (0, None, "main", "train.py", 50),
    (1, 0, "train", "train.py", 30),
    (2, 1, "update", "train.py", 41),
    (3, 1, "draw", "train.py", 44),
    (4, 0, "prepare", "train.py", 12),
    (5, None, "main", "train.py", 48),
)


@pytest.mark.parametrize(("early", "times"), [(2, (150, 50)), (4, (0, 200)), (5, (0, 200))])
def test_lines_of_the_loop_before_the_first_counted_step_are_its_first_steps(early, times):
    counted = [(at * 20 * MS, 20 * MS, "step", "found_update f", {"thread_id": 0}) for at in range(10, 20)]
    stacks = [sampled(0, 50, 4), sampled(50, 200, early)]
    stacks += [sampled(at, at + 10, 2 + at // 10 % 2) for at in range(200, 400, 10)]
    parts = parts_of([(0, 400 * MS, "program", "train.py", {"thread_id": None}), *counted], stacks, LOOP_FRAMES)
    assert (parts.time_ns("warmup") // MS, parts.time_ns("preparation") // MS) == times
