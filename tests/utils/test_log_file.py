"""MuJoCo's log file, which is written nowhere, and where its warnings are seen instead."""

from __future__ import annotations

import subprocess
import sys

import mujoco
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.loop.physics_loop import FaultError
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation, SimulationCfg
from manyworlds.sim.engines.capacity import estimate_capacity

# The ball is so stiff and fast that it goes bad in MuJoCo's own hands within a few steps.
DIVERGING = """
<mujoco>
  <option timestep="0.05" integrator="Euler"/>
  <worldbody>
    <body name="ball">
      <joint name="spring" type="slide" stiffness="1e9"/><geom size=".1"/>
    </body>
  </worldbody>
  <keyframe><key name="away" qpos="1e3"/></keyframe>
</mujoco>
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run in an empty folder, which must stay empty."""
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def _spec() -> mujoco.MjSpec:
    return mujoco.MjSpec.from_string(DIVERGING)


@pytest.mark.parametrize("num_envs", [1, 64])
def test_diverging_worlds_end_in_the_status(num_envs, capfd):
    """Let all worlds diverge on the thread pool: status bits, no file, nothing on the terminal."""
    sim = Simulation(num_envs, SimulationCfg(engine="native", mujoco=None), spec=_spec())
    sim.data.qpos[:] = 1e3
    sim.step(100)
    sim.forward()
    sim.recompute_constants(1)
    counts = sim.status_counts()
    assert counts["nan"] == num_envs and any(name.startswith("bad_") for name in counts)
    assert "WARNING" not in capfd.readouterr().err


def test_a_diverging_environment_logs_it(env_cfg):
    """Report worlds that go bad under `Status/` in the log of `step`."""
    env = ManagerBasedRlEnv(env_cfg)
    env.sim.data.qpos[1] = torch.nan
    *_, extras = env.step(torch.zeros(4, 1))
    assert extras["log"]["Status/nan"] == 1
    # MuJoCo Warp raises no warnings.
    assert extras["log"].get("Status/bad_qpos", 0) == int(env.sim.is_bit_exact)


def test_a_diverging_lab_tells(capfd):
    """Count the warning, stop with a fault that names the body, and show MuJoCo's line."""
    lab = LiveLab(world_from_spec(_spec()), LabCfg(mode="direct"))
    lab.post(lambda model, data: data.qpos.fill(1e3))
    with pytest.raises(FaultError, match="diverged"):
        lab.step(100)
    assert "diverged" in lab.loop.fault and "'ball'" in lab.loop.fault
    assert sum(lab.loop.warnings.values()) >= 1
    lab.stop()
    assert "WARNING: Nan, Inf or huge value" in capfd.readouterr().err


def test_plain_calls_show_their_warnings(capfd):
    """Step, try out and fail in the main thread: warnings on the terminal, and errors raised."""
    model = _spec().compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 200)
    assert "WARNING: Nan, Inf or huge value" in capfd.readouterr().err
    assert data.warning.number.any()
    estimate_capacity(model)
    mujoco.mj_setConst(model, data)
    with pytest.raises(mujoco.FatalError):
        mujoco.mj_setKeyframe(model, data, 99)


def test_warnings_of_compilation_are_shown():
    """Attach a model whose options differ from the scene's: a Python warning, and no file."""
    with pytest.warns(UserWarning):
        Scene(SceneCfg(entities={"ball": EntityCfg(spec_fn=_spec)})).compile()


@pytest.mark.slow
def test_a_file_that_the_user_names_is_kept(tmp_path_factory):
    """Write into the file that was named before the import, and into no file without a name."""
    code = (
        "import mujoco; config = mujoco.MjLogConfig.get(); {}config.set()\n"
        "import manyworlds.{}\n"
        f"model = mujoco.MjModel.from_xml_string('''{DIVERGING}''')\n"
        "data = mujoco.MjData(model); data.qpos[:] = 1e3; mujoco.mj_step(model, data, 200)"
    )
    name = "config.logfile = 'my.log'; "
    for named, module in ((name, "sim"), ("", "lab"), ("", "rl.onnx_policy"), ("", "scene")):
        place = tmp_path_factory.mktemp("place")
        subprocess.run([sys.executable, "-c", code.format(named, module)], cwd=place, check=True)
        assert [path.name for path in place.iterdir()] == (["my.log"] if named else [])
