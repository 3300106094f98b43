"""Simulate many worlds of one model, without a scene or an environment.

    python examples/01_simulation.py

You learn that each field of MuJoCo is a torch tensor with one row per world; that in-place writes
are the input of the next step; that a field of the model gets one row per world by its first write;
and that a world without writes follows MuJoCo's `mj_step` bit for bit.
"""

from __future__ import annotations

import mujoco
import torch

from manyworlds.sim import Simulation, SimulationCfg

PENDULUM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="rod" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping="0.01"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="1"/>
      <site name="tip" pos="0.4 0 0"/>
    </body>
  </worldbody>
</mujoco>
"""
NUM_STEPS = 500


def simulate(num_envs: int) -> Simulation:
    """Swing pendulums for a second; return the simulation."""
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    sim = Simulation(num_envs, SimulationCfg(engine="native"), model=model, device="cpu")

    # State: worlds start at different angles; world 0 keeps that of the model.
    sim.data.qpos[1:, 0] = torch.linspace(-0.5, 0.5, num_envs - 1)
    # Model: worlds have different masses, except world 0. What depends on the mass is recomputed.
    sim.model.body_mass[1:, 1] = torch.linspace(0.5, 2.0, num_envs - 1)
    sim.recompute_constants(sim.recompute_level(["body_mass"]))

    sim.step(NUM_STEPS)
    sim.forward()  # positions of sites and the like, for the new state
    return sim


def swing_alone() -> mujoco.MjData:
    """Swing one pendulum in plain MuJoCo, for the same time."""
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    data = mujoco.MjData(model)
    for _ in range(NUM_STEPS):
        mujoco.mj_step(model, data)
    return data


if __name__ == "__main__":
    sim, alone = simulate(1024), swing_alone()
    angles = sim.data.qpos[:, 0]
    print(f"angles of the first five worlds [rad]: {[round(a, 3) for a in angles[:5].tolist()]}")
    print(f"tip of world 5 [m]: {[round(x, 3) for x in sim.data.site_xpos[5, 0].tolist()]}")
    print(f"worlds that went wrong: {sim.status_counts() or 'none'}")
    state = sim.get_state([0])
    print(f"world 0 equals plain MuJoCo: {angles[0].item() == torch.tensor(alone.qpos[0]).float()}")
    sim.set_state(state, [0])  # states can be kept and restored, for any worlds
