"""Names, members and terms whose meaning under the alias is the reference's."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs import mdp
from manyworlds.rl.distributed import Ranks
from manyworlds.sim import RecomputeLevel, Simulation
from tests.envs.mdp.robot import make_env, shake

pytestmark = pytest.mark.usefixtures("alias")
JOINTS = ("shoulder", "elbow", "finger")


def _ik(**options: Any) -> Any:
    from mjlab.envs.mdp.actions import DifferentialIKActionCfg
    from mjlab.envs.mdp.actions.differential_ik import DifferentialIKActionCfg as Same
    from mjlab.tasks.manipulation.mdp import DifferentialIKActionCfg as Also

    assert DifferentialIKActionCfg is Same is Also
    assert issubclass(DifferentialIKActionCfg, mdp.DifferentialIKActionCfg)
    options = {"frame_type": "site", "frame_name": "tip", **options}
    return DifferentialIKActionCfg(entity_name="robot", actuator_names=JOINTS, **options)


@pytest.fixture
def env():
    """Four worlds in different motion."""
    env = make_env()
    shake(env)
    return env


def test_inverse_kinematics_squares_weights_and_clamps_each_joint(env):
    """Solve `(J^T W^2 J + damping^2) dq = J^T W^2 e`, then clamp each joint by itself."""
    cfg = _ik(position_weight=2.0, orientation_weight=0.3, damping=0.2, max_dq=0.8)
    term = cfg.build(env)
    term.process_actions(torch.randn(4, 6))
    jacobian = torch.cat(term._compute_jacobian(), dim=1)
    weights = torch.tensor([2.0, 2.0, 2.0, 0.3, 0.3, 0.3]) ** 2
    hessian = jacobian.mT @ (weights[:, None] * jacobian) + 0.04 * torch.eye(3)
    gradient = jacobian.mT @ (weights * term._pose_error()).unsqueeze(-1)
    expected = torch.linalg.solve(hessian, gradient).squeeze(-1)
    dq = term.compute_dq()
    torch.testing.assert_close(dq, expected.clamp(-0.8, 0.8), rtol=1e-3, atol=1e-5)
    clamped = expected.abs() > 0.8
    assert (clamped.any(dim=1) & ~clamped.all(dim=1)).any()
    assert cfg.position_weight == 2.0


def test_absolute_positions_are_those_of_the_simulation(env):
    """Add no origins of worlds to positions."""
    term = _ik(use_relative_mode=False, orientation_weight=0.0).build(env)
    action = torch.randn(4, 3)
    term.process_actions(action)
    assert torch.equal(term._target_pos, action) and torch.equal(term.raw_action, action)
    assert env.scene.env_origins.any()


def test_robots_stand_as_the_reference_s_do():
    """Have the reference's initial joint positions and collisions of Go1 and G1."""
    from mjlab.asset_zoo.robots import get_g1_robot_cfg, get_go1_robot_cfg
    from mjlab.asset_zoo.robots.unitree_g1.g1_constants import (
        FULL_COLLISION_WITHOUT_SELF,
        KNEES_BENT_KEYFRAME,
    )
    from mjlab.asset_zoo.robots.unitree_go1.go1_constants import FULL_COLLISION
    from mjlab.asset_zoo.robots.unitree_go1.go1_constants import get_go1_robot_cfg as same
    from mjlab.tasks.registry import load_env_cfg

    g1 = get_g1_robot_cfg()
    assert g1.init_state == KNEES_BENT_KEYFRAME
    joints = g1.init_state.joint_pos
    bent = [joints[f".*_{name}_joint"] for name in ("hip_pitch", "knee", "ankle_pitch")]
    assert bent == [-0.312, 0.669, -0.363]
    assert (FULL_COLLISION_WITHOUT_SELF.contype, FULL_COLLISION_WITHOUT_SELF.conaffinity) == (0, 1)
    go1 = get_go1_robot_cfg()
    assert same is get_go1_robot_cfg and go1.collisions == (FULL_COLLISION,)
    assert go1.init_state.joint_pos[".*R_hip_joint"] == 0.1
    assert list(FULL_COLLISION.friction.values()) == [(1.0,)]
    for robot, cfg in (("Go1", go1), ("G1", g1)):
        task = load_env_cfg(f"Mjlab-Velocity-Flat-Unitree-{robot}")
        assert task.scene.entities["robot"].init_state == cfg.init_state


