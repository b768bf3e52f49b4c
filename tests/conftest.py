"""Shared by all tests: where the public traces are, and how hypothesis behaves."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("traceviz", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("traceviz")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def public_traces() -> Path:
    """Folder of real public traces with what independent tools say of them, from TRACEVIZ_TRACES."""
    folder = os.environ.get("TRACEVIZ_TRACES")
    if not folder:
        pytest.skip("TRACEVIZ_TRACES names no folder of public traces")
    return Path(folder)


@pytest.fixture(scope="session")
def samples() -> Path:
    """The shipped sample traces."""
    return REPOSITORY / "sample_traces"
