"""Drawn robots: they compile, stand, and are the same whenever they are drawn."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.generated_legged import (
    FOOT_GEOMS,
    FOOT_SITES,
    draw_robot,
    drawn_robot_cfg,
    robot_spec,
)
from tests.asset_zoo.models import initial, simulate

JOINTS = {
    "upright": {3: ["hip", "thigh", "knee"], 2: ["thigh", "knee"]},
    "sprawled": {3: ["hip", "thigh", "knee"], 2: ["hip", "thigh"]},
}


@pytest.mark.parametrize("seed", [0, 1])
def test_drawn_robots_stand(seed):
    """Begin with the feet on the ground, and stand for a second without an action."""
    for number in range(50):
        robot = draw_robot(number, seed)
        sim = simulate(drawn_robot_cfg(number, seed))
        model, data = sim.mj_model, initial(sim)
        feet = [i for i in range(model.ngeom) if re.search(FOOT_GEOMS, model.geom(i).name)]
        assert len(feet) == len(robot.legs) == 2 + number % 5
        for foot in feet:
            site = data.site(model.geom(foot).name.removesuffix("_collision"))
            assert site.xpos[2] == pytest.approx(0.0, abs=1e-9)
        assert 5.0 <= model.body_subtreemass[0] <= 15.0
        assert model.body_subtreemass[0] == pytest.approx(robot.mass)
        sim.step(nsubsteps=200)
        height, _, x, y, _ = sim.data.qpos[0, 2:7].tolist()
        assert 0.88 * robot.height < height < 1.05 * robot.height
        assert 1.0 - 2.0 * (x * x + y * y) > 0.99
        assert sim.data.qvel.abs().max() < 0.2


def test_names_say_leg_and_joint():
    """Name joints by leg and joint, two or three a leg, all limited and within their limits."""
    styles = set()
    for number in range(20):
        robot = draw_robot(number)
        model = robot_spec(robot).compile()
        style = "upright"
        if robot.legs[0].hip_axis[2] == 1.0:
            style = "sprawled"
        names = JOINTS[style][len(robot.legs[0].joints)]
        styles.add((style, len(names)))
        expected = [f"leg{leg}_{joint}" for leg in range(len(robot.legs)) for joint in names]
        assert [model.joint(i).name for i in range(1, model.njnt)] == expected
        assert len(expected) == robot.num_joints
        assert (model.jnt_range[1:, 0] < -0.5).all() and (model.jnt_range[1:, 1] > 0.5).all()
        sites = [model.site(i).name for i in range(model.nsite)]
        assert [re.fullmatch(FOOT_SITES, site) is not None for site in sites[1:]]
    assert styles == {(style, count) for style in JOINTS for count in (2, 3)}


def test_a_robot_is_a_function_of_seed_and_number():
    """Draw the same robot again, and another one for another number or seed."""
    draw_robot.cache_clear()
    first = draw_robot(7, seed=3)
    draw_robot.cache_clear()
    assert draw_robot(7, seed=3) == first
    assert draw_robot(12, seed=3) != first != draw_robot(7, seed=4)
    with pytest.raises(ValueError, match="number of a drawn robot is -1"):
        draw_robot(-1)


def test_legs_are_pairs():
    """Mirror left legs on the right, and put an odd leg in the middle of the rear."""
    for number in range(20):
        model = robot_spec(draw_robot(number)).compile()
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        feet = np.array([data.site(i).xpos for i in range(1, model.nsite)])
        pairs = feet[: len(feet) // 2 * 2].reshape(-1, 2, 3)
        np.testing.assert_allclose(pairs[:, 0], pairs[:, 1] * (1.0, -1.0, 1.0), atol=1e-9)
        assert (pairs[:, 0, 1] > 0.0).all()
        if len(feet) % 2:
            assert feet[-1, 1] == pytest.approx(0.0, abs=1e-9)
            assert feet[-1, 0] < feet[:-1, 0].min()
