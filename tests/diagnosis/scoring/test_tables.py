from benchmarks.diagnosis.captures import Capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import Format
from benchmarks.diagnosis.score import Grade, Scored
from benchmarks.diagnosis.scoring.changes import Change
from benchmarks.diagnosis.scoring.findings import FindingScore
from benchmarks.diagnosis.scoring.tables import (
    change_table,
    cross_table,
    fill_page,
    finding_table,
    grade_table,
    make_tables,
    number_table,
    place_table,
    recall_table,
    summary,
)


def scored(seed, format_=Format.NSYS, grade=Grade.RIGHT, **more):
    return Scored(seed, Capture(format_, Flaw.NONE), "sleep", {"sleep": 0.3}, "", "", grade, **more)


def by_format(one):
    return one.capture.format


FOUR = [
    scored(1),
    scored(2, grade=Grade.HONEST),
    scored(3, Format.KINETO),
    scored(4, Format.KINETO, Grade.FALSE_BLAME),
]


def test_grades_list_the_worst_first_and_the_last_line_sums_up():
    assert [row[:3] for row in grade_table(FOUR, by_format, "format").rows] == [
        ("kineto", "2", "50 %"),
        ("nsys", "2", "100 %"),
    ]
    assert cross_table(FOUR).rows == (("sleep", "1 of 2", "2 of 2"),)
    assert summary(FOUR) == "right or honest: 75.0 %, false blame: 25.0 %, worlds: 4"


def test_precision_and_recall_count_findings_and_causes():
    findings = FindingScore(("a", "b", "c"), ("d",), ("e",), ("sleep",), ("lock", "gil", "logging"))
    scores = [scored(1, findings=findings), scored(2)]

    assert finding_table(scores, by_format, "format").rows == (("nsys", "75 %", "4", "1", "25 %", "4"),)
    assert recall_table(scores).rows[-1] == ("sleep", "1", "100 %")
    assert recall_table(scores).rows[0] == ("gil", "1", "0 %")


def test_places_and_comparisons_are_counted_where_there_are_any():
    scores = [
        scored(1, places={"function": True}, change=Change.NAMED),
        scored(2, places={"function": False, "rank": True}, change=Change.QUIET),
        scored(3, Format.KINETO),
    ]

    assert place_table(scores, by_format, "format").rows == (("nsys", "1 of 2", "1 of 1"),)
    table = change_table(scores, by_format, "format")
    counts = dict(zip(table.columns, table.rows[0], strict=True))
    assert len(table.rows) == 1
    assert (counts["named"], counts["quiet"], counts["missed"]) == ("1", "1", "0")


def test_errors_have_a_median_and_a_high_percentile():
    scores = [scored(seed, errors={"compute": seed / 100}) for seed in range(1, 21)] + [scored(21)]

    assert number_table(scores, by_format, "format").rows[0][:3] == ("nsys", "20 of 21", "10.5, 20.0")


def test_a_page_gets_the_tables_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Head\n\n<!-- diagnosis -->\nold\n<!-- /diagnosis -->\n\nTail\n")
    fill_page(page, FOUR)
    fill_page(page, FOUR)
    text = page.read_text()

    assert text.startswith("# Head\n\n<!-- diagnosis -->\n")
    assert text.endswith("<!-- /diagnosis -->\n\nTail\n")
    assert "old" not in text
    assert "seeds 1 to 4. Right or honest: 75.0 %, false blame: 25.0 %, worlds: 4." in text
    assert "| kineto | 2 | 50 % | 1 | 0 | 0 | 0 | 1 |" in text
    assert text.count("### First sentence by format") == 1


def test_a_page_gets_the_scores_of_other_tools_from_their_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- diagnosis -->\n<!-- /diagnosis -->\n\n<!-- scores -->\nold\n<!-- end of scores -->\n")
    fill_page(page, FOUR)
    assert "old" in page.read_text()
    (tmp_path / "other-tools.md").write_text("Head\n<!-- scores -->\n| tool |\n<!-- end of scores -->\nTail\n")
    fill_page(page, FOUR)

    assert page.read_text().endswith(
        "<!-- scores -->\n[other-tools.md](other-tools.md) has the rules.\n\n| tool |\n\n<!-- end of scores -->\n"
    )


def test_a_score_is_the_same_after_it_was_written():
    one = scored(1, hiding=("a and b",), findings=FindingScore(("a",)), places={"rank": True}, errors={"copies": 0.1})

    assert Scored.from_json(one.to_json()) == one
    assert Scored.from_json(scored(2, change=Change.MISSED).to_json()).change is Change.MISSED
    assert make_tables([one])[0].to_text().splitlines()[1:] == [
        "cause  captures  right or honest  right  honest  weak  wrong  false blame",
        "sleep         1            100 %      1       0     0      0            0",
    ]
