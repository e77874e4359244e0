"""Shared by all tests: where the repository and, when it is beside it, the shared folder are."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture
def repository() -> Path:
    """The checkout."""
    return ROOT
