import itertools
import os
import subprocess

import numpy as np
import pytest

from manyworlds.spec import convex
from manyworlds.spec.convex import CoacdCfg, convex_pieces

pytest.importorskip("coacd", reason="decomposition needs the extra 'meshes'")
trimesh = pytest.importorskip("trimesh")

RING = trimesh.creation.annulus(0.1, 0.2, 0.05, sections=6)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Let the tests of this file share one cache, which is empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield convex._CACHE.folder


@pytest.fixture
def runs(monkeypatch):
    """Count the processes that are started."""
    started = []

    class Counted(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    return started


def ring(threshold, on_progress=lambda share: None):
    """Return the pieces of the ring."""
    return convex_pieces(RING.vertices, RING.faces, CoacdCfg(threshold=threshold), on_progress)


@pytest.mark.slow
def test_a_lower_threshold_gives_no_fewer_pieces(cache):
    """Decompose a ring at three thresholds, and report progress that rises below 1."""
    shares = []
    counts = [len(ring(threshold)) for threshold in (1.0, 0.3)]
    counts.append(len(ring(0.05, shares.append)))
    assert counts == sorted(counts) and counts[0] == 1 < counts[-1]
    assert shares[0] == 0.0 < shares[-1] < 1.0
    assert all(a <= b for a, b in itertools.pairwise(shares))


@pytest.mark.slow
def test_pieces_are_cut_once(cache, runs):
    """Read pieces of the same content from the cache; another threshold is another content."""
    first = ring(0.05)
    runs.clear()
    again = ring(0.05)
    assert not runs
    for piece, kept in zip(first, again, strict=True):
        for one, other in zip(piece, kept, strict=True):
            np.testing.assert_array_equal(one, other)
    ring(0.9)
    assert len(runs) == 1


@pytest.mark.slow
def test_a_damaged_entry_is_made_again(cache, runs):
    """Cut an entry of the cache short, and let it be replaced."""
    pieces = ring(0.3)
    for path in cache.iterdir():
        os.truncate(path, path.stat().st_size // 2)
    runs.clear()
    assert len(ring(0.3)) == len(pieces) and len(runs) == 1
    runs.clear()
    assert len(ring(0.3)) == len(pieces) and not runs


def test_an_interrupt_ends_the_process(cache, runs):
    """Interrupt a decomposition: its process ends, and nothing is kept."""
    before = {*cache.iterdir()} if cache.exists() else set()

    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ring(0.07, interrupt)
    assert len(runs) == 1 and runs[0].poll() is not None
    assert ({*cache.iterdir()} if cache.exists() else set()) == before


def test_a_cache_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    """Return the pieces with a warning where the cache is a file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="cannot be written"):
        assert len(ring(1.0)) == 1


@pytest.mark.parametrize("threshold", [0.009, 1.1, -1.0, float("nan")])
def test_thresholds_have_bounds(threshold):
    """Refuse thresholds outside of [0.01, 1]."""
    with pytest.raises(ValueError, match=r"threshold must be in \[0.01, 1.0\]"):
        CoacdCfg(threshold=threshold)
