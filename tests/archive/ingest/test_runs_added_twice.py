"""A run is one trace, whether it was added before traceviz made tables of it or afterwards, and however packed."""

import json

from tests.archive.packing import packed_in
from tests.parsers.run.folders import run_folder
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.runs.run_tables import write_run_tables


def test_a_run_with_and_without_its_tables_is_added_once(tmp_path, samples):
    run = run_folder(tmp_path / "runs" / "one", {"torch": samples / "kineto" / "slow.pt.trace.json.gz"})
    archive = Archive(tmp_path / "archive")
    assert archive.add(run, runner=SerialRunner()).added == 1
    tables = write_run_tables(run)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "tables": tables, "overhead": {"tables_ns": 9}}))
    for source in (run, tmp_path / "runs", packed_in(tmp_path / "runs", tmp_path / "runs.tar.zst")):
        done = archive.add(source, runner=SerialRunner())
        assert (done.added, done.known, done.refused) == (0, 1, ())
    assert archive.rows()["trace_id"].n_unique() == 1
