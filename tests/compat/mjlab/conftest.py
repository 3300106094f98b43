"""Fixtures of the tests of the alias."""

import pytest

from manyworlds.compat import mjlab


@pytest.fixture
def alias():
    """Install the alias for a test."""
    mjlab.install()
    yield
    mjlab.uninstall()
