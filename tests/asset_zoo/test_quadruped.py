"""The quadruped against the figures it is made of."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.asset_zoo.quadruped import (
    FOOT_RADIUS,
    LEGS,
    QUADRUPED_ACTION_SCALE,
    get_quadruped_cfg,
    get_spec,
)
from manyworlds.asset_zoo.third_party import get_go1_robot_cfg
from tests.asset_zoo.models import (
    ENGINES,
    at_zero,
    check_mirror_symmetry,
    initial,
    joint_figures,
    reference,
    simulate,
    world_inertia,
)


def test_figures_are_those_of_the_source():
    """Weigh each body, and place, turn and limit each joint, as the source does."""
    (ours, data), (theirs, their_data) = (
        at_zero(get_spec().compile()),
        reference("unitree_go1/go1.xml"),
    )
    for i in range(1, ours.nbody):
        name = ours.body(i).name
        other = theirs.body(name).id
        assert ours.body_mass[i] == pytest.approx(theirs.body_mass[other], rel=1e-12)
        np.testing.assert_allclose(data.xpos[i], their_data.xpos[other], atol=1e-12)
        # Where the source has the center of mass 2 mm beside the middle plane, ours is in it.
        np.testing.assert_allclose(data.xipos[i], their_data.xipos[other], atol=0.0021)
        np.testing.assert_allclose(
            data.xipos[i, [0, 2]], their_data.xipos[other, [0, 2]], atol=1e-7
        )
        np.testing.assert_allclose(
            world_inertia(ours, data, name), world_inertia(theirs, their_data, name), atol=2.4e-4
        )
        np.testing.assert_allclose(
            np.diag(world_inertia(ours, data, name)),
            np.diag(world_inertia(theirs, their_data, name)),
            rtol=1e-4,
        )
    assert ours.body_subtreemass[1] == pytest.approx(12.743448, abs=1e-9)
    figures, expected = joint_figures(ours, data), joint_figures(theirs, their_data)
    assert list(figures) == list(expected)
    for name in figures:
        np.testing.assert_allclose(figures[name], expected[name], atol=1e-9)


def test_left_and_right_are_mirror_images():
    """Reflect a moving robot."""
    check_mirror_symmetry(
        get_spec(), (("FL", "FR"), ("RL", "RR"), ("trunk_collision1", "trunk_collision2"))
    )


def test_it_begins_with_its_feet_on_the_ground():
    """Touch the ground with four feet and nothing else, to a millimeter."""
    sim = simulate(get_quadruped_cfg())
    data = initial(sim)
    touching = {sim.mj_model.geom(i).name for contact in data.contact for i in contact.geom}
    assert touching == {"terrain"} | {f"robot/{leg}_foot_collision" for leg in LEGS}
    for leg in LEGS:
        assert data.site(f"robot/{leg}").xpos[2] == pytest.approx(FOOT_RADIUS, abs=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_it_stands(engine):
    """Stand for five seconds: still, upright, and as low as its gains let it sink."""
    sim = simulate(get_quadruped_cfg(), engine, cone="elliptic", impratio=10)
    sim.step(nsubsteps=1000)
    assert sim.data.qpos[0, 2] == pytest.approx(0.226, abs=0.004)
    assert sim.data.qvel.abs().max() < 0.01
    assert sim.data.qpos[0, 3] > 0.998


def test_third_party_twin_does_the_same():
    """Let Go1 fall to its stance as ours does, though its shapes are others."""
    heights = []
    for cfg in (get_quadruped_cfg(), get_go1_robot_cfg()):
        reference("unitree_go1/go1.xml")
        sim = simulate(cfg, cone="elliptic", impratio=10)
        sim.step(nsubsteps=400)
        heights.append(float(sim.data.qpos[0, 2]))
    assert heights[0] == pytest.approx(heights[1], abs=1e-3)


def test_a_unit_action_asks_for_a_quarter_of_the_torque():
    """Scale actions by joint: a quarter of the limit over the stiffness."""
    assert QUADRUPED_ACTION_SCALE[".*_hip_joint"] == pytest.approx(0.3727530387083568, rel=1e-6)
    assert QUADRUPED_ACTION_SCALE[".*_calf_joint"] == pytest.approx(0.24850202580557115, rel=1e-6)
