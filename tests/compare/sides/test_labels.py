"""Names of sides, grouping of runs into sides by tags, and steps that do several units of work."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.compare.sections_of import run, side, tagged
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document
from traceviz.compare.sides.by_tags import sides_by, with_base
from traceviz.compare.sides.load_sides import labels
from traceviz.compare.sides.units_of_work import per_unit, unit_of
from traceviz.core.errors import UsageError
from traceviz.report import Fact, Prose


@pytest.mark.parametrize(
    ("paths", "called"),
    [
        (("t/slow.pt.trace.json.gz", "t/repaired.pt.trace.json.gz"), ("slow", "repaired")),
        (("a.nsys-rep", "a.sqlite"), ("a.nsys-rep", "a.sqlite")),
        (("runs/one/profile.json", "runs/two/profile.json"), ("one", "two")),
        (("runs/v1/gpu/profile.json", "runs/v2/gpu/profile.json"), ("v1", "v2")),
        (("before.json", "before.json"), ("before", "before (2)")),
        (("resnet.v1.json", "resnet.v2.json"), ("resnet.v1", "resnet.v2")),
        (("run/", "other/run/"), ("run", "other/run")),
        (("home/me/traces/old/p.json", "tmp/x/p.json"), ("old", "x")),
        (("a/x/p.json", "b/x/p.json", "c/y/p.json"), ("a/x", "b/x", "c/y")),
    ],
)
def test_the_shortest_part_of_2_paths_that_tells_them_apart(paths, called):
    assert labels(paths) == called


def test_names_of_2_runs_come_before_their_tags_and_tags_before_paths():
    paths, tags = ("r/1", "r/2"), ({"gpu": "A100", "batch": "32"}, {"gpu": "A100", "batch": "64"})
    assert labels(paths, ("slow", "fast"), tags) == ("slow", "fast")
    assert labels(paths, ("train", "train"), tags) == ("batch=32", "batch=64")
    assert labels(paths, ("slow", None), tags) == ("batch=32", "batch=64")
    assert labels(paths, ("train", "train"), (tags[0], tags[0])) == ("1", "2")


def test_4_runs_are_3_sides_in_the_order_of_their_numbers_and_1_is_left_out():
    runs = [
        ("a", run(5, tagged(batch="128", model="vgg"))),
        ("b", run(5, tagged(batch="8", model="vgg"))),
        ("c", run(6, tagged(batch="64", model="vgg"))),
        ("d", run(7, tagged(batch="8", model="vgg"))),
        ("e", run(5, tagged(model="vgg"))),
    ]
    sides, left_out = sides_by(runs, ("batch",))
    assert [(side.label, side.steps) for side in sides] == [("batch=8", 12), ("batch=64", 6), ("batch=128", 5)]
    assert left_out == ["e"]


def test_the_base_of_2_tags_is_named_by_its_values_or_its_label():
    runs = [(f"{f}{b}", run(5, tagged(framework=f, batch=str(b)))) for f in ("jax", "torch") for b in (8, 16)]
    for base in ("torch,8", "torch, 8", "torch, batch=8", "framework=torch, batch=8"):
        sides, _ = sides_by(runs, ("framework", "batch"), base)
        assert [side.label for side in sides] == [
            "torch, batch=8",
            "jax, batch=8",
            "jax, batch=16",
            "torch, batch=16",
        ]


def test_runs_without_a_tag_of_that_name_are_grouped_by_the_framework_that_their_traces_show():
    stated = {"a": "PyTorch 2.6.0", "b": "PyTorch", "c": "TensorFlow 2", "d": "JAX 0.4", "e": None}
    shown = {
        name: replace(run(5), run=() if text is None else (Fact("framework", "framework", text),))
        for name, text in stated.items()
    }
    shown["d"] = replace(shown["d"], sections=run(5, tagged(framework="Flax")).sections)
    sides, left_out = sides_by(shown.items(), ("framework",))
    assert [(side.label, len(side.reports), side.groups["framework"]) for side in sides] == [
        ("Flax", 1, "Flax"),
        ("PyTorch", 2, "PyTorch"),
        ("TensorFlow", 1, "TensorFlow"),
    ]
    assert left_out == ["e"]


def of_one_tag(*values):
    return [(value, run(5, tagged(variant=value))) for value in values]


@pytest.mark.parametrize(
    ("values", "in_order", "base", "why"),
    [
        (("after", "before"), False, "before", "by its name"),
        (("after", "Baseline", "best"), True, "Baseline", "by its name"),
        (("32", "8", "16"), False, "variant=8", "the smallest"),
        (("32", "8", "16"), True, "variant=32", "the first given"),
        (("torch", "jax"), True, "torch", "the first given"),
    ],
)
def test_the_base_is_called_so_or_given_first_and_it_is_said_which(values, in_order, base, why):
    (first, *others), _ = sides_by(of_one_tag(*values), ("variant",), in_order=in_order)
    assert (first.label, first.why_base, {side.why_base for side in others}) == (base, why, {""})
    assert len(others) == len(values) - 1
    page = document(compare([first, *others], by=("variant",)))
    said = [block.text for block in page.section("effect").blocks if isinstance(block, Prose)]
    assert f"All are compared with {base}, {why}: --base chooses another." in said


def test_of_2_tags_the_side_with_most_names_of_a_base_is_the_base_and_a_named_one_needs_no_reason():
    runs = [(f"{a}{b}", run(5, tagged(a=a, b=b))) for a in ("fast", "default") for b in ("x", "before")]
    (first, *_), _ = sides_by(runs, ("a", "b"))
    assert first.label == "default, before"
    (first, *_), _ = sides_by(runs, ("a", "b"), "fast, x")
    assert (first.label, first.why_base) == ("fast, x", "")


def test_words_are_sides_by_themselves_and_numbers_and_switches_with_their_tag():
    runs = [(f"{a}{c}{n}", run(5, tagged(a=a, cache=c, n=n))) for a, c, n in (("vgg", "off", "8"), ("bert", "On", "8"))]
    sides, _ = sides_by(runs, ("a", "cache", "n"))
    assert [side.label for side in sides] == ["bert, cache=On, n=8", "vgg, cache=off, n=8"]


def test_tags_and_bases_that_do_not_exist_name_those_that_do():
    runs = [("a", run(5, tagged(batch="8")))]
    with pytest.raises(UsageError, match=r"No run has the tags model, gpu.*Known: batch"):
        sides_by(runs, ("model", "gpu"))
    with pytest.raises(UsageError, match=r"No run has the tag batch.*collect --tag"):
        sides_by([("b", run(5))], ("batch",))
    with pytest.raises(UsageError, match=r"no side '16'.*Known: batch=8"):
        sides_by(runs, ("batch",), "16")
    with pytest.raises(UsageError, match=r"no side 'c'.*Known: a, b"):
        with_base([side("a"), side("b")], "c")


def test_a_step_of_4_samples_takes_a_quarter_of_its_time_for_each():
    (scaled,) = per_unit([side("a", run(5, tagged(batch="4")))], "batch")
    assert scaled.per == 4
    assert [times.tolist() for times in scaled.runs] == [[250.0] * 5]
    assert scaled.per_step(5_000) == Fraction(250)


def test_units_are_named_after_their_tag():
    assert [unit_of(tag) for tag in ("batch", "batch_size", "tokens", "image", "s")] == [
        *("sample", "sample", "token", "image", "s")
    ]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([run(5)], "a has no tag 'batch'"),
        ([run(5, tagged(batch="4")), run(5)], "a has no tag 'batch'"),
        ([run(5, tagged(batch="4")), run(5, tagged(batch="8"))], "runs of a have 4 and 8"),
        ([run(5, tagged(batch="big"))], "batch=big, which is not a number above zero"),
        ([run(5, tagged(batch="0"))], "batch=0, which is not a number above zero"),
        ([run(5, tagged(batch="1/0"))], "batch=1/0, which is not a number above zero"),
    ],
)
def test_work_that_is_not_known_is_no_work_of_1(runs, message):
    with pytest.raises(UsageError, match=message):
        per_unit([side("a", *runs)], "batch")
