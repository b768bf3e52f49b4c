"""Parquet files whose parts contradict each other are refused, and end no process."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

_READ = "import sys; from traceviz.untrusted.parquet import DAMAGE, read_parquet\ntry:\n    read_parquet(sys.argv[1])\n"


@pytest.mark.process
def test_a_footer_whose_statistics_are_of_another_kind_of_column_is_damage_and_no_abort(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, None]}), path)
    nullable, required = b"\x25\x02\x18\x01a", b"\x25\x00\x18\x01a"  # of the schema in the footer: may be null, or not
    content = path.read_bytes()
    assert content.count(nullable) == 1
    path.write_bytes(content.replace(nullable, required))
    program = f"{_READ}except DAMAGE as error:\n    print('damage')"
    done = subprocess.run([sys.executable, "-c", program, path], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "damage\n")
