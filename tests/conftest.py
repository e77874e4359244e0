"""Shared by all tests: where the repository and, when it is beside it, the shared folder are."""

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
