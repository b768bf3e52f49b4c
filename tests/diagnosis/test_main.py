import pytest

from benchmarks.diagnosis.__main__ import main


@pytest.mark.process
def test_a_run_ends_with_its_score_and_leaves_what_tables_need(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- diagnosis -->\n<!-- /diagnosis -->\n")
    main(["score", "--seeds", "5-5", "--compare-every", "0", "--results", str(tmp_path)])
    first = capsys.readouterr().out.splitlines()
    main(["table", str(tmp_path / "scores.jsonl"), "--markdown", str(page)])
    again = capsys.readouterr().out.splitlines()

    assert first[-1] == again[-1]
    assert first[-1].startswith("right or honest: ")
    assert first[-1].endswith(", worlds: 1")
    assert first[first.index("First sentence by cause") :] == again
    assert "### First sentence by cause" in page.read_text()
    assert (tmp_path / "failures.txt").is_file()
