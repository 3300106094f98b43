"""The arm against the figures it is made of."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.arm import (
    _DRIVES,
    ARM_ACTION_SCALE,
    ARM_ACTUATORS,
    get_arm_cfg,
    get_spec,
)
from tests.asset_zoo.models import (
    ENGINES,
    at_zero,
    initial,
    joint_figures,
    reference,
    simulate,
    world_inertia,
)

FINGERS = ("link_left_finger", "link_right_finger")


def test_figures_are_those_of_the_source():
    """Weigh each link, and place, turn and limit each joint, as the source does."""
    (ours, data), (theirs, their_data) = (
        at_zero(get_spec().compile()),
        reference("i2rt_yam/yam.xml"),
    )
    for i in range(1, ours.nbody):
        name = ours.body(i).name
        other = theirs.body(name).id
        assert ours.body_mass[i] == pytest.approx(theirs.body_mass[other], rel=1e-5)
        # The source turns a finger by half a turn to get the other; ours are mirror images.
        off = 2.7e-3 if name in FINGERS else 1e-8
        np.testing.assert_allclose(data.xipos[i], their_data.xipos[other], atol=off)
        if name not in FINGERS:
            np.testing.assert_allclose(data.xpos[i], their_data.xpos[other], atol=1e-12)
        np.testing.assert_allclose(
            world_inertia(ours, data, name), world_inertia(theirs, their_data, name), atol=1e-7
        )
    assert ours.body_mass.sum() == pytest.approx(3.859093, abs=1e-9)
    figures, expected = joint_figures(ours, data), joint_figures(theirs, their_data)
    assert list(figures) == list(expected)
    for name in figures:
        np.testing.assert_allclose(figures[name], expected[name], atol=1e-9)
    np.testing.assert_allclose(
        data.site("grasp_site").xpos, their_data.site("grasp_site").xpos, atol=1e-9
    )


def test_drives_know_what_they_move():
    """Hold the inertias that gains are made of against the model's, to one percent."""
    sim = simulate(get_arm_cfg())
    data, model = initial(sim), sim.mj_model
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    felt = dict(
        zip([model.joint(i).name for i in range(model.njnt)], np.diag(inertia), strict=True)
    )
    felt["robot/left_finger"] += felt["robot/right_finger"]  # they move together
    for joint, motor, expected in _DRIVES:
        assert felt[f"robot/{joint}"] == pytest.approx(expected, rel=0.01)
        assert expected > motor.reflected_inertia


@pytest.mark.parametrize("engine", ENGINES)
def test_it_holds_its_pose(engine):
    """Stay where it is for five seconds, touching nothing: its weight is compensated."""
    sim = simulate(get_arm_cfg(), engine)
    start = sim.data.qpos.clone()
    assert not initial(sim).ncon
    sim.step(nsubsteps=1000)
    assert (sim.data.qpos - start).abs().max() < 1e-4


def test_it_goes_where_it_is_told_without_overshoot():
    """Move the base by 0.2 rad in a second, at most 2 % too far; close the gripper together."""
    sim = simulate(get_arm_cfg())
    sim.data.ctrl[0, 0] += 0.2
    sim.data.ctrl[0, 6] = 0.0
    furthest = 0.0
    for _ in range(20):
        sim.step(nsubsteps=10)
        furthest = max(furthest, float(sim.data.qpos[0, 0]))
    assert float(sim.data.qpos[0, 0]) == pytest.approx(0.2, abs=2e-3)
    assert furthest < 0.204
    left, right = sim.data.qpos[0, 6:].tolist()
    assert left == pytest.approx(-right, abs=1e-4) and abs(left) < 1e-3


def test_a_unit_action_asks_for_a_quarter_of_the_torque():
    """Scale actions by joint, within 35 % of those that a cube is lifted with elsewhere."""
    known = {
        "joint1": 0.3599426554453139,
        "joint2": 0.1597918534090456,
        "joint3": 0.1904427157497401,
        "joint4": 0.5250193985879242,
        "joint5": 1.7347616639294616,
        "joint6": 5.520026131457555,
        "left_finger": 0.08657395590844981,
    }
    for cfg in ARM_ACTUATORS:
        (joint,) = cfg.target_names_expr
        assert ARM_ACTION_SCALE[joint] == pytest.approx(0.25 * cfg.effort_limit / cfg.stiffness)
        assert ARM_ACTION_SCALE[joint] == pytest.approx(known[joint], rel=0.35)
