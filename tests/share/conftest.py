"""Settings of short trainings, and folders without downloads."""

import pytest

from tests.rl.conftest import rl_cfg

__all__ = ["no_downloads", "rl_cfg"]


@pytest.fixture
def no_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the programs of others, which npm downloads."""
    monkeypatch.setattr("manyworlds.share.vendor.vendor_files", lambda: {"mujoco.js": b"//"})
    monkeypatch.setattr("manyworlds.share.folder.vendor_files", lambda: {"mujoco.js": b"//"})
