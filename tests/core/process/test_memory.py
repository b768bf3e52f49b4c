"""Memory of our processes: large blocks are used again or returned; limits are kept, and reports do not change."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.support.measured import measured

pytestmark = pytest.mark.process

APART = """
import numpy as np
from traceviz.core.process.memory import return_freed_memory, resident
return_freed_memory()
np.ones(3 << 20)  # 24 MB, freed at once: from now on the C library would take 8 MB for a small block
blocks = [np.ones(1 << 20) for _ in range(8)]
before = resident()
del blocks[:-1]
print(before - resident())
"""

AGAIN = """
import resource
from traceviz.core.process.memory import reuse_large_blocks
def new_pages(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    memoryview(bytearray(size)).release()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
reuse_large_blocks()
first = new_pages(24 << 20)
print(first, sum(new_pages(24 << 20) for _ in range(10)))
"""


def printed(program: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return [int(number) for number in done.stdout.split()]


def test_what_lies_before_a_block_in_use_goes_back_when_it_is_freed() -> None:
    assert printed(APART)[0] >= 7 * 8 * 10**6


def test_a_block_of_the_size_of_one_that_was_freed_takes_no_new_pages() -> None:
    first, further = printed(AGAIN)
    assert further < 100 < 24 * 2**20 // 4096 // 2 < first


RETURNING = """
import os
from traceviz.core.process.memory import return_freed_memory
return_freed_memory()
import pyarrow
print(pyarrow.default_memory_pool().backend_name, os.environ["_RJEM_MALLOC_CONF"])
"""


@pytest.mark.parametrize(("given", "used"), [({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc")])
def test_libraries_return_memory_soon_unless_the_environment_says_what_they_do(
    given: dict[str, str], used: str
) -> None:
    said = ("ARROW_DEFAULT_MEMORY_POOL", "_RJEM_MALLOC_CONF")
    environment = {name: value for name, value in os.environ.items() if name not in said}
    done = subprocess.run(
        [sys.executable, "-c", RETURNING], env=environment | given, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == [used, "dirty_decay_ms:0,muzzy_decay_ms:0"]


SAMPLE = REPOSITORY / "sample_traces" / "kineto" / "repaired.pt.trace.json.gz"


def test_a_report_is_the_same_within_max_memory_and_within_one_gigabyte_of_addresses() -> None:
    limited = measured("report", SAMPLE, "--max-memory", "4GB", address_space=10**9)
    assert (limited.code, limited.err) == (0, "")
    assert limited.out == measured("report", SAMPLE).out
