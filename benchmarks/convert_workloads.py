"""Workloads of quick convert and of sampled height fields."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

from benchmarks.measuring import Figures, robots_folder

_TORSO = "unitree_g1/assets/torso_link_rev_1_0.STL"  # 51,410 triangles
_SAMPLES = 512


def quick_convert(seconds: float) -> Figures | None:
    """Convert a mesh to a prop with convex pieces, and again from the cache."""
    from manyworlds.entity import PropCfg
    from manyworlds.spec.meshes import read_solid

    folder = robots_folder()
    if folder is None:
        return None
    path = folder / _TORSO
    prop = PropCfg.from_mesh(path)
    with _empty_cache():
        first_s, first_cpu_s = _measure(prop.spec_fn)
        again_s, again_cpu_s = _measure(prop.spec_fn)
        pieces = len(prop.spec_fn().meshes) - 1
    return {
        "convert_s": first_s,
        "convert_cpu_s": first_cpu_s,
        "cached_s": again_s,
        "triangles": sum(len(part.faces) for part in read_solid(path)),
        "pieces": pieces,
        "ratio": first_cpu_s / again_cpu_s,
    }


def height_field(seconds: float) -> Figures | None:
    """Sample a mesh at 512 x 512 points by rays, and again from the cache."""
    from manyworlds.terrains import HfSampledTerrainCfg

    folder = robots_folder()
    if folder is None:
        return None
    terrain = HfSampledTerrainCfg(source=folder / _TORSO, size=(0.2, 0.2), resolution=_SAMPLES)
    with _empty_cache():
        first_s, first_cpu_s = _measure(terrain.heights)
        again_s, again_cpu_s = _measure(terrain.heights)
    return {
        "sample_s": first_s,
        "sample_cpu_s": first_cpu_s,
        "cached_s": again_s,
        "ratio": first_cpu_s / again_cpu_s,
    }


def _measure(work: Callable[[], object]) -> tuple[float, float]:
    """Return the elapsed time of a work, and its CPU time with that of its processes [s]."""
    begin, busy = perf_counter(), _cpu_s()
    work()
    return perf_counter() - begin, _cpu_s() - busy


def _cpu_s() -> float:
    usages = (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@contextlib.contextmanager
def _empty_cache() -> Iterator[None]:
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before
