"""Shared by all tests: where the repository and, when it is beside it, the shared folder are."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
settings.register_profile("ours", deadline=None)  # no timed tests: a busy machine is not a failure
settings.load_profile("ours")


@pytest.fixture
def repository() -> Path:
    """The checkout."""
    return ROOT


def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: tests of the terminal app wait more than they compute. At most 8, for memory."""
    return min(8, 2 * (os.cpu_count() or 1))
