"""Fixtures of the simulation layer's tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def quick_compilation():
    """Spend less time on optimising kernels that run a few steps of a few worlds."""
    wp = pytest.importorskip("warp")
    before = wp.config.optimization_level
    wp.config.optimization_level = 0
    yield
    wp.config.optimization_level = before