def test_modules_have_the_names_that_projects_import():
    """Find names that modules of the reference show, and the places of files."""
    import mjlab
    from mjlab.asset_zoo.robots.unitree_g1.g1_constants import G1_XML
    from mjlab.envs.mdp import quat_from_euler_xyz, quat_mul
    from mjlab.tasks.velocity.mdp.rewards import TerrainHeightSensor
    from mjlab.utils.math import quat_mul as ours
    from mjlab.viewer.native.keys import KEY_A, KEY_COMMA, KEY_F5, KEY_RIGHT

    assert (Path(mjlab.__file__).parent / "envs").is_dir()
    assert Path(G1_XML).is_file()
    assert quat_mul is ours and callable(quat_from_euler_xyz)
    assert importlib.import_module("mjlab.sensor").TerrainHeightSensor is TerrainHeightSensor
    assert (KEY_A, KEY_COMMA, KEY_F5, KEY_RIGHT) == (65, 44, 294, 262)
    with pytest.raises(ImportError, match="KEY_NONE"):
        exec("from mjlab.viewer.native.keys import KEY_NONE")


def test_the_dictionary_of_tasks_has_all_tasks():
    """Read, register and remove tasks by the dictionary."""
    from mjlab.tasks.registry import _REGISTRY, list_tasks

    assert list(_REGISTRY) == list_tasks() and "Mjlab-Cartpole-Balance" in _REGISTRY
    task = _REGISTRY["Mjlab-Cartpole-Balance"]
    _REGISTRY["My-Balance"] = task
    assert "My-Balance" in list_tasks() and task.env_cfg.decimation == 5
    assert _REGISTRY.pop("My-Balance").rl_cfg == task.rl_cfg
    assert "My-Balance" not in _REGISTRY and _REGISTRY.get("My-Balance") is None


@pytest.mark.parametrize(
    ("settings", "kind"),
    [("tensorboard", "tensorboard"), ({"class_name": "WandbLogWriter"}, "wandb")],
)
def test_a_logger_has_the_attributes_of_rsl_rl_s(settings, kind):
    """Tell type, settings and counts, which runners of projects read when they save."""
    pytest.importorskip("rsl_rl")
    from mjlab.rl import MjlabOnPolicyRunner

    from manyworlds.rl.logger import TrainingLogger

    inner = SimpleNamespace(common_step_counter=5, physics_time=0.0)
    env: Any = SimpleNamespace(num_envs=4, device="cpu", cfg="cfg", unwrapped=inner)
    env.step_time = 0.0
    cfg = {"logger": settings, "num_steps_per_env": 2}
    logger: Any = TrainingLogger(env, cfg, None, Ranks())
    assert logger.logger_type == kind and logger.cfg is cfg and logger.env_cfg == "cfg"
    assert logger.tot_timesteps == 20 and logger.tot_time == 0.0 and not logger.disable_logs
    logger.process_env_step(torch.ones(4), torch.tensor([0, 1, 0, 0]), {})
    assert list(logger.rewbuffer) == list(logger.lenbuffer) == [1.0]
    logger.init_logging_writer()
    logger.stop_logging_writer()
    runner = MjlabOnPolicyRunner.__new__(MjlabOnPolicyRunner)
    runner.logger = logger
    assert runner.logger_type == kind and runner.writer is None


