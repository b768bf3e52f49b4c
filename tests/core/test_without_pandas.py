"""Reports are made without pandas, which takes longer to import than many a trace to read."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

REPORT = """
import sys
from traceviz.cli.main import main

for number, sample in enumerate(sys.argv[2:]):
    main(["report", sample, "--format", "json", "-o", f"{sys.argv[1]}/{number}.json"], standalone_mode=False)
    print("pandas" in sys.modules)
"""
ARCHIVE = """
import sys
from traceviz.cli.main import main

if __name__ == "__main__":
    main(["archive", "add", sys.argv[1], sys.argv[2], "--workers", "1"], standalone_mode=False)
    main(["archive", "list", sys.argv[1]], standalone_mode=False)
    print("pandas" in sys.modules)
"""
USE_PANDAS = """
import sys
from traceviz.core.without_pandas import skip_pandas

skip_pandas()
import pyarrow as pa

table = pa.table({"name": ["a", None]})
print("pandas" in sys.modules)
frame = table.to_pandas()
print(frame["name"].isna().sum(), pa.array(frame["name"]).null_count)
"""


def run(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_report_of_each_format_imports_no_pandas(samples, tmp_path):
    names = (
        "input_bound.sqlite",
        "nvprof_torch_input_bound.nvvp",
        "torch_healthy.pt.trace.json.gz",
        "gpu_keras_input_bound.xplane.pb",
    )
    paths = [str(samples / "synthetic" / name) for name in names]
    assert run(REPORT, str(tmp_path), *paths).split() == ["False"] * len(names)
    assert min((tmp_path / f"{number}.json").stat().st_size for number in range(len(names))) > 1_000


@pytest.mark.slow
def test_an_archive_lists_its_traces_without_pandas(samples, tmp_path):
    sample = samples / "synthetic" / "input_bound.sqlite"
    *_, trace, imported = run(ARCHIVE, str(tmp_path / "archive"), str(sample)).splitlines()
    assert "highly input-bound" in trace
    assert imported == "False"


def test_frames_of_pandas_can_be_made_all_the_same():
    assert run(USE_PANDAS).split() == ["False", "1", "1"]
