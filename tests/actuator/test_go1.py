"""A quadruped on position actuators holds its stance."""

from __future__ import annotations

from typing import Literal

import mujoco
import pytest
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.spec.edits import add_ground_plane
from tests.robots import robot_file

STANCE = {
    ".*(FR|RR)_hip_joint": -0.1,
    ".*(FL|RL)_hip_joint": 0.1,
    ".*_thigh_joint": 0.9,
    ".*_calf_joint": -1.8,
}
HEIGHT = 0.278
SECONDS, TIMESTEP, DECIMATION = 5.0, 0.005, 4


def go1_cfg() -> EntityCfg:
    """Configure the robot, hips and thighs apart from calves."""
    path = str(robot_file("unitree_go1/go1.xml"))
    legs = BuiltinPositionActuatorCfg(
        target_names_expr=(".*_hip_joint", ".*_thigh_joint"),
        stiffness=60.0,
        damping=3.0,
        effort_limit=23.7,
        armature=0.01,
    )
    calves = BuiltinPositionActuatorCfg(
        target_names_expr=(".*_calf_joint",),
        stiffness=80.0,
        damping=3.0,
        effort_limit=35.55,
        armature=0.02,
    )
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_file(path),
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, HEIGHT), joint_pos=STANCE),
        articulation=EntityArticulationInfoCfg(actuators=(legs, calves)),
    )


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_quadruped_holds_its_stance(engine: Literal["native", "warp"]):
    """Stand for five seconds near where it began, on either engine, and report nothing bad."""
    if engine == "warp":
        pytest.importorskip("mujoco_warp")
    num_envs = 2
    scene = Scene(
        SceneCfg(num_envs=num_envs, entities={"go1": go1_cfg()}, spec_fn=add_ground_plane), "cpu"
    )
    cfg = SimulationCfg(engine=engine, mujoco=MujocoCfg(timestep=TIMESTEP, iterations=10))
    sim = Simulation(num_envs, cfg, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    go1 = scene["go1"]
    root = go1.data.default_root_state.clone()
    root[:, :3] += scene.env_origins
    go1.write_root_state_to_sim(root)
    go1.write_joint_state_to_sim(go1.data.default_joint_pos, go1.data.default_joint_vel)
    sim.forward()
    assert not scene.needs_substeps
    go1.set_joint_position_target(go1.data.default_joint_pos)
    heights, joints = [], []
    for _ in range(round(SECONDS / TIMESTEP / DECIMATION)):
        scene.write_data_to_sim()
        sim.step(DECIMATION)
        heights.append(sim.data.qpos[:, 2].clone())
        joints.append((go1.data.joint_pos - go1.data.default_joint_pos).abs().amax(dim=1))
    height, joint = torch.stack(heights), torch.stack(joints)
    assert (height - HEIGHT).abs().max() < 0.03
    assert joint.max() < 0.15
    assert go1.data.joint_vel.abs().max() < 0.02
    assert (sim.data.qpos[:, :2] - scene.env_origins[:, :2]).norm(dim=1).max() < 0.05
    assert sim.data.qpos[:, 3].min() > 0.999
    assert not sim.status.any()
