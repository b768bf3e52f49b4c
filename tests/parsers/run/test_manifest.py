"""Facts from a manifest, and missing facts if its shape is unexpected."""

import json

import pytest

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.run.manifest import Exit, Problem, read_manifest


def read(folder, **stated):
    (folder / "manifest.json").write_text(json.dumps({"kind": "traceviz.run", "version": 1, **stated}))
    return read_manifest(folder)


def test_fields_of_the_wrong_type_are_not_said_and_the_others_are(tmp_path):
    manifest = read(tmp_path, name=5, pid=True, status="failed", exit={"code": 3, "signal": "x"}, started_unix_ns=1.5)
    assert (manifest.name, manifest.pid, manifest.started_unix_ns) == (None, None, None)
    assert (manifest.status, manifest.exit) == ("failed", Exit(code=3))


def test_elements_of_the_wrong_type_are_left_out_and_the_others_stay(tmp_path):
    torch = {"name": "torch", "sources": [1, "raw/torch/x.json"], "problems": [7, {"message": "Lost.", "fix": None}]}
    manifest = read(tmp_path, collectors=[None, {"state": "recorded"}, {"name": "../x"}, {"name": ".."}, torch])
    (recorder,) = manifest.recorders
    assert (recorder.name, recorder.sources) == ("torch", ("raw/torch/x.json",))
    assert recorder.problems == (Problem(message="Lost."),)
    assert manifest.problems == ("Lost.",)


@pytest.mark.parametrize(("version", "error"), [(2, "version 2; this traceviz reads 1 to 1"), ("1", "version 1")])
def test_a_run_folder_of_another_version_is_refused(tmp_path, version, error):
    with pytest.raises(DamagedTraceError, match=error):
        read(tmp_path, version=version)
