"""The score of first sentences: what counts as right, honest, wrong and false blame, and that it does not fall."""

import re

import pytest

from scripts import causes
from scripts.causes import Judgement, Said, Truth, judge
from tests.conftest import REPOSITORY

TRUTHS = causes.truths()
COPIES = Truth(
    "samples/a",
    "copies that block, 43 %",
    "made so",
    right=("cudaMemcpyAsync", "blocking"),
    share=(41, 45),
    honest=("unexplained",),
    false=("kernel launch",),
)


@pytest.mark.parametrize(
    ("sentence", "judgement"),
    [
        ("Blocking copies: 43.0 % of the steps wait in cudaMemcpyAsync.", Judgement.RIGHT),
        ("Blocking copies: 1,043.0 % of the steps wait in cudaMemcpyAsync.", Judgement.WRONG),
        ("Blocking copies: 46.0 % of the steps wait in cudaMemcpyAsync.", Judgement.WRONG),
        ("Copies take 43.0 %.", Judgement.WRONG),
        ("Idle: 64.0 %. Also: blocking copies in cudaMemcpyAsync (43.0 %). Not input-bound.", Judgement.WRONG),
        ("Idle: 44.0 %. As much: blocking copies in cudaMemcpyAsync (43.0 %).", Judgement.RIGHT),
        ("43.0 % of the steps are unexplained.", Judgement.HONEST),
        ("Blocking copies: 43.0 % wait in cudaMemcpyAsync; kernel launch 3 %.", Judgement.FALSE),
    ],
)
def test_a_sentence_is_right_where_it_names_the_cause_and_its_share_and_blames_nothing_else(sentence, judgement):
    assert judge(COPIES, Said(sentence)).judgement is judgement


def test_a_finding_that_blames_falsely_makes_a_right_sentence_false():
    said = Said("Blocking copies: 43.0 % wait in cudaMemcpyAsync.", ("Idle for 64 %, mostly during: kernel launch.",))
    assert judge(COPIES, said).judgement is Judgement.FALSE
    assert judge(COPIES, said).reason == 'says "kernel launch"'


def test_the_name_of_a_program_says_nothing_of_its_cause():
    saving = Truth("causes/torch_checkpoint.zip", "saving, 50 %", "timers", right=("checkpoint", "program\\.py:9"))
    assert judge(saving, Said("50 % is train (torch_checkpoint.py:9).")).judgement is Judgement.WRONG
    assert judge(saving, Said("50 % is a checkpoint in train (torch_checkpoint.py:9).")).judgement is Judgement.RIGHT


def test_programs_are_not_blamed_for_the_work_of_others():
    [program] = [truth for truth in TRUTHS if truth.file == "causes/torch_slow_decode.zip"]
    sentence = (
        "Highly input-bound: 90 % of steady step time waits for input: 98 % of that in program.py:22 decode_jpeg."
    )
    assert judge(program, Said(sentence)).judgement is Judgement.RIGHT
    blamed = judge(program, Said(sentence, ("1.12 threads want a core, and there are 2.",)))
    assert (blamed.judgement, blamed.reason) == (Judgement.FALSE, 'says "want a core"')


def test_a_page_keeps_rows_of_traces_that_were_not_scored():
    other = Truth("cases/b", "an | other", "seen", honest=("lost",))
    text = f"before\n{causes.BEGIN}\n{causes.END}\nafter\n"
    both = [judge(COPIES, Said("No [idea] 5 %")), judge(other, Said("Events were lost."))]
    first = causes.page(text, both, [COPIES, other])
    assert "1 of 2 are right or honest; 0 blame falsely." in first
    assert r"| `cases/b` | an \| other | seen | Events were lost. | honest |" in first
    again = causes.page(first, [judge(COPIES, Said("Blocking copies: 43.0 % in cudaMemcpyAsync."))], [COPIES, other])
    assert "2 of 2 are right or honest; 0 blame falsely." in again
    assert again.count("| `cases/b` |") == 1
    assert again.startswith("before\n")
    assert again.endswith("\nafter\n")


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="markers are missing"):
        causes.page("no markers", [], [])


def test_every_sample_has_a_truth_and_every_truth_can_be_scored():
    shipped = {
        f"samples/{path.parent.name}/{path.name}"
        for path in (REPOSITORY / "sample_traces").glob("*/*")
        if path.parent.name not in {"__pycache__", "causes"}
    }
    assert {truth.file for truth in TRUTHS if truth.collection == "samples"} == shipped
    assert len({truth.file for truth in TRUTHS}) == len(TRUTHS) >= 98
    assert [truth.file for truth in TRUTHS if not (truth.right or truth.honest)] == []
    assert {truth.collection for truth in TRUTHS} == set(causes.COLLECTIONS)
    patterns = [pattern for truth in TRUTHS for pattern in (*truth.right, *truth.honest, *truth.false)]
    assert all(re.compile(pattern) for pattern in patterns)


def test_what_is_said_of_a_file_that_is_no_trace_names_no_folder_of_this_machine(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing to see")
    said = causes.say(tmp_path / "notes.txt").sentence
    assert said.startswith("notes.txt is not a trace that traceviz knows.")
    assert str(tmp_path) not in said


def test_the_page_has_a_row_for_every_truth():
    rows = re.findall(r"^\| `([^`]+)` \|", causes.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [truth.file for truth in TRUTHS]


@pytest.mark.slow
@pytest.mark.parametrize(("collection", "least"), [("traces", 0.9), ("cases", 0.9)])
def test_the_score_of_public_traces_does_not_fall(collection, least):
    places = causes.folders()
    if collection not in places:
        pytest.skip(f"TRACEVIZ_{collection.upper()} names no folder of public traces")
    scored = list(causes.score([truth for truth in TRUTHS if truth.collection == collection], places))
    bad = {one.truth.file: one.reason for one in scored if one.judgement not in causes.GOOD}
    assert len(scored) >= 17
    assert len(bad) <= (1 - least) * len(scored), bad
