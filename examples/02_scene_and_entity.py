"""Build a scene of a robot arm and a box, and move the arm.

    python examples/02_scene_and_entity.py

You learn to describe entities with actuators, to compile them into one scene for many worlds, to
find joints and bodies by name, and to set targets in a loop of your own.
"""

from __future__ import annotations

import mujoco
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg, PropCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.terrains import TerrainEntityCfg

ARM = """
<mujoco>
  <worldbody>
    <body name="upper" pos="0 0 0.2">
      <joint name="shoulder" axis="0 0 1" damping="0.5"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 0 1" range="-150 150" damping="0.5"/>
        <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.025" mass="0.5"/>
        <site name="tip" pos="0.25 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def arm_cfg() -> EntityCfg:
    """Return the arm, with a position actuator at each joint."""
    servo = BuiltinPositionActuatorCfg(
        target_names_expr=(".*",), stiffness=60.0, damping=3.0, effort_limit=20.0
    )
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(ARM),
        init_state=EntityCfg.InitialStateCfg(joint_pos={"shoulder": 0.0, "elbow": 0.5}),
        articulation=EntityArticulationInfoCfg(actuators=(servo,)),
    )


def build(num_envs: int) -> tuple[Scene, Simulation]:
    """Return the compiled scene and its simulation."""
    box = PropCfg.primitive("box", size=(0.05, 0.05, 0.05), mass=0.2)
    box.init_state.pos = (0.0, 0.5, 0.05)
    cfg = SceneCfg(
        num_envs=num_envs, entities={"arm": arm_cfg(), "box": box}, terrain=TerrainEntityCfg()
    )
    scene = Scene(cfg, "cpu")
    sim = Simulation(num_envs, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return scene, sim


def reach(scene: Scene, sim: Simulation, targets: torch.Tensor, num_steps: int) -> torch.Tensor:
    """Move the arm to joint targets [rad], shape [num_envs, 2]; return the final positions."""
    arm = scene.entity("arm")
    box = scene.entity("box")
    pose = box.data.default_root_state.clone()
    pose[:, :3] += scene.env_origins  # each world has a place of its own on the ground
    box.write_root_state_to_sim(pose)
    arm.write_joint_state_to_sim(arm.data.default_joint_pos, arm.data.default_joint_vel)
    arm.set_joint_position_target(targets)
    for _ in range(num_steps):
        scene.write_data_to_sim()  # actuators turn targets into controls
        sim.step(refresh=True)
        scene.update(sim.timestep)
    return arm.data.joint_pos


if __name__ == "__main__":
    scene, sim = build(num_envs=8)
    print(scene)
    arm = scene.entity("arm")
    print("joints:", arm.joint_names, "bodies:", arm.body_names)
    ids, names = arm.find_joints("el.*")
    print(f"the pattern 'el.*' finds {names} with the ids {list(ids)}")
    goals = torch.stack([torch.linspace(-1.0, 1.0, 8), torch.full((8,), 0.3)], dim=1)
    reached = reach(scene, sim, goals, num_steps=800)
    print(f"largest distance from the targets: {(reached - goals).abs().max():.4f} rad")
    site = arm.find_sites("tip")[0]
    print(f"tip of the arm in world 0 [m]: {arm.data.site_pos_w[0, site].squeeze().tolist()}")
