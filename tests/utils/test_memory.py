"""Free memory."""

from __future__ import annotations

import sys

import pytest

from manyworlds.utils import memory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells its free memory")
def test_free_memory_is_that_of_the_machine():
    """Return a plausible number of bytes."""
    free = memory.free_memory()
    assert free is not None and 10_000_000 < free < 2**50


def test_a_container_may_have_less(tmp_path, monkeypatch):
    """Take what the container has left, if that is less; nothing where no file tells."""
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.free_memory() == 8000 * 1024
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 700\ninactive_file 300\n")
    assert memory.free_memory() == 4300
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory() == 8000 * 1024
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "nothing")
    assert memory.free_memory() is None
