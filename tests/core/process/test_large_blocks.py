"""Large blocks of memory: their pages are used again, or go back to the system at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

APART = """
import numpy as np
from traceviz.core.process.memory import keep_large_blocks_apart, resident
keep_large_blocks_apart()
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
