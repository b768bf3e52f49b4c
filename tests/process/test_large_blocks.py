"""Large blocks of memory lie in pages of their own, which go back to the system at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

PROGRAM = """
import numpy as np
from traceviz.process.memory import keep_large_blocks_apart, resident
keep_large_blocks_apart()
np.ones(3 << 20)  # 24 MB, freed at once: from now on the C library would take 8 MB for a small block
blocks = [np.ones(1 << 20) for _ in range(8)]
before = resident()
del blocks[:-1]
print(before - resident())
"""


def test_what_lies_before_a_block_in_use_goes_back_when_it_is_freed() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert int(done.stdout) >= 7 * 8 * 10**6
