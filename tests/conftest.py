"""Fixtures that several test files share."""

from pathlib import Path

import pytest

REALDATA = Path(__file__).resolve().parents[2] / "shared" / "realdata"


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of real questions, passages and agent runs; tests that need it skip where it is absent."""
    if not REALDATA.is_dir():
        pytest.skip("no real data beside the checkout")
    return REALDATA
