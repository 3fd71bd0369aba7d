"""What parity is shown with: skipped where the other implementation is not installed."""

import pytest


@pytest.fixture(scope="session")
def trl():
    """TRL, imported when a test asks for it and not at collection: that takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
        yield pytest.importorskip("trl", reason="TRL is not installed; pip install 'hindsearch[parity]'")