def test_data_actuators_and_sensors_have_their_members(env):
    """Count worlds, and name targets before the scene is compiled."""
    from manyworlds.sensor import ContactMatch, ContactSensorCfg
    from tests.envs.mdp.robot import robot_cfg

    assert env.sim.data.nworld == 4
    actuator: Any = robot_cfg().build().actuators[0]
    assert actuator._target_names == ["shoulder", "elbow"]
    primary = ContactMatch(mode="body", pattern=("tip", "tail"), entity="robot")
    sensor: Any = ContactSensorCfg(name="touch", primary=primary, fields=("found", "dist")).build()
    sensor.edit_spec(env.scene.spec, env.scene.entities)
    slots = [(slot.primary_name, slot.field_name) for slot in sensor._slots]
    assert slots == [(name, kind) for name in ("tip", "tail") for kind in ("found", "dist")]


XML = """
<mujoco>
  <worldbody>
    <body name="link" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
      <geom name="geom" type="box" size=".1 .1 .1" mass="1"/><site name="site"/>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="hinge" kp="20" {}/></actuator>
</mujoco>
"""


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("site_quat", (0.0, 1.0, 0.0, 0.0), "site_xmat"),
        ("body_ipos", (0.1, 0.2, 0.3), "xipos"),
        ("geom_quat", (0.0, 1.0, 0.0, 0.0), "geom_xmat"),
    ],
)
def test_frames_of_a_simulation_move_after_their_constants_are_computed(field, value, read):
    """Show rows of a world in the frames of that world alone, once they are recomputed."""
    model = mujoco.MjModel.from_xml_string(XML.format(""))
    model.body_simple[:] = 0  # as scenes compile their entities
    sim = Simulation(2, model=model, device="cpu")
    sim.expand_model_fields((field,))
    at = model.ngeom - 1
    if field == "body_ipos":
        at = 1
    getattr(sim.model, field)[1, at] = torch.tensor(value)
    sim.recompute_constants(RecomputeLevel.set_const)
    sim.forward()
    single = mujoco.MjModel.from_xml_string(XML.format(""))
    single.body_simple[:] = 0
    getattr(single, field)[at] = value
    data = mujoco.MjData(single)
    mujoco.mj_setConst(single, data)
    mujoco.mj_forward(single, data)
    shown = getattr(sim.data, read)[:, at].flatten(1).numpy()
    np.testing.assert_allclose(shown[1], getattr(data, read)[at], atol=1e-6)
    assert np.abs(shown[0] - shown[1]).max() > 0.05


@pytest.mark.parametrize("damping", ['dampratio="1"', 'kv="28.5"'])
def test_damping_is_what_this_mujoco_computes(damping):
    """Follow a ratio as MuJoCo compiles it, and a value as it is given."""
    model = mujoco.MjModel.from_xml_string(XML.format(damping))
    sim = Simulation(2, model=model, device="cpu")
    kv = -sim.model.actuator_biasprm[1, 0, 2]
    assert kv == pytest.approx(-float(model.actuator_biasprm[0, 2])) and kv > 0.1
    if "kv" in damping:
        assert kv == pytest.approx(28.5)


def test_metrics_of_commands_count_steps(alias):
    """Update metrics in each step, and not where other worlds are reset."""
    from mjlab.tasks.velocity.mdp import UniformVelocityCommand, UniformVelocityCommandCfg

    class Counted(UniformVelocityCommand):
        def _update_metrics(self):
            super()._update_metrics()
            self.metrics["steps"] = self.metrics.get("steps", torch.zeros(4)) + 1.0

    class Cfg(UniformVelocityCommandCfg):
        def build(self, env):
            return Counted(self, env)

    ranges = UniformVelocityCommandCfg.Ranges((0.0, 1.0), (0.0, 0.0), (0.0, 0.0))
    command = Cfg(entity_name="robot", resampling_time_range=(9.0, 9.0), ranges=ranges)
    env = make_env(commands={"twist": command})
    term = env.command_manager.get_term("twist")
    start = term.metrics["steps"].clone() if "steps" in term.metrics else torch.zeros(4)
    for _ in range(3):
        env.step(torch.zeros(4, 2))
    env.reset(env_ids=torch.tensor([1]))
    steps = term.metrics["steps"] - start
    assert steps.tolist() == [3.0, -start[1].item(), 3.0, 3.0]
    assert term.command_counter.tolist() == [1] * 4
