"""Settings of short trainings, folders without downloads, and a browser that shows folders."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manyworlds.share.vendor import vendor_files
from tests.browser import open_chromium
from tests.rl.conftest import rl_cfg

__all__ = ["no_downloads", "rl_cfg"]


@pytest.fixture
def no_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the programs of others, which npm downloads."""
    monkeypatch.setattr("manyworlds.share.vendor.vendor_files", lambda: {"mujoco.js": b"//"})
    monkeypatch.setattr("manyworlds.share.folder.vendor_files", lambda: {"mujoco.js": b"//"})


@pytest.fixture(scope="session")
def vendored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `vendor` with the programs of others; skip without npm and a network."""
    folder = tmp_path_factory.mktemp("vendor")
    try:
        files = vendor_files()
    except (FileNotFoundError, ConnectionError) as error:
        pytest.skip(str(error))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for the tests of a module."""
    with open_chromium() as chromium:
        yield chromium
