"""Fixtures that many tests share."""

from __future__ import annotations

import functools
import gc
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# As the command line does, before torch is imported: see `manyworlds.cli.main`.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.sim import SimulationCfg
from manyworlds.sim.engines.capacity import estimate_capacity
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.gl import gl_available, use_working_gl
from tests.browser import browser as browser
from tests.robots import use_robots_beside_the_project

use_robots_beside_the_project()

_LEAST_GROWTH_MB = 64.0

# Property tests run the same examples every time, however slowly, and leave no files.
settings.register_profile(
    "manyworlds",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("manyworlds")


def pytest_configure(config: pytest.Config) -> None:
    """Share the cores between the workers, and the compiled Warp kernels between all tests.

    Only tests selected by `-m gpu` see GPUs; all others run the same with and without one.
    """
    if "gpu" not in config.option.markexpr:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)
    # MuJoCo Warp asks for versions of packages several times for each model, 15 ms each time.
    importlib.metadata.version = functools.cache(importlib.metadata.version)
    if importlib.util.find_spec("warp") is not None:
        import warp as wp

        # One level for all, since each has its own files in Warp's cache. Compilation takes half
        # the time of the default, and a few steps of a few worlds take no longer.
        wp.config.optimization_level = 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the Warp half of tests marked `slow_on_warp`, and tests in a real browser, as slow."""
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        slow_half = params.get("engine") == "warp" and item.get_closest_marker("slow_on_warp")
        if slow_half or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Freeze what is imported, so that later garbage collections are quick."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def leave_no_recordings() -> Iterator[None]:
    """Fail if the tests of a module write recordings or films into the default folder."""
    folder = Path("recordings").absolute()
    before = set(folder.glob("*"))
    yield
    new = set(folder.glob("*")) - before
    assert not new, f"{new} was written beside the project: give `RecorderCfg(folder=tmp_path)`."


@pytest.fixture(autouse=True, scope="module")
def forget_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove modules whose files the tests of a module wrote: their names are free again."""
    before = set(sys.modules)
    yield
    folder = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(folder):
            del sys.modules[name]


@pytest.fixture(autouse=True, scope="module")
def free_memory() -> Iterator[None]:
    """Free the environments that a module leaves in cycles: those of the G1 hold 0.5 GB each.

    A collection takes a tenth of a second, so only modules that need more memory than all before
    end with one.
    """
    before = _peak_memory()
    yield
    if _peak_memory() > before + _LEAST_GROWTH_MB:
        gc.collect()


def _peak_memory() -> float:
    """Return the largest memory that this process has had so far [MB]; 0 on Windows."""
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


_CAPACITIES: dict[int, tuple[int, int]] = {}


def _known_capacity(model: mujoco.MjModel) -> tuple[int, int]:
    """Estimate the capacity for contacts and constraints once for all copies of a model."""
    image = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, image)
    key = hash(image.tobytes())
    if key not in _CAPACITIES:
        _CAPACITIES[key] = estimate_capacity(model)
    return _CAPACITIES[key]


@pytest.fixture(params=["native", "warp"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test on both engines: it is what `auto` takes."""
    if request.param == "warp":
        pytest.importorskip("mujoco_warp", reason="needs the extra 'gpu'")
        monkeypatch.setattr("manyworlds.sim.engines.warp.estimate_capacity", _known_capacity)

    def asked(cfg: SimulationCfg) -> str:
        return request.param if cfg.engine == "auto" else cfg.engine

    monkeypatch.setattr("manyworlds.sim.engines.factory._asked", asked)
    return request.param


@pytest.fixture(scope="session")
def gl() -> None:
    """Skip where images cannot be rendered, and say why; else let MuJoCo use what can."""
    if (reason := gl_available()) is not None:
        pytest.skip(reason)
    use_working_gl()


@pytest.fixture
def env_cfg(engine: str) -> ManagerBasedRlEnvCfg:
    """Configure four worlds of cartpole swing-up."""
    cfg = load_env_cfg("Cartpole-Swingup")
    cfg.scene.num_envs = 4
    cfg.seed = 7
    return cfg


@pytest.fixture
def env(env_cfg: ManagerBasedRlEnvCfg, engine: str) -> ManagerBasedRlEnv:
    """Build four worlds of cartpole swing-up."""
    env = ManagerBasedRlEnv(env_cfg)
    assert env.sim.engine == engine
    return env
