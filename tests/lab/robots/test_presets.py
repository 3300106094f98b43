"""The sequences of the robots that come with manyworlds."""

from __future__ import annotations

import pytest

from manyworlds.lab import LiveLab, world_from_scene
from manyworlds.tasks import load_env_cfg
from tests.robots import robot_file


@pytest.mark.parametrize("task", ["Lift-Cube-Arm", "Lift-Cube-Yam"])
def test_the_arm_picks_a_cube_up_and_puts_it_down(task):
    """Play the sequence twice: the cube is up when it has been lifted, and down at the end."""
    if task.endswith("Yam"):
        robot_file("i2rt_yam/yam.xml")
    cfg = load_env_cfg(task, play=True)
    lab = LiveLab(world_from_scene(cfg.scene, cfg.sim.mujoco))
    sequence = lab.run_sequence("Arm: Reach-Grasp-Lift", "robot", delay=0.0)
    cube, timestep = lab.loop.data.body("cube/cube"), cfg.sim.mujoco.timestep
    for _ in range(2):
        for pose in sequence.poses:
            lab.step(round((pose.blend + pose.hold) / timestep))
            is_up = pose.name == "lift"
            assert (0.3 if is_up else 0.015) < cube.xpos[2] < (0.4 if is_up else 0.025)
    lab.stop()
