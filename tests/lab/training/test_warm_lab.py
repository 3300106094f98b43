"""Lab that waits in a process of its own to enter worlds of a training."""

from __future__ import annotations

import time
import urllib.request

import pytest

from manyworlds.lab.training import WarmLab
from tests.waiting import PATIENCE_S

pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.mark.slow
def test_worlds_are_entered_one_after_the_other(training):
    """Enter two worlds: the page is served at one address, and errors are told."""
    lab = WarmLab(training.folder)
    try:
        lab.warm()
        start = time.perf_counter()
        url = lab.enter(3)
        first = time.perf_counter() - start
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
            assert page.status == 200
        with pytest.raises(RuntimeError, match="no world 12: the environment has 12 worlds"):
            lab.enter(12)
        start = time.perf_counter()
        assert lab.enter(7) == url
        print(f"entered after {first:.2f} s and {time.perf_counter() - start:.2f} s")
        lab.process.kill()
        lab.process.wait()
        training.wait_for_iterations(2)  # it does not need the lab
        with urllib.request.urlopen(lab.enter(0), timeout=PATIENCE_S) as page:  # another process
            assert page.status == 200
    finally:
        lab.close()
    assert lab.process.poll() is not None


@pytest.mark.slow
def test_a_training_that_is_not_there(tmp_path):
    """Warm a lab for a folder without a training: the error names the remedy."""
    lab = WarmLab(tmp_path)
    with pytest.raises(RuntimeError, match="name a run folder"):
        lab.warm()
    lab.process.wait(PATIENCE_S)
    lab.close()
